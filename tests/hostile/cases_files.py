"""Tables and arrays that must be refused."""

import codecs
import io
import os
import pickle
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from calls import Called, Typed

from gedi.data import Dataset, load_arrays, load_points

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
ROWS = "".join(f"{a:.4f},{b:.4f},{c:.4f}\n" for a, b, c in X)
GOOD = "a,b,c\n" + ROWS


def file(name, content, says, file, more="", command="run toy"):
    """A run on one file of one's own."""
    given = f"{command} --set data.name=file --set data.path={file} --set model.clusters=2 {more}"
    return Typed(name, given, says, {file: content})


def saved(array, **options):
    """An array as np.save writes it."""
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def zipped(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def header(shape, descr="<f8", fortran=False):
    """A .npy file that claims a shape and holds three numbers."""
    text = repr({"descr": descr, "fortran_order": fortran, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(24)


def bomb(path: Path) -> None:
    """A .npz of a few kilobytes that claims to unpack to four gigabytes."""
    name, zeros = b"x.npy", bytes(2**20)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    content = packer.compress(zeros) + packer.flush()
    size = 2**32 - 2
    fields = (20, 0, 8, 0, 0, zlib.crc32(zeros), len(content), size, len(name), 0)
    local = struct.pack("<4s5H3L2H", b"PK\3\4", *fields) + name
    entry = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, *fields[:9], 0, 0, 0, 0, 0, 0) + name
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(entry), len(local) + len(content), 0)
    path.write_bytes(local + content + entry + end)


def packed(method, name="x.npy"):
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", method) as held:
            held.writestr(name, saved(X))

    return write


class Evil:
    def __reduce__(self):
        return (open, ("pwned", "w"))


def objects(path: Path) -> None:
    np.save(path, np.array([Evil(), Evil()], dtype=object), allow_pickle=True)


def parquet(**columns):
    def write(path: Path) -> None:
        pq.write_table(pa.table(columns), path)

    return write


def with_row(row):
    return GOOD + row + "\n" + ROWS


def huge(value, row=7, column=1):
    x = X.copy()
    x[row, column] = value
    return x


TEXT = [
    file("utf-16 without a mark", GOOD.encode("utf-16-le"), "UTF-16 without a byte order mark", "a.csv"),
    file("utf-16 cut in a character", codecs.BOM_UTF16_LE + GOOD.encode("utf-16-le")[:-1], "is cut off", "a.csv"),
    file("utf-32", GOOD.encode("utf-32"), "is UTF-32", "a.csv"),
    file("latin-1", GOOD.replace("a,b", "é,b").encode("latin-1"), "byte 0xe9 in line 1", "a.csv"),
    file("latin-1 far down", (GOOD * 3).encode() + b"\xfc,1,2\n", "save it as UTF-8", "a.csv"),
    file("zero bytes", GOOD.encode() + b"1,\0,3\n", "holds zero bytes", "a.csv"),
    file("an image called csv", b"\x89PNG\r\n\x1a\n" + bytes(50), "must be text in UTF-8", "a.csv"),
    file("empty file", "", "is empty", "a.csv"),
    file("blank lines alone", "\n\n  \n", "is empty", "a.csv"),
    file("a mark and nothing else", codecs.BOM_UTF8, "is empty", "a.csv"),
    file("header alone", "a,b,c\n", "at least one row", "a.csv"),
    file("one row", "1,2,3\n", "at least 5 rows", "a.csv"),
    file("four rows", "a,b\n1,2\n3,4\n5,7\n7,7\n", "at least 5 rows", "a.csv"),
    file("label column alone", "label\n" + "a\nb\n" * 20, "must hold a column of numbers besides labels", "a.csv"),
    file("label and id alone", "id,label\n" + "".join(f"{i},{i % 2}\n" for i in range(40)), "besides labels", "a.csv"),
    file("no numbers at all", "name,kind\n" + "ann,x\nbob,y\n" * 20, "column 'name' holds 'ann' in line 2", "a.csv"),
    file("a word among numbers", with_row("1,oops,3"), "column 'b' holds 'oops' in line 42", "a.csv"),
    file("a unit in a cell", with_row("1,2 cm,3"), "data.drop=['b']", "a.csv"),
    file("a date", "day,v\n" + "".join(f"2020-01-{i + 10},{i}.5\n" for i in range(20)), "'2020-01-10'", "a.csv"),
    file("an empty cell", with_row("1,,3"), "the first is line 42, column 'b'", "a.csv"),
    file("NA", with_row("NA,2,3"), "line 42, column 'a'", "a.csv"),
    file("infinity", with_row("1,2,-inf"), "line 42, column 'c'", "a.csv"),
    file("1e30", with_row("1,1e30,3"), "got 1e+30 in line 42, column 'b'", "a.csv"),
    file("1e400", with_row("1,1e400,3"), "line 42, column 'b'", "a.csv"),
    file("a number a million times off", with_row("1,2,3e9"), "3e+09 in line 42, column 'c'", "a.csv"),
    file("too few values", with_row("1,2"), "line 42 must hold 3 values like the first, got 2", "a.csv"),
    file("too many values", with_row("1,2,3,4"), "got 4", "a.csv"),
    file("an open quote", GOOD + '1,"2,3\n' + ROWS, "line 42 must hold 3 values", "a.csv"),
    file("a field of a megabyte", "a,b\n" + "9" * 2**20 + ",1\n" + "1,2\n" * 9, "field limit", "a.csv"),
    file("a huge field far down", with_row("1,2," + "x" * 2**20), "column 'c' holds 'xxx", "a.csv"),
    file("labels that are missing", "a,label\n" + "1,x\n2,\n4,y\n" * 9, "9 of 27 are missing in 'label'", "a.csv"),
    file("labels that are all missing", "a,label\n" + "1,\n2,NaN\n" * 9, "18 of 18 are missing", "a.csv"),
    file("labels that are fractions", GOOD, "whole numbers or words", "a.csv", "--set data.label=b"),
    file("a label column that is not there", GOOD, "unknown column in data.label", "a.csv", "--set data.label=d"),
    file("an id column that is not there", GOOD, "unknown column in data.id", "a.csv", "--set data.id=number"),
    file("a dropped column that is not there", GOOD, "did you mean", "a.csv", "--set data.drop=[aa]"),
    file("every column dropped", GOOD, "must hold a column of numbers", "a.csv", "--set data.drop=[a,b,c]"),
    file("a name that is there twice", "a,a,b\n" + ROWS, "has 2 called 'a'", "a.csv", "--set data.drop=[a]"),
    file("a delimiter of two characters", GOOD, "must be one character", "a.csv", "--set data.delimiter=ab"),
    file("drop is no list", GOOD, "data.drop", "a.csv", "--set data.drop=5"),
    file("decimal comma and point mixed", "a;b\n" + "1,5;2,5\n" * 20 + "1.5;2,5\n", "holds '1.5' in line 22", "a.csv"),
    file("groups that are not whole", GOOD, "no multiple of data.group_size=7", "a.csv", "--set data.group_size=7"),
    file("another kind of file", GOOD, "data.path must end in", "a.xlsx"),
    file("tabs where commas are", GOOD, "column '", "a.tsv"),
]

CODE = b"\x93NUMPY\x01\x00\x20\x00" + b"__import__('os').getcwd()".ljust(32)
ARRAYS = [
    file("text called npy", b"1 2 3\n4 5 6\n", "does not begin like an array", "a.npy"),
    file("an empty npy", b"", "does not begin like an array", "a.npy"),
    file("a pickle called npy", pickle.dumps([1, 2]), "cannot be read as .npy", "a.npy"),
    file("objects in npy", objects, "holds Python objects, which could run code", "a.npy"),
    file("1e12 points", header((10**12, 2)), "but is 152 bytes", "a.npy"),
    file("1e30 points", header((10**30, 2)), "cannot be read as .npy", "a.npy"),
    file("a negative shape", header((-5, 2)), "cannot be read as .npy", "a.npy"),
    file(
        "a header that is code",
        b"\x93NUMPY\x01\x00\x20\x00" + b"__import__('os').getcwd()".ljust(32),
        "cannot",
        "a.npy",
    ),
    file("a header of 60 kB", b"\x93NUMPY\x01\x00\x60\xea" + b"{" * 60000, "cannot be read as .npy", "a.npy"),
    file("a cut npy", saved(X)[:-9], "it ends too early", "a.npy"),
    file("fields", saved(np.zeros(5, [("u", "f8"), ("v", "i4")])), "has fields (u, v)", "a.npy"),
    file("complex numbers", saved(X + 1j), "must hold real numbers, got complex128", "a.npy"),
    file("words", saved(np.array([["a", "b"]] * 9)), "must hold real numbers", "a.npy"),
    file("dates", saved(np.zeros((9, 2), "M8[s]")), "must hold real numbers", "a.npy"),
    file("a single number", saved(np.array(3.0)), "got shape ()", "a.npy"),
    file("a list", saved(np.arange(9.0)), "got shape (9,)", "a.npy"),
    file("no rows", saved(np.zeros((0, 2))), "got shape (0, 2)", "a.npy"),
    file("no columns", saved(np.zeros((9, 0))), "got shape (9, 0)", "a.npy"),
    file("1e30 in an array", saved(huge(1e30)), "got 1e+30 in row 7, column 1", "a.npy"),
    file("-1e200 in an array", saved(huge(-1e200)), "row 7, column 1", "a.npy"),
    file("nan in an array", saved(huge(np.nan)), "1 of 40 rows hold NaN or infinity", "a.npy"),
    file("y of shape (n, 2)", zipped(x=X, y=np.zeros((40, 2))), "got 40 rows and (40, 2)", "a.npz"),
    file("y without a shape", zipped(x=X, y=np.array(1)), "got 40 rows and ()", "a.npz"),
    file("y all NaN", zipped(x=X, y=np.full(40, np.nan)), "40 of 40 are NaN", "a.npz"),
    file("y partly NaN", zipped(x=X, y=np.r_[np.nan, np.zeros(39)]), "1 of 40 are NaN", "a.npz"),
    file("y of fractions", zipped(x=X, y=X[:, 0]), "whole numbers or text", "a.npz"),
    file("y complex", zipped(x=X, y=X[:, 0] + 1j), "whole numbers or text, got complex128", "a.npz"),
    file("y too short", zipped(x=X, y=np.zeros(39)), "got 40 rows and (39,)", "a.npz"),
    file("no x", zipped(points=X), "must hold an array named 'x', got points", "a.npz"),
    file("nothing inside", zipped(), "got none", "a.npz"),
    file("a member outside the folder", packed(zipfile.ZIP_STORED, "../../x.npy"), "got ../../x", "a.npz"),
    file("packed by lzma", packed(zipfile.ZIP_LZMA), "must be packed as NumPy packs", "a.npz"),
    file("a cut npz", zipped(x=X)[:-30], "cannot be read as .npz", "a.npz"),
    file("a bomb", bomb, "must not unpack to more than 100 times its size", "a.npz"),
    file("a table's wish for an array", saved(X), "are for tables", "a.npy", "--set data.label=y"),
]

PARQUET = [
    file("text called parquet", GOOD, "cannot be read as .parquet", "a.parquet"),
    file("parquet cut", b"PAR1" + bytes(50) + b"PAR1", "cannot be read as .parquet", "a.parquet"),
    file("lists", parquet(a=[[1.0, 2.0]] * 9), "column 'a' is list", "a.parquet"),
    file("moments", parquet(a=pa.array([0] * 9, pa.timestamp("s"))), "column 'a' is timestamp", "a.parquet"),
    file("no columns in parquet", parquet(), "must hold columns", "a.parquet"),
    file("no rows in parquet", parquet(a=pa.array([], pa.float64())), "must hold columns", "a.parquet"),
    file("a missing value in parquet", parquet(a=[1.0, None] * 9), "the first is row 1, column 'a'", "a.parquet"),
    file("1e30 in parquet", parquet(a=[1.0, 2.0, 1e30] * 9), "row 2, column 'a'", "a.parquet"),
]


def _dataset(**change):
    given = {"train": torch.zeros(5, 2), "test": torch.zeros(5, 2)} | change
    return lambda _: Dataset("mine", **given)


POINTS = [
    Called("complex points", _dataset(train=torch.zeros(5, 2, dtype=torch.complex64)), "must be real numbers"),
    Called("points of 1e30", _dataset(train=torch.full((5, 2), 1e30)), "which float32 can square"),
    Called("labels that are NaN", _dataset(train_labels=torch.full((5,), torch.nan)), "some are NaN"),
    Called("labels (n, 2)", _dataset(train_labels=torch.zeros(5, 2)), "must be one for each of the 5 points"),
    Called("a folder in place of a file", load_arrays, "is not there"),
    Called("a limit that is no size", lambda folder: _limited(folder, "plenty"), "must be a number of bytes"),
    Called("a limit that is too small", lambda folder: _limited(folder, "100"), "set GEDI_MEMORY_LIMIT"),
]


def _limited(folder: Path, limit: str) -> None:
    np.save(folder / "a.npy", X)
    os.environ["GEDI_MEMORY_LIMIT"] = limit
    try:
        load_points(folder / "a.npy")
    finally:
        del os.environ["GEDI_MEMORY_LIMIT"]


CALLS = [*TEXT, *ARRAYS, *PARQUET, *POINTS]
