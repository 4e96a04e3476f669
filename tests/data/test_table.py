"""Tables: what is understood without being told, what is said about it, and that nothing is lost."""

import codecs

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from gedi.config import override, parse
from gedi.data import Wishes, load_points
from gedi.errors import UserError
from gedi.presets import preset
from gedi.random import Streams
from gedi.sources import load_data

X = np.round(np.random.default_rng(0).normal(size=(30, 2)), 6)
LINES = "".join(f"{a!r},{b!r}\n" for a, b in X.tolist())
LABELLED = "".join(f"{a!r},{b!r},{'ab'[i % 2]}\n" for i, (a, b) in enumerate(X.tolist()))


@pytest.fixture
def read(tmp_path):
    """Read text, or bytes, as a table."""

    def put(content, name="a.csv", **wishes):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return load_points(path, Wishes(**wishes))

    return put


def expect(table, x=X):
    assert torch.equal(table.points, torch.tensor(x, dtype=torch.float32))


def test_a_table_without_a_header_keeps_its_first_row(read):
    table = read(LINES)
    expect(table)
    assert "no header (the first line is data)" in table.notes[0]
    assert "comma, header;" in read("u,v\n" + LINES).notes[0]


@pytest.mark.parametrize(
    ("content", "header"),
    [
        (LABELLED, False),  # a word above words, numbers above numbers
        ("u,v,w\n" + LABELLED, True),
        ("2019,2020,kind\n" + LABELLED, False),  # numbers above numbers, a word above words: nothing tells it from data
        ("u,2020,kind\n" + LABELLED, True),  # a word above numbers
        (",v,kind\n" + LABELLED, True),
        ("NA,1.5,a\n" + LABELLED, False),  # what is missing is no name
    ],
)
def test_a_header_is_a_word_above_numbers(tmp_path, content, header):
    from gedi.data.delimited import read_delimited

    (tmp_path / "a.csv").write_text(content)
    table = read_delimited(tmp_path / "a.csv", None, lambda name: False)
    assert table.header is header
    assert len(table.columns[0]) == content.count("\n") - header


@pytest.mark.parametrize(
    ("encoding", "said"),
    [("utf-8-sig", "UTF-8 with a byte order mark"), ("utf-16", "UTF-16 with a byte order mark")],
)
def test_a_byte_order_mark_is_no_part_of_the_first_name(read, encoding, said):
    content = "label,u\n" + "".join(f"{i % 3},{x}\n" for i, x in enumerate(X[:, 0].tolist()))
    table = read(content.encode(encoding))
    expect(table, X[:, :1])
    assert table.labels.tolist() == [i % 3 for i in range(30)]
    assert said in table.notes[0]


def test_big_endian_utf_16_is_read_too(read):
    expect(read(codecs.BOM_UTF16_BE + ("u,v\n" + LINES).encode("utf-16-be")))


@pytest.mark.parametrize("delimiter", ["", ";;", "\n"])
def test_a_delimiter_that_is_none_is_refused_and_not_found_out_instead(read, delimiter):
    with pytest.raises(UserError, match=r"data\.delimiter must be one character"):
        read("u,v\n" + LINES, delimiter=delimiter)


@pytest.mark.parametrize(("delimiter", "said"), [(";", "semicolon"), ("\t", "tab"), ("|", "bar")])
def test_the_delimiter_is_found_out_or_given(read, delimiter, said):
    content = ("u,v\n" + LINES).replace(",", delimiter)
    table = read(content)
    expect(table)
    assert said in table.notes[0]
    expect(read(content, delimiter=delimiter))
    if delimiter == "\t":
        expect(read(content, "a.tsv"))


def test_a_decimal_comma_is_understood(read):
    table = read("u;v\n" + LINES.replace(",", ";").replace(".", ","))
    expect(table)
    assert "decimal comma" in table.notes[0]


def test_quotes_blanks_windows_lines_and_words_for_true_are_understood(read):
    content = '\r\n"u", "v" ,w\r\n' + "".join(f'"{a}", {b} ,{"True" if a > 0 else "False"}\r\n' for a, b in X.tolist())
    expect(read(content), np.c_[X, X[:, 0] > 0])


def test_numbers_are_read_to_the_last_bit(read):
    x = np.random.default_rng(1).normal(size=500) * 10.0 ** np.random.default_rng(2).integers(-5, 3, 500)
    table = read("u\n" + "".join(f"{value!r}\n" for value in x.tolist()))
    expect(table, x[:, None])


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("n", range(30), "it counts the rows from 0"),
        ("n", range(1, 31), "it counts the rows from 1"),
        ("", range(30), "it counts the rows from 0"),
        ("id", [7] * 30, "by its name and values"),
        ("Customer_ID", range(1000, 940, -2), "by its name and values"),
        ("uuid", [f"{i:08x}-beef" for i in range(30)], "by its name and values"),
        ("name", [f"somebody {i}" for i in range(30)], "it is text that differs in every row"),
    ],
)
def test_what_only_names_the_rows_is_left_out_and_said(read, name, values, why):
    content = f"{name},u,v\n" + "".join(f"{i},{line}\n" for i, line in zip(values, LINES.splitlines(), strict=True))
    table = read(content)
    expect(table)
    assert any(f"{name!r} left out: {why}" in note for note in table.notes)


