"""fit, predict, score, embed and sample: a row out for every row in, from files as people have them."""

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from sklearn.datasets import make_blobs

from gedi import GEDI

X, Y = make_blobs(90, centers=[[0, 0, 0], [9, 0, 0], [0, 9, 0]], random_state=0)
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
SHORT = ("--iterations", "40", "--quiet")


@pytest.fixture(autouse=True)
def _loud(monkeypatch):
    monkeypatch.delenv("GEDI_QUIET")


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def write_table(path, delimiter=",", comma=False, mark=False, header=True):
    lines = ["customer,length,width,height,kind".replace(",", delimiter)] if header else []
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        numbers = [f"{value:.6f}".replace(".", ",") if comma else f"{value:.6f}" for value in x]
        lines.append(delimiter.join([f"c{i}e", *numbers, "abc"[y]]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8-sig" if mark else "utf-8")
    return path


def matched(found):
    """Whether clusters are the blobs, by whatever numbers."""
    found = np.asarray(found)
    return len({(a, b) for a, b in zip(found, Y, strict=True)}) == 3


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verbs")
    from gedi.verbs.fitting import FitWishes, fit_into
    from gedi.verbs.inputs import table_wishes

    asked = FitWishes("auto", table_wishes(label="kind"), None, "auto", "auto", 40, 0)
    fit_into(str(write_table(folder / "customers.csv")), asked, folder / "run", None, quiet=True)
    return folder / "run"


def test_a_fit_says_what_it_read_and_labels_every_row(gedi, tmp_path):
    table = write_table(tmp_path / "customers.csv")
    code, out, err = gedi("fit", table, "--clusters", "3", "--label", "kind", "--out", tmp_path / "run", *SHORT[:2])
    assert code == 0
    assert "90 rows, 3 columns (length, width, height); comma, header; labels in 'kind'" in err
    assert "'customer' left out" in err
    held = rows((tmp_path / "run" / "labels.csv").read_text())
    assert [row["customer"] for row in held] == [f"c{i}e" for i in range(90)]
    assert list(held[0]) == ["customer", "cluster", "probability", "log_density", "outlier_score"]
    assert matched([row["cluster"] for row in held])
    assert str(tmp_path / "run" / "labels.csv") in out
    assert (tmp_path / "run" / "report.html").is_file()
    assert json.loads((tmp_path / "run" / "results.json").read_text())["metrics"]["nmi"] > 0.99
    code, _, err = gedi("fit", table, "--label", "kind", "--out", tmp_path / "run", *SHORT)
    assert code == 2
    assert "--overwrite" in err


def test_the_folder_of_a_fit_is_an_estimator(run):
    model = GEDI.load(run)
    assert model.n_clusters_ == 3
    assert list(model.feature_names_in_) == ["length", "width", "height"]
    assert matched(model.predict(X))
    assert "| columns | length, width, height |" in (run / "model" / "README.md").read_text()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "comma, header"),
        ({"delimiter": ";", "comma": True, "mark": True}, "semicolon, header, decimal comma, UTF-8 with a byte order"),
        ({"delimiter": "\t"}, "tab, header"),
    ],
)
def test_tables_are_read_as_people_write_them(gedi, run, tmp_path, how, said):
    code, out, err = gedi("predict", run, write_table(tmp_path / "new.csv", **how))
    assert code == 0
    assert said in err
    assert "not looked at: kind" in err
    assert [row["customer"] for row in rows(out)] == [f"c{i}e" for i in range(90)]
    assert matched([row["cluster"] for row in rows(out)])


