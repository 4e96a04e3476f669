"""The known image data sets: their official files, where those are, and how to know them.

An entry is data only. A file says which parts of the set it holds, so a new set needs its names, addresses,
checksums and, if its format is new, one function from bytes to arrays: several files may give one part (they are
put one after another), and one file may give several parts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from gedi.data.idx import parse_idx
from gedi.errors import UserError, unknown

#: ``train``, ``train_labels``, ``test``, ``test_labels``: images (n, c, h, w) uint8, labels (n,).
Parts = dict[str, np.ndarray]


@dataclass(frozen=True)
class OfficialFile:
    """One file of a data set.

    Attributes:
        name: as it is published; ending in .gz if it is compressed.
        parse: its decompressed bytes, and a name for errors, to the parts it holds.
        raw_md5: of the decompressed bytes, if known.
        md5: of the file as it is published, if known.
    """

    name: str
    parse: Callable[[bytes, str], Parts]
    raw_md5: str | None = None
    md5: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names it may have on disk: as published, or decompressed."""
        return (self.name, self.name.removesuffix(".gz")) if self.name.endswith(".gz") else (self.name,)


@dataclass(frozen=True)
class Entry:
    """One known data set.

    Attributes:
        name: what it is called, and its folder's name.
        about: one line for the list.
        urls: folders on the web, the first one first; each ends in a slash.
        files: in the order in which their parts are put together.
    """

    name: str
    about: str
    urls: tuple[str, ...]
    files: tuple[OfficialFile, ...]


def find_entry(name: str) -> Entry:
    """The entry of a name.

    Example:
        >>> find_entry("mnist").files[0].name
        'train-images-idx3-ubyte.gz'
        >>> find_entry("mnits")
        Traceback (most recent call last):
        gedi.errors.UserError: unknown data set 'mnits': did you mean 'mnist'? Valid: fashion-mnist, mnist
    """
    if name not in CATALOGUE:
        raise unknown("data set", name, CATALOGUE)
    return CATALOGUE[name]


def _idx_images(part: str, content: bytes, name: str) -> Parts:
    return {part: _expect(parse_idx(content, name), 3, name)[:, None]}  # (n, h, w) -> (n, 1, h, w)


def _idx_labels(part: str, content: bytes, name: str) -> Parts:
    return {f"{part}_labels": _expect(parse_idx(content, name), 1, name)}


def _expect(values: np.ndarray, dims: int, name: str) -> np.ndarray:
    if values.ndim != dims or values.dtype != np.uint8:
        raise UserError(
            f"{name} must hold a uint8 array of {dims} dimensions, got {values.dtype} of {values.ndim}; "
            "get the file again"
        )
    return values


def _idx_files(md5: dict[str, str], raw_md5: dict[str, str]) -> tuple[OfficialFile, ...]:
    """The four files that MNIST and its successors share the names of."""
    return tuple(
        OfficialFile(f"{prefix}-{kind}-ubyte.gz", partial(parse, part), raw_md5.get(f"{prefix}-{kind}"),
                     md5.get(f"{prefix}-{kind}"))
        for part, prefix in (("train", "train"), ("test", "t10k"))
        for kind, parse in (("images-idx3", _idx_images), ("labels-idx1", _idx_labels))
    )  # fmt: skip


#: Every known image data set by name.
CATALOGUE: dict[str, Entry] = {
    "mnist": Entry(
        "mnist",
        "handwritten digits, 28 x 28 grey, 60,000 train and 10,000 test",
        ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
        _idx_files(
            md5={},  # the archives were compressed more than once; their content is what is official
            raw_md5={
                "train-images-idx3": "6bbc9ace898e44ae57da46a324031adb",
                "train-labels-idx1": "a25bea736e30d166cdddb491f175f624",
                "t10k-images-idx3": "2646ac647ad5339dbf082846283269ea",
                "t10k-labels-idx1": "27ae3e4e09519cfbb04c329615203637",
            },
        ),
    ),
    "fashion-mnist": Entry(
        "fashion-mnist",
        "clothes in MNIST's format, 28 x 28 grey, 60,000 train and 10,000 test",
        ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
        _idx_files(
            md5={
                "train-images-idx3": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                "train-labels-idx1": "25c81989df183df01b3e8a0aad5dffbe",
                "t10k-images-idx3": "bef4ecab320f06d8554ea6380940ec79",
                "t10k-labels-idx1": "bb300cfdad3c16e7a12a480ee83cd310",
            },
            raw_md5={},
        ),
    ),
}