def test_a_column_that_goes_on_counting_is_left_out_wherever_it_begins(read):
    u = np.random.default_rng(0).normal(size=120)
    table = read("Kundennummer,u\n" + "".join(f"{1000 + i},{x!r}\n" for i, x in enumerate(u.tolist())))
    expect(table, u[:, None])
    assert any("'Kundennummer' left out: it counts the rows from 1000" in note for note in table.notes)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("index", X[:, 0]),  # a refractive index, say
        ("n", range(2, 32)),
        ("n", [*range(29), 30]),
        ("width", range(100, 130)),
        ("customer_id", [1, 2] * 15),
    ],
)
def test_other_columns_are_kept(read, name, values):
    content = f"{name},u\n" + "".join(
        f"{v!r},{u!r}\n" for v, u in zip(np.asarray(values).tolist(), X[:, 0].tolist(), strict=True)
    )
    expect(read(content), np.c_[np.asarray(values), X[:, 0]])


def test_the_user_says_what_a_column_is(read):
    content = "n,u,v,kind\n" + "".join(f"{i},{line}\n" for i, line in enumerate(LABELLED.splitlines()))
    table = read(content, label="kind")
    expect(table)
    assert table.labels.tolist() == [0, 1] * 15
    expect(read(content, label="kind", id="none"), np.c_[np.arange(30), X])
    expect(read(content, label="kind", id="u"), np.c_[np.arange(30), X[:, 1]])
    expect(read(content, drop=("kind", "v", "n")), X[:, :1])
    with pytest.raises(UserError, match=r"column 'kind' holds 'a' in line 2; .*data\.drop=\['kind'\]"):
        read(content)


def test_a_column_called_y_that_holds_fractions_is_no_label(read):
    table = read("x,y\n" + LINES)
    expect(table)
    assert table.labels is None
    assert any("'y' holds fractions" in note for note in table.notes)
    whole = read("x,y\n" + "".join(f"{a},{i % 3}\n" for i, a in enumerate(X[:, 0].tolist())))
    assert whole.labels.tolist() == [i % 3 for i in range(30)]
    assert read("x,y\n0.5,1\n0.25,3\n0.75,8\n", label="none").points.shape == (3, 2)


def test_labels_that_are_numbers_keep_their_order(read):
    table = read("u,label\n" + "".join(f"{x},{i % 12}\n" for i, x in enumerate(X[:, 0].tolist())))
    assert table.labels.tolist() == [i % 12 for i in range(30)]


def test_constant_columns_are_said_and_digits_do_not_drown(read):
    moments = [1.7e9 + i * i % 77 for i in range(len(X))]  # of which float32 would leave steps of 128
    table = read("u,c,t\n" + "".join(f"{a},3,{t}\n" for a, t in zip(X[:, 0].tolist(), moments, strict=True)))
    assert any("constant, so without effect: column 'c'" in note for note in table.notes)
    assert table.points.dtype == torch.float64
    assert table.points[:, 2].tolist() == moments
    assert read("u,c,t\n1,2,3\n4,5,7\n").points.dtype == torch.float32  # where there is no need


def test_heavy_tails_and_rare_ones_are_no_fault(read):
    rng = np.random.default_rng(0)
    x = np.c_[rng.lognormal(0, 3, 5000), rng.random(5000) < 0.001, rng.standard_cauchy(5000)]
    expect(read("u,v,w\n" + "".join(f"{a!r},{int(b)},{c!r}\n" for a, b, c in x.tolist())), x)


def test_a_fault_beyond_the_first_block_is_named_by_its_line(read, monkeypatch):
    monkeypatch.setattr("gedi.data.delimited._BLOCK", 300)
    rows = ["1.5,2"] * 400
    expect(read("u,v\n" + "\n".join(rows)), np.tile([1.5, 2], (400, 1)))
    rows[321] = "1.5,two"
    with pytest.raises(UserError, match="column 'v' holds 'two' in line 323"):
        read("u,v\n" + "\n".join(rows))
    rows[321] = "1.5"
    with pytest.raises(UserError, match="line 323 must hold 2 values like the first, got 1"):
        read("u,v\n" + "\n".join(rows))
    monkeypatch.setattr("gedi.data.delimited._SAMPLE", 50)
    rows[321] = "1.5," + "2" * 1000
    with pytest.raises(UserError, match="cannot be read as a table"):
        read("u,v\n" + "\n".join(rows))


def test_parquet_gives_the_same_points(tmp_path):
    columns = {
        "u": X[:, 0].astype(np.float32),
        "w": pa.array(np.arange(30) ** 2),
        "flag": pa.array([True, False] * 15),
        "label": pa.array(["a", "b"] * 15).dictionary_encode(),
        "__index_level_0__": np.arange(30),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    table = load_points(tmp_path / "a.parquet")
    expect(table, np.c_[X[:, 0].astype(np.float32), np.arange(30) ** 2, [1, 0] * 15])
    assert table.labels.tolist() == [0, 1] * 15
    assert "labels in 'label'" in table.notes[0]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.uint64, bool, ">f4"])
def test_arrays_of_every_kind_of_number_in_every_order_are_read(tmp_path, dtype, order):
    x = np.array(np.random.default_rng(0).integers(0, 2, (20, 3)), dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", x)
    expect(load_points(tmp_path / "a.npy"), x.astype(np.float64))
    np.savez_compressed(tmp_path / "a.npz", x=x, y=np.array(["u", "v"] * 10))
    expect(load_points(tmp_path / "a.npz"), x.astype(np.float64))


def test_what_was_found_out_goes_with_the_data(tmp_path):
    (tmp_path / "a.csv").write_text("id,u,v\n" + "".join(f"{i},{line}\n" for i, line in enumerate(LINES.splitlines())))
    settings = ["data.name=file", f"data.path={tmp_path / 'a.csv'}", "data.drop=[v]"]
    data = load_data(parse(override(preset("toy"), settings)), Streams(0))
    assert data.train.shape == (24, 1)
    assert data.notes[0].startswith("a.csv: 30 rows, 1 column (u); comma, header; no labels")
    assert "'id' left out" in data.source
    assert "left out as asked: v" in data.source