def test_columns_are_found_by_name_and_ids_may_be_chosen(gedi, run, tmp_path):
    (tmp_path / "new.csv").write_text("height,no,width,length\n0,7,0,9\n0,8,9,0\n")
    code, out, _ = gedi("predict", run, tmp_path / "new.csv", "--id", "no", "--quiet")
    assert code == 0
    assert [row["no"] for row in rows(out)] == ["7", "8"]
    assert [int(row["cluster"]) for row in rows(out)] == GEDI.load(run).predict([[9, 0, 0], [0, 9, 0]]).tolist()
    code, out, _ = gedi("predict", run, tmp_path / "new.csv", "--id", "none", "--quiet")
    assert [row["row"] for row in rows(out)] == ["0", "1"]


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet", "tsv"])
def test_every_kind_of_file_gives_the_same_scores(gedi, run, tmp_path, kind):
    path = tmp_path / f"x.{kind}"
    if kind == "npy":
        np.save(path, X)
    elif kind == "npz":
        np.savez(path, x=X)
    elif kind == "tsv":
        path.write_text("length\twidth\theight\n" + "\n".join("\t".join(f"{v!r}" for v in x.tolist()) for x in X))
    else:
        import pyarrow as pa

        pq.write_table(pa.table(dict(zip(("length", "width", "height"), X.T, strict=True))), path)
    code, _, _ = gedi("score", run, path, "--out", tmp_path / "scores.parquet", "--quiet")
    assert code == 0
    found = pq.read_table(tmp_path / "scores.parquet").to_pydict()
    assert list(found) == ["row", "log_density", "outlier_score"]
    model = GEDI.load(run)
    np.testing.assert_allclose(found["log_density"], model.score_samples(X), rtol=1e-5)
    np.testing.assert_allclose(found["outlier_score"], model.outlier_score(X), rtol=1e-4, atol=1e-5)


def test_embeddings_and_samples_are_tables(gedi, run, tmp_path):
    np.save(tmp_path / "x.npy", X)
    code, out, _ = gedi("embed", run, tmp_path / "x.npy")
    assert code == 0
    np.testing.assert_allclose(
        [[float(value) for name, value in row.items() if name != "row"] for row in rows(out)],
        GEDI.load(run).transform(X),
        atol=1e-5,
    )
    code, out, _ = gedi("sample", run, "-n", "5")
    assert code == 0
    assert list(rows(out)[0]) == ["length", "width", "height"]
    assert len(rows(out)) == 5
    assert gedi("sample", run, "-n", "5", "-o", tmp_path / "s.npy")[0] == 0
    assert np.load(tmp_path / "s.npy").shape == (5, 3)


def test_a_table_larger_than_memory_is_drawn_from_and_labelled_whole(gedi, tmp_path, monkeypatch):
    many = np.concatenate([X + 0.01 * i for i in range(300)])
    path = tmp_path / "many.csv"
    path.write_text("a,b,c\n" + "\n".join(f"{a:.4f},{b:.4f},{c:.4f}" for a, b, c in many) + "\n")
    monkeypatch.setenv("GEDI_MEMORY_LIMIT", "500K")
    monkeypatch.setattr("gedi.verbs.inputs._DRAWN", 400)
    code, _, err = gedi("fit", path, "--clusters", "3", "--out", tmp_path / "run", *SHORT[:2])
    assert code == 0, err
    assert "400 rows" in err
    assert "of 27,000" in err
    assert len(rows((tmp_path / "run" / "labels.csv").read_text())) == 27_000


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures") / "shapes"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(40):
        image = rng.integers(0, 60, (12, 12)).astype(np.uint8)
        image[:, 6 * (i % 2) : 6 * (i % 2) + 6] += 180
        Image.fromarray(image).save(folder / f"{i:02}.png")
    return folder


@pytest.fixture(scope="module")
def picture_run(pictures):
    from gedi.verbs.fitting import FitWishes, fit_into
    from gedi.verbs.inputs import table_wishes

    out = pictures.parent / "run"
    fit_into(str(pictures), FitWishes(2, table_wishes(), None, "auto", "auto", 30, 0), out, None, quiet=True)
    return out


