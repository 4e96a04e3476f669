"""What ``GEDI.fit``, ``predict`` and ``gedi fit`` must refuse."""

import datetime
import pickle
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sparse
from calls import Called, Typed

from gedi import GEDI

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(30, 3)), RNG.normal(size=(30, 3)) + 9])
FRAME = pd.DataFrame(X, columns=list("abc"))
CSV = "a,b,c\n" + "".join(f"{a:.4f},{b:.4f},{c:.4f}\n" for a, b, c in X)


def fit(name, given, says, error=ValueError, **settings):
    return Called(
        f"fit {name}", lambda _: GEDI(**{"n_clusters": 2, "iterations": 2, **settings}).fit(given), says, error
    )


@cache
def fitted():
    return GEDI(2, iterations=2, random_state=0).fit(X)


def predict(name, given, says, error=ValueError):
    return Called(f"predict {name}", lambda _: fitted().predict(given), says, error)


def at(value, row=7, column=1):
    held = X.copy()
    held[row, column] = value
    return held


def typed(name, file, content, says, more="--clusters 2"):
    given = file.partition("/")[0]
    return Typed(f"gedi fit {name}", f"fit {given} {more} --out run --iterations 2 --quiet", says, {file: content})


def pictures(path):
    np.save(path, np.zeros((3, 8, 8), np.uint8))


ROWS = [
    fit("nan", at(np.nan), 'row 7, column 1); drop or fill those rows, or set missing="fill"'),
    fit("inf", at(-np.inf), "1 of 60 rows hold infinity (the first is row 7, column 1)"),
    fit("inf where what is missing is filled", at(np.inf), "hold infinity (the first is row 7", missing="fill"),
    fit("1e30", at(1e30), "got 1e+30 in row 7, column 1"),
    fit("inf in a frame", FRAME.replace(FRAME.iloc[3, 1], np.inf), "row 3, column 'b'"),
    fit("1e30 in a frame", FRAME.replace(FRAME.iloc[3, 1], 1e30), "row 3, column 'b'"),
    fit("one row", X[:1], "minimum of 4 is required"),
    fit("no rows", X[:0], "minimum of 4 is required"),
    fit("no columns", X[:, :0], "0 feature(s)"),
    fit("as many clusters as points", X, "must be fewer than the 60 points, got 60", n_clusters=60),
    fit("batches of one point", X, "batch_size must be a whole number from 2 on", batch_size=1),
    fit("words", np.array([["1", "b"]] * 20), "got 'b' in row 0, column 1; columns of words are taken from a frame"),
    fit("a word among objects", np.where(X[3, 1] == X, "a", X.astype(object)), "got 'a' in row 3, column 1"),
    fit("nothing among objects", np.where(X[3, 1] == X, None, X.astype(object)), "the first is row 3, column 1"),
    fit("dates", np.zeros((9, 2), "M8[s]"), "got dates or times (datetime64[s])"),
    fit("what is masked", np.ma.masked_array(X, X[3, 1] == X), "1 of 60 rows hold NaN (the first is row 3, column 1)"),
    fit("sparse rows", sparse.csr_matrix(X), "toarray()", TypeError),
    fit("images of NaN", np.full((20, 1, 8, 8), np.nan), "20 of 20 hold NaN or infinity"),
    fit("images without channels", RNG.random((20, 8, 8)), "give X[:, None] if these are grey images"),
    fit("images of 16 bits", RNG.integers(0, 65535, (20, 1, 8, 8)), "divide them by the value of white"),
    predict("nan", at(np.nan), "the first is row 7, column 1"),
    predict("too few columns", X[:, :2], "X has 2 features, but GEDI is expecting 3"),
    predict("no rows", X[:0], "minimum of 1 is required"),
    predict("images", np.zeros((3, 1, 8, 8)), "points must be like those trained on"),
]
FRAMES = [
    fit("two columns of one name", pd.DataFrame(X, columns=["a", "a", "b"]), "must have different names"),
    fit("no columns of a frame", pd.DataFrame(index=range(9)), "at least one column"),
    fit("a lazy frame", pl.DataFrame({"a": [1.0] * 9}).lazy(), "collect()"),
    fit(
        "moments", FRAME.assign(d=pd.date_range("2020", periods=60)), "column 'd' must hold numbers or words, got Date"
    ),
    fit("days", FRAME.assign(d=[datetime.date(2020, 1, 1)] * 60), "got date"),
    fit("a column of ids", FRAME.assign(d=[f"id {i}" for i in range(60)]), "words of at most 50 kinds, got 60"),
    fit("missing values", FRAME.mask(FRAME > 10), "set missing="),
    fit("a column of nothing", FRAME.assign(z=np.nan), "holds nothing; leave it out", missing="fill"),
]
FOLDERS = [
    Called("a model saved over a file", lambda folder: _over_a_file(folder), "is a file; give another name"),
    Called("a model that is nowhere", lambda folder: GEDI.load(folder / "m"), "must exist"),
    Called("a model that is a pickle", lambda folder: _pickled(folder), "got the file 'm.pkl'"),
    Called("a truncated model", lambda folder: _truncated(folder), "its checksum is not the one kept"),
    typed("two columns of one name", "a.csv", CSV.replace("a,b,c", "a,a,c"), "2 are called 'a'"),
    typed("as many clusters as points", "a.csv", CSV, "fewer than the 60 points", "--clusters 60"),
    typed("pictures whose clusters nobody counts", "p.npy", pictures, "give --clusters K, or count those of", more=""),
    typed("three pictures", "p.npy", pictures, "at least 5 images are needed"),
    typed("a folder without pictures", "p/a.txt", "no picture", "must hold images"),
]


def _over_a_file(folder):
    (folder / "m").write_text("")
    fitted().save(folder / "m")


def _pickled(folder):
    (folder / "m.pkl").write_bytes(pickle.dumps(1))
    GEDI.load(folder / "m.pkl")


def _truncated(folder):
    fitted().save(folder / "m")
    weights = folder / "m" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    GEDI.load(folder / "m")


CALLS = [*ROWS, *FRAMES, *FOLDERS]
