"""Images, archives and downloads that must be refused."""

import gzip
import io
import json
import os
import pickle
import struct
import tarfile
import zlib
from pathlib import Path

import numpy as np
from calls import Called, Typed
from PIL import Image

from gedi.data import fetch, load_folder, load_image_arrays, load_images, load_shards, read_idx
from gedi.data.archive import read_members, read_unpacked
from gedi.data.cifar import parse_batch, parse_rows
from gedi.data.decode import pixels_of
from gedi.data.idx import parse_idx
from gedi.data.svhn import parse_mat

X = np.random.default_rng(0).integers(0, 256, (10, 8, 8), np.uint8)


def image(size=(8, 8), kind="PNG", mode="L"):
    stream = io.BytesIO()
    Image.new(mode, size).save(stream, kind)
    return stream.getvalue()


GOOD = image()


def photos(name, content, says, file="photos/b.png", more=""):
    """A run on a folder with a good image and another."""
    given = f"run digits --set data.name=images --set data.path=photos --set model.clusters=2 {more}"
    return Typed(name, given, says, {"photos/a.png": GOOD, file: content})


def arrays(name, content, says, file="a.npz"):
    given = f"run digits --set data.name=images --set data.path={file} --set model.clusters=2"
    return Typed(name, given, says, {file: content})


def shards(name, files, says, more=""):
    given = f"run digits --set data.name=shards --set data.path=s --set model.clusters=2 {more}"
    return Typed(name, given, says, {f"s/{file}": content for file, content in files.items()})


def zipped(**held):
    stream = io.BytesIO()
    np.savez(stream, **held)
    return stream.getvalue()