def test_pictures_are_labelled_sorted_and_shown(gedi, picture_run, pictures, tmp_path):
    held = rows((picture_run / "labels.csv").read_text())
    assert [row["file"] for row in held] == sorted(path.name for path in pictures.iterdir())
    wished = ("--sort", tmp_path / "sorted", "--gallery", tmp_path / "g.png")
    code, _, err = gedi("predict", picture_run, pictures, "-o", tmp_path / "l.csv", *wished)
    assert code == 0, err
    for row in held:
        assert (tmp_path / "sorted" / f"cluster-{row['cluster']}" / row["file"]).is_file()
    with Image.open(tmp_path / "g.png") as drawn:
        assert drawn.size[0] > 100
    assert gedi("sample", picture_run, "-n", "4", "-o", tmp_path / "s.png")[0] == 0
    assert gedi("predict", picture_run, pictures, "-o", tmp_path / "l.csv", *wished[:2])[0] == 2  # not empty
    (tmp_path / "odd").mkdir()
    Image.new("RGB", (9, 7)).save(tmp_path / "odd" / "a.png")
    code, _, err = gedi("predict", picture_run, tmp_path / "odd")
    assert code == 2
    assert "12 x 12" in err


def test_pictures_are_sorted_all_or_none(gedi, picture_run, pictures, tmp_path, monkeypatch):
    monkeypatch.setattr("gedi.verbs.inputs._AT_A_TIME", 10)  # those before the broken one are done by then
    folder = tmp_path / "more"
    shutil.copytree(pictures, folder)
    (folder / "zz.png").write_bytes(b"no picture")
    there = sorted(tmp_path.iterdir())
    wished = ("--sort", tmp_path / "sorted", "--gallery", tmp_path / "g.png", "-o", tmp_path / "l.csv")
    code, _, err = gedi("predict", picture_run, folder, *wished)
    assert code == 2
    assert "zz.png" in err
    assert sorted(tmp_path.iterdir()) == there


def test_pictures_of_every_kind_are_taken_and_what_is_left_out_is_said(gedi, tmp_path):
    folder = tmp_path / "mixed"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(12):
        grey = rng.integers(0, 255, (20, 20)).astype(np.uint8)
        Image.fromarray(grey).save(folder / f"grey{i}.png")
    Image.fromarray(rng.integers(0, 255, (30, 20, 4)).astype(np.uint8), "RGBA").save(folder / "rgba.png")
    Image.fromarray(rng.integers(0, 65535, (20, 20)).astype(np.uint16)).save(folder / "deep.png")
    frames = [Image.new("L", (20, 20), shade) for shade in (0, 200)]
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    short = ("--clusters", "2", "--side", "16", "--iterations", "6")
    code, _, err = gedi("fit", folder, "--out", tmp_path / "run", *short)
    assert code == 0, err
    for said in ("transparency is dropped (1 files)", "16 bits become 8 (1 files)", "the first is taken (1 files)"):
        assert said in err
    assert " grey images among those in colour" in err
    assert len(rows((tmp_path / "run" / "labels.csv").read_text())) == 15
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    code, _, err = gedi("fit", folder, "--out", tmp_path / "again", *short, "--quiet")
    assert code == 2
    assert "broken.png" in err
    assert not (tmp_path / "again").exists()


def test_moments_in_seconds_keep_their_digits(gedi, tmp_path):
    far = X / 1000 + 1.7e9  # in float32 all of it would be one point
    (tmp_path / "far.csv").write_text("a,b,c\n" + "\n".join(",".join(map(repr, row)) for row in far.tolist()))
    np.save(tmp_path / "far.npy", far)
    for name in ("far.csv", "far.npy"):
        code, _, err = gedi("fit", tmp_path / name, "--clusters", "3", "--out", tmp_path / f"{name}-run", *SHORT)
        assert code == 0, err
        held = rows((tmp_path / f"{name}-run" / "labels.csv").read_text())
        assert matched([row["cluster"] for row in held])
        assert max(float(row["outlier_score"]) for row in held) < 10


