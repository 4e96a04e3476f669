"""Shards of arrays: every layout, labels, splits; what is broken is named; memory does not grow with the set."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gedi.data import ScaledRows, Scaling, load_shards, write_shards
from gedi.data.array_shards import ArrayShard, Summary
from gedi.errors import UserError

RNG = np.random.default_rng(0)


def some_bytes(*shape):
    return RNG.integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize(
    ("x", "channels_first"),
    [
        (some_bytes(30, 6, 5), lambda x: x[:, None]),
        (some_bytes(30, 6, 5, 3), lambda x: x.transpose(0, 3, 1, 2)),
        (some_bytes(30, 6, 5, 1), lambda x: x.transpose(0, 3, 1, 2)),
        (some_bytes(30, 3, 6, 5), lambda x: x),
        (RNG.random((30, 6, 5)), lambda x: x[:, None]),
        (RNG.random((30, 6, 5, 3)).astype(">f4"), lambda x: x.transpose(0, 3, 1, 2)),
        (RNG.random((30, 3, 6, 5)).astype(np.float16), lambda x: x),
    ],
)
def test_every_layout_gives_channels_in_front_and_bytes_stay_bytes(tmp_path, x, channels_first):
    write_shards(x, tmp_path, per_shard=7)
    write_shards(x[:3], tmp_path, test=True)
    held, expected = load_shards(tmp_path), channels_first(x)
    if x.dtype != np.uint8:
        expected = expected.astype(np.float32)
    assert held.train.dtype == held.test.dtype == (torch.uint8 if x.dtype == np.uint8 else torch.float32)
    assert np.array_equal(held.train[:].numpy(), expected)
    assert np.array_equal(held.test[:].numpy(), expected[:3])
    assert held.source == f"shards {tmp_path.name}: 30 training and 3 test rows in 6 .npy files, its own split"


def test_labels_of_any_kind_get_one_number_in_both_parts(tmp_path):
    write_shards(some_bytes(4, 2, 2), tmp_path, np.array(["cat", "dog", "cat", "emu"]), per_shard=3)
    write_shards(some_bytes(2, 2, 2), tmp_path, np.array(["emu", "bee"]), test=True)
    held = load_shards(tmp_path)
    assert held.train_labels.tolist() == [1, 2, 1, 3]
    assert held.test_labels.tolist() == [3, 0]


@pytest.mark.parametrize("shards", [5, 7, 20])
def test_of_five_shards_or_more_a_fifth_is_the_test_part_and_always_the_same(tmp_path, shards):
    x = np.arange(shards * 3, dtype=np.float32)[:, None].repeat(2, axis=1)
    write_shards(x, tmp_path, np.arange(len(x)), per_shard=3)
    held, again = load_shards(tmp_path), load_shards(tmp_path)
    assert len(held.test) == shards // 5 * 3
    rows = [part[:][:, 0].long() for part in (held.train, held.test)]
    assert sorted(torch.cat(rows).tolist()) == list(range(len(x)))
    assert torch.equal(rows[0], held.train_labels)  # labels went along
    assert torch.equal(rows[1], held.test_labels)
    assert torch.equal(rows[1], again.test[:][:, 0].long())
    assert (rows[1].view(-1, 3)[:, 0] % 3 == 0).all()  # whole shards


def test_of_fewer_shards_a_fifth_of_the_rows_of_every_class_is_the_test_part(tmp_path):
    write_shards(np.arange(40, dtype=np.uint8)[:, None, None], tmp_path, np.arange(40) % 2, per_shard=10)
    held = load_shards(tmp_path)
    assert (len(held.train), held.test_labels.bincount().tolist()) == (32, [4, 4])
    rows = [part[:].flatten().tolist() for part in (held.train, held.test)]
    assert sorted(rows[0] + rows[1]) == list(range(40))
    assert [row % 2 for row in rows[1]] == held.test_labels.tolist()
    assert torch.equal(load_shards(tmp_path).test[:], held.test[:])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.floats(-1e6, 1e6))
def test_summaries_of_parts_make_the_summary_of_all(sizes, shift):
    x = np.random.default_rng(0).standard_normal((sum(sizes), 3)) + shift
    parts = Summary.joined([Summary.of(part) for part in np.split(x, np.cumsum(sizes)[:-1])])
    for name, value in vars(Summary.of(x)).items():
        np.testing.assert_allclose(getattr(parts, name), value, rtol=1e-7, atol=1e-7)


def test_a_table_is_centred_and_scaled_by_one_factor_and_its_box_holds_every_row(tmp_path):
    x = (RNG.standard_normal((100, 3)) * [1, 5, 0.1] + [4, 0, -2]).astype(np.float32)
    write_shards(x, tmp_path, per_shard=30)
    write_shards(x[:9], tmp_path, test=True)
    held = load_shards(tmp_path)
    points = ScaledRows(held.train, held.summary)
    expected = torch.from_numpy((x - x.mean(0)) / np.sqrt(x.var(0, ddof=1).mean()))
    torch.testing.assert_close(points[:], expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(points.low, expected.amin(0), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(points.high, expected.amax(0), rtol=1e-5, atol=1e-5)
    assert torch.equal(points.to("cpu")[3:7], points[3:7])
    assert held.test.shape == (9, 3)


@pytest.mark.parametrize("columns", ["together", "apart", "auto"])
@pytest.mark.parametrize("sizes", [[1.0, 2.0, 0.0], [1.0, 500.0, 0.0]], ids=["one unit", "several"])
def test_columns_are_scaled_as_those_of_a_table_in_memory(columns, sizes, tmp_path):
    x = (RNG.standard_normal((100, 3)) * sizes + 4).astype(np.float32)
    write_shards(x, tmp_path, per_shard=30)
    write_shards(x[:9], tmp_path, test=True)
    held = load_shards(tmp_path)
    points, rows = ScaledRows(held.train, held.summary, columns), torch.from_numpy(x)
    torch.testing.assert_close(points[:], Scaling.of(rows, columns)(rows), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(points.to("cpu").high, points[:].amax(dim=0), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(points.scaling.back(points[:]), rows, rtol=1e-4, atol=1e-3)


def test_floats_are_looked_through_once_until_a_file_changes(tmp_path, monkeypatch):
    looked, of = [], Summary.of
    monkeypatch.setattr(Summary, "of", lambda x: looked.append(len(x)) or of(x))
    files = write_shards(RNG.random((6, 4)), tmp_path, per_shard=2)
    load_shards(tmp_path)
    assert looked == [2, 2, 2]
    load_shards(tmp_path)
    assert looked == [2, 2, 2]
    np.save(files[1], RNG.random((3, 4)))
    assert len(load_shards(tmp_path).train) + len(load_shards(tmp_path).test) == 7
    assert looked == [2, 2, 2, 3]


def test_bytes_are_not_looked_through(tmp_path, monkeypatch):
    write_shards(some_bytes(20, 4, 4), tmp_path, per_shard=5)
    monkeypatch.setattr(ArrayShard, "_values", lambda self: pytest.fail("rows were read"))
    assert load_shards(tmp_path).train.shape == (16, 1, 4, 4)


def spoil(folder, name, content):
    path = folder / name
    if callable(content):
        path.write_bytes(content(path.read_bytes()))
    else:
        np.save(path, content, allow_pickle=True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x-0001.npy", lambda b: b[:-1], r"x-0001.npy' cannot be read as \.npy"),
        ("x-0001.npy", lambda b: b[:40], r"x-0001.npy' cannot be read as \.npy"),
        ("x-0001.npy", lambda b: b"", r"x-0001.npy' cannot be read as \.npy"),
        ("x-0001.npy", lambda b: b"PK\x03\x04" + b, r"x-0001.npy' cannot be read as \.npy"),
        ("x-0001.npy", lambda b: b"\x80\x04" + b, r"x-0001.npy' cannot be read as \.npy"),  # a bare pickle
        ("x-0001.npy", np.array([{"a": 1}] * 4, object), r"x-0001.npy' cannot be read as \.npy: .*objects"),
        ("x-0001.npy", some_bytes(4, 5, 4), r"x-0001.npy' holds \(5, 4\) in uint8 and 'x-0000.npy' \(4, 4\)"),
        (
            "x-0001.npy",
            RNG.random((4, 4, 4)),
            r"x-0001.npy' holds \(4, 4\) in float64 and 'x-0000.npy' \(4, 4\) in uint8",
        ),
        ("x-0001.npy", np.asfortranarray(some_bytes(4, 4, 4)), "x-0001.npy' .* Fortran order"),
        ("x-0001.npy", some_bytes(0, 4, 4), "x-0001.npy'"),
        ("x-0001.npy", np.array(5), "x-0001.npy' must hold one array of rows"),
        ("x-0000.npy", some_bytes(4, 3, 4, 3), "x-0000.npy must be images .* no doubt which"),
        ("x-0000.npy", np.zeros((4, 4, 4), np.int32), r"x-0000.npy must be uint8 or float in \[0, 1\], got int32"),
        ("y-0001.npy", np.arange(3), r"y-0001.npy' must hold one label a row, got 4 rows and \(3,\)"),
        ("y-0001.npy", np.array([{}] * 4), "y-0001.npy cannot be read"),
    ],
)
def test_a_shard_that_cannot_be_is_named(tmp_path, name, content, message):
    write_shards(some_bytes(12, 4, 4), tmp_path, np.arange(12), per_shard=4)
    spoil(tmp_path, name, content)
    with pytest.raises(UserError, match=message):
        load_shards(tmp_path)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.full((8, 4, 4), 1.5), r"x-0000.npy must be floats in \[0, 1\], got 1.5 to 1.5"),
        (np.full((8, 4, 4), np.nan), r"x-0000.npy must be floats in \[0, 1\], got nan"),
        (np.array([[1, 2], [np.inf, 3]]), "x-0000.npy' must be finite, but column 0"),
        (np.array([[1, 2], [1, np.nan]]), "x-0000.npy' must be finite, but column 1"),
        (np.array([[1, 2], [1, 2j]]), "x-0000.npy' must hold numbers, got complex128"),
    ],
)
def test_values_that_cannot_be_are_named(tmp_path, x, message):
    write_shards(x, tmp_path)
    with pytest.raises(UserError, match=message):
        load_shards(tmp_path)


def test_labels_for_some_shards_or_for_none_that_is_there_are_told(tmp_path):
    write_shards(some_bytes(12, 4, 4), tmp_path, np.arange(12), per_shard=4)
    (tmp_path / "y-0001.npy").unlink()
    with pytest.raises(UserError, match=r"every shard must have labels, or none, but .*x-0001.npy' has none"):
        load_shards(tmp_path)
    (tmp_path / "x-0002.npy").unlink()
    with pytest.raises(UserError, match=r"y-0002.npy' holds labels, so 'x-0002.npy' must be there"):
        load_shards(tmp_path)


def test_a_side_is_for_images_that_are_decoded(tmp_path):
    write_shards(some_bytes(12, 4, 4), tmp_path)
    with pytest.raises(UserError, match="arrays are taken as they are"):
        load_shards(tmp_path, side=2)


def test_a_file_that_changes_after_it_was_opened_is_not_read_as_it_was(tmp_path):
    files = write_shards(some_bytes(12, 4, 4), tmp_path, per_shard=4)
    held = load_shards(tmp_path)
    np.save(files[1], some_bytes(5, 4, 4))
    with pytest.raises(UserError, match=r"x-0001.npy' must stay as it is while it is in use"):
        held.train[:]


def test_shards_are_written_once_and_with_one_label_a_row(tmp_path):
    write_shards(some_bytes(3, 2, 2), tmp_path)
    with pytest.raises(UserError, match="must not hold shards"):
        write_shards(some_bytes(3, 2, 2), tmp_path)
    with pytest.raises(UserError, match="one label a row, got 3 rows and 2 labels"):
        write_shards(some_bytes(3, 2, 2), tmp_path / "new", np.arange(2))
    with pytest.raises(UserError, match="per_shard must be >= 1"):
        write_shards(some_bytes(3, 2, 2), tmp_path / "new", per_shard=0)
    assert not (tmp_path / "new").exists()


MEASURE = """
import sys, torch
from gedi.data import Pixels, StoredImages, load_shards
def anonymous():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))  # kB
torch.set_num_threads(1)
g = torch.Generator().manual_seed(0)
held = load_shards(sys.argv[1])
images = StoredImages(held.train, Pixels(mean=0.5, std=0.5)).to("cpu")
images[torch.randint(len(images), (64,), generator=g)]
before = anonymous()
for _ in range(500):
    images[torch.randint(len(images), (64,), generator=g)]
print(held.train.shape[0], anonymous() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_does_not_grow_with_the_set(tmp_path):
    """400 MB of images in files with holes; as many rows are read as there are."""
    for number in range(5):
        np.lib.format.open_memmap(tmp_path / f"x-{number:04}.npy", "w+", np.uint8, (8000, 100, 100))
    done = subprocess.run([sys.executable, "-c", MEASURE, str(tmp_path)], capture_output=True, text=True, check=True)
    n, grown = map(int, done.stdout.split())
    assert n == 32_000
    assert grown < 40_000  # kB; a batch of floats is 2.6 MB