def saved(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def claimed_png(width, height):
    """A PNG of a hundred bytes that claims any size."""

    def chunk(kind, content):
        return struct.pack(">L", len(content)) + kind + content + struct.pack(">L", zlib.crc32(kind + content))

    about = struct.pack(">2L5B", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", about) + chunk(b"IDAT", zlib.compress(bytes(10))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def tar(members, change=None):
    """A tar archive of members by name; ``change`` may alter what the header of each says."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if change:
                change(info)
            archive.addfile(info, io.BytesIO(content) if info.isfile() else None)
    return stream.getvalue()


def link(info):
    info.type, info.linkname, info.size = tarfile.SYMTYPE, "/etc/passwd", 0


def sparse(name, size):
    """A tar archive whose member is one hole of any size."""
    header = bytearray(tar({name: b""})[:512])
    header[156:157] = b"S"
    header[386:410] = b"%011o\0" % size + b"%011o\0" % 0
    header[483:495] = b"%011o\0" % size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(1024)


def cut(info_size):
    content = bytearray(tar({"000.png": GOOD}))
    content[124:136] = b"%011o\0" % info_size
    content[148:156] = b" " * 8
    content[148:156] = b"%06o\0 " % sum(content[:512])
    return bytes(content)


def mat_of_zeros(size):
    """A MATLAB file with one variable that unpacks to so many zeros."""
    packer = zlib.compressobj(1)
    packed = b"".join(packer.compress(bytes(2**20)) for _ in range(size // 2**20)) + packer.flush()
    return b"MATLAB 5.0".ljust(124) + struct.pack("<H2s", 0x0100, b"IM") + struct.pack("<2L", 15, len(packed)) + packed


def put(content, name="file"):
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def _folder_within(folder: Path, limit: str) -> None:
    """Four images of a megabyte, and so much memory."""
    for name in "abcd":
        (folder / f"{name}.png").write_bytes(image((1024, 1024)))
    os.environ["GEDI_MEMORY_LIMIT"] = limit
    try:
        load_folder(folder)
    finally:
        del os.environ["GEDI_MEMORY_LIMIT"]


FOLDERS = [
    photos("text called png", b"not an image", "must be an image, but cannot be read"),
    photos("an empty image", b"", "must be an image, but cannot be read"),
    photos("a cut image", GOOD[: len(GOOD) // 2], "must be an image, but cannot be read"),
    photos("an image without its end", GOOD[:-12], "photos/b.png"),
    photos("a web page", "<html>moved</html>", "must be an image, but cannot be read", "photos/b.jpg"),
    photos("a drawing that could run programs", b"%!PS-Adobe-3.0 EPSF-3.0\n", "must be an image", "photos/b.jpg"),
    photos("a billion pixels", claimed_png(40_000, 30_000), "1200000000 pixels"),
    photos("150 million pixels", claimed_png(15_000, 10_000), "15000 x 10000, more than 100,000,000 pixels"),
    photos("a claim of 2^31 pixels a side", claimed_png(2**31 - 1, 2**31 - 1), "must be an image"),
    photos("no pixels", claimed_png(0, 0), "must be an image"),
    photos("another size", image((9, 8)), "images must have one size"),
    photos("another size in tar's words", image((8, 9)), "give a side to scale them to"),
    photos("an image beside the classes", GOOD, "must be in the folder of its class", "photos/cats/b.png"),
    photos("a side of nothing", GOOD, "data.side", more="--set data.side=0"),
    photos("a side beyond any image", GOOD, "most of it for data.side=9000000", more="--set data.side=9000000"),
    Called("images beyond memory", lambda f: _folder_within(f, "1M"), "must fit in memory"),
    photos("a side that is a word", GOOD, "data.side", more="--set data.side=small"),
    photos("test without train", GOOD, "must have a folder train", "photos/test/b.png"),
    Typed("a folder that is not there", "run digits --set data.name=images --set data.path=none", "is not there"),
    Typed("a folder without images", "run digits --set data.name=images --set data.path=p", "holds none", {"p/a": "b"}),
]

ARRAYS = [
    arrays("images of complex numbers", zipped(x=X + 1j), "must be uint8 or float in [0, 1], got complex128"),
    arrays("images of words", zipped(x=X.astype(str)), "must be uint8 or float in [0, 1]"),
    arrays("images out of range", zipped(x=X * 1.0), "must be floats in [0, 1]"),
    arrays("images that are NaN", zipped(x=X * np.nan), "must be floats in [0, 1], got nan"),
    arrays("a table as images", zipped(x=X[0]), "must be images (n, h, w)"),
    arrays("labels (n, 2) of images", zipped(x=X, y=np.zeros((10, 2))), "got 10 rows and (10, 2)"),
    arrays("a label without a shape", zipped(x=X, y=np.array(3)), "got 10 rows and ()"),
    arrays("labels of images that are NaN", zipped(x=X, y=np.full(10, np.nan)), "10 of 10 are NaN"),
    arrays("labels of a test part alone", zipped(x=X, y_test=np.zeros(3)), "so it must hold x_test"),
    arrays("text called npy", b"1 2 3", "does not begin like an array", "a.npy"),
    Called("objects as images", lambda f: load_image_arrays(put(_objects(), "a.npy")(f)), "which could run code"),
]


def _objects():
    stream = io.BytesIO()
    np.save(stream, np.array([{}, {}], dtype=object), allow_pickle=True)
    return stream.getvalue()


CLS = {"000.cls": b"0", "001.png": GOOD, "001.cls": b"1"}
SHARDS = [
    shards("text called tar", {"a.tar": b"not an archive"}, "must be a whole .tar file"),
    shards("a packed tar", {"a.tar": gzip.compress(tar({"0.png": GOOD}))}, "must not be compressed as a whole"),
    shards("a link in a tar", {"a.tar": tar({"000.png": b""}, link)}, "must be a plain file"),
    shards("a hole of a terabyte", {"a.tar": sparse("000.png", 2**33 - 1)}, "a.tar"),
    shards("a member that claims a gigabyte", {"a.tar": cut(2**30)}, "ends inside '000.png'"),
    shards("a tar cut short", {"a.tar": tar({"000.png": GOOD})[:1024]}, "whole .tar file"),
    shards("a tar without images", {"a.tar": tar({"000.txt": b"x"})}, "must hold images"),
    shards("a label without its image", {"a.tar": tar(CLS)}, "a label must have its image"),
    shards("a label of a megabyte", {"a.tar": tar({"0.png": GOOD, "0.cls": b"1" * (2**20 + 1)})}, "must hold a label"),
    shards("a label that is no text", {"a.tar": tar({"0.png": GOOD, "0.cls": b"\xff\xfe"})}, "must hold a label"),
    shards("a label nested without end", {"a.tar": tar({"0.png": GOOD, "0.json": b"[" * 10**5})}, "must hold a label"),
    shards("a label that is a list", {"a.tar": tar({"0.png": GOOD, "0.json": b'{"label": [1]}'})}, "number or text"),
    shards("a broken image in a tar", {"a.tar": tar({"0.png": b"no image"})}, "must be an image"),
    shards("a billion pixels in a tar", {"a.tar": tar({"0.png": claimed_png(40000, 30000)})}, "1200000000 pixels"),
    shards("1e12 rows in a shard", {"x-0.npy": saved(X)[:128].replace(b"10, 8", b"9e9, 8")}, "x-0.npy"),
    Called("1e30 in a shard", lambda f: load_shards(put(saved(np.full((9, 2), 1e30)), "x-0.npy")(f)), "float32 can"),
    shards("complex numbers in a shard", {"x-0.npy": saved(np.zeros((9, 2)) + 1j)}, "must hold numbers"),
    shards("labels (n, 2) in a shard", {"x-0.npy": saved(X), "y-0.npy": saved(np.zeros((10, 2)))}, "(10, 2)"),
    shards("labels that are NaN in a shard", {"x-0.npy": saved(X), "y-0.npy": saved(X[:, 0, 0] * np.nan)}, "are NaN"),
    shards("labels alone", {"y-0.npy": saved(np.zeros(9))}, "must be there beside it"),
    Called("a folder with no shards", load_shards, "must give shards"),
    Called("a pattern with nothing behind it", lambda f: load_shards(f / "a-{0..9}.tar"), "is not there"),
]

WILD = b"\x80\x02}r\xff\xff\xff\x3f."  # a dictionary that wants place 2^30 of the memo
ARCHIVES = [
    Called("an idx file of 200 dimensions", lambda _: parse_idx(bytes([0, 0, 8, 200]) + bytes(800), "x"), "claims 200"),
    Called("an idx file of 1e12 values", lambda _: parse_idx(b"\0\0\x08\2" + b"\0\xff" * 4, "x"), "truncated"),
    Called("a gzip of another kind", lambda f: read_idx(put(b"\x1f\x8b\x09" + bytes(20))(f)), "whole gzip file"),
    Called("a gzip beyond its size", lambda f: read_unpacked(put(gzip.compress(bytes(9999)))(f), 999), "at most"),
    Called("gzips one after another", lambda f: read_unpacked(put(gzip.compress(bytes(99)) * 99)(f), 999), "at most"),
    Called("a hole in an archive", lambda _: read_members(sparse("a", 2**33 - 1), ["a"], "x.tar"), "x.tar"),
    Called("a link in an archive", lambda _: read_members(tar({"a": b""}, link), ["a"], "x.tar"), "must hold a"),
    Called("a member outside", lambda _: read_members(tar({"../a": b"1"}), ["a"], "x.tar"), "must hold a"),
    Called("no archive", lambda _: read_members(b"\1" * 600, ["a"], "x.tar"), "whole tar archive"),
    Called("a batch that runs code", lambda _: parse_batch(pickle.dumps(print), "b", 10), "could run code"),
    Called("a batch that wants all memory", lambda _: parse_batch(WILD, "b", 10), "places of memory"),
    Called("a batch that ends", lambda _: parse_batch(b"\x80\x04\x8e" + b"\xff" * 8, "b", 10), "cannot be read"),
    Called("half a row", lambda _: parse_rows(bytes(100), "b", 10), "is truncated"),
    Called("a mat of zeros", lambda _: parse_mat(mat_of_zeros(2**29), "m"), "100 times its size"),
    Called("no mat", lambda _: parse_mat(b"\0" * 300, "m"), "whole MATLAB file"),
    Called("an image of nothing", lambda _: pixels_of(io.BytesIO(b""), "i", 3, None), "must be an image"),
    Called("a set that is not known", lambda f: load_images("mnits", f), "did you mean 'mnist'"),
    Called("a set that is not known to get", lambda f: fetch("../../x", f), "unknown data set"),
    Called("a folder with nothing", lambda f: load_images("mnist", f), "must be on this machine"),
    Called("a file as a folder", lambda f: load_folder(put(b"")(f)), "a folder of images must exist"),
    Called("a label of another kind", lambda f: load_shards(_json_label(f)), "number or text"),
]


def _json_label(folder: Path) -> Path:
    (folder / "a.tar").write_bytes(tar({"0.png": GOOD, "0.json": json.dumps({"label": 0.5}).encode()}))
    return folder


CALLS = [*FOLDERS, *ARRAYS, *SHARDS, *ARCHIVES]