@pytest.mark.parametrize("columns", [4, 200])
def test_what_is_usual_is_told_by_rows_from_all_over_a_file(gedi, tmp_path, columns):
    rng = np.random.default_rng(0)
    wide = np.concatenate([rng.normal(size=(1200, columns)), 3 * rng.normal(size=(300, columns)) + 5])  # sorted
    np.save(tmp_path / "x.npy", wide)
    code, _, err = gedi("fit", tmp_path / "x.npy", "--clusters", "2", "--out", tmp_path / "run", "--iterations", "2")
    assert code == 0, err
    model = GEDI.load(tmp_path / "run")
    scores = model.outlier_score(wide)  # nothing is lost of wide rows on fewer axes
    assert 0.005 < (scores > 1).mean() < 0.02  # one of 100, as was asked for
    assert abs(np.median(scores)) < 0.1


def bad_table(tmp_path, text):
    (tmp_path / "bad.csv").write_text(text)
    return tmp_path / "bad.csv"


GOOD = "".join(f"{i % 7},{i * i % 11},{i}.5\n" for i in range(30))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b,c\n1,2,3\n", "at least 5 rows"),
        ("a,b,c\n" + GOOD + "1,,3\n", "must be finite"),
        ("a,b,c\n" + GOOD + "1,inf,3\n", "must be finite"),
        ("a,b,c\n" + GOOD + "1,1e30,3\n", "which float32 can square"),
        ("a,b,c\n" + GOOD + "1,word,3\n", "must hold numbers: column 'b' holds 'word'"),
        ("a,b,c\n" + GOOD + "1,2\n", "must hold 3 values"),
        ("", "empty"),
    ],
)
def test_tables_that_cannot_be_learnt_from_are_refused_with_nothing_written(gedi, tmp_path, text, said):
    code, out, err = gedi("fit", bad_table(tmp_path, text), "--clusters", "2", "--out", tmp_path / "run", *SHORT)
    assert (code, out) == (2, "")
    assert said in err
    assert not (tmp_path / "run").exists()


def test_constant_columns_and_copies_are_handled_and_said(gedi, tmp_path):
    text = "a,b,c\n" + "".join(f"{i % 2 * 9},{i % 2},5\n" for i in range(30))
    code, _, err = gedi("fit", bad_table(tmp_path, text), "--clusters", "2", "--out", tmp_path / "run", *SHORT[:2])
    assert code == 0, err
    assert "constant, so without effect: column 'c'" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.csv"], "is not there"),
        (["mnits"], "did you mean 'mnist'"),
        (["{folder}", "--clusters", "2"], "must hold images"),
        (["{folder}/x.npy", "--clusters", "0"], "whole number from 1 on"),
        (["{folder}/x.npy", "--clusters", "2", "--id", "a"], "are for tables"),
        (["{folder}/x.npy", "--clusters", "95"], "fewer than the 90 points"),
        (["{folder}/x.npy", "--encoder", "vgg"], "encoder"),
        (["{folder}/x.doc"], "must be a table or array"),
        (["{folder}/objects.npy"], "could run code"),
    ],
)
def test_what_cannot_be_fitted_is_refused(gedi, tmp_path, words, said):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "objects.npy", np.array([{}, {}], dtype=object))
    (tmp_path / "x.doc").write_text("")
    code, _, err = gedi("fit", *(word.format(folder=tmp_path) for word in words), "--out", tmp_path / "run", *SHORT)
    assert code == 2
    assert said in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_what_does_not_fit_the_model_is_refused_and_no_file_is_left(gedi, run, tmp_path):
    cases = {
        "length,width\n1,2\n": "'height'",
        "length,width,height\n1,2,word\n": "holds 'word'",
        "length,width,height\n1,2,\n": "a number in every row",
    }
    for text, said in cases.items():
        code, _, err = gedi("predict", run, bad_table(tmp_path, text), "-o", tmp_path / "l.csv", "--quiet")
        assert code == 2
        assert said in err
    np.save(tmp_path / "wide.npy", np.zeros((5, 7)))
    assert gedi("predict", run, tmp_path / "wide.npy", "-o", tmp_path / "l.csv", "--quiet")[0] == 2
    assert gedi("predict", run, tmp_path / "bad.csv", "-o", tmp_path / "l.txt", "--quiet")[0] == 2
    assert {path.name for path in Path(tmp_path).iterdir()} == {"bad.csv", "wide.npy"}
