"""The known image data sets: their official files, where those are, and how to know them.

An entry is data only. A set may lie on disk in several layouts (an archive, what was in it, another format); each is a
few files. A file says which parts of the set it holds, so a new set needs its names, addresses, checksums and, if its
format is new, one function from bytes to arrays: several files may give one part (they are put one after another), and
one file may give several parts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from gedi.data.cifar import parse_batch, parse_rows
from gedi.data.idx import parse_idx
from gedi.data.svhn import parse_mat
from gedi.errors import UserError, unknown

#: ``train``, ``train_labels``, ``test``, ``test_labels``: images (n, c, h, w) uint8, labels (n,).
Parts = dict[str, np.ndarray]


@dataclass(frozen=True)
class OfficialFile:
    """One file of a data set.

    Attributes:
        name: as it is published, with its folder inside an archive; ending in .gz if it is compressed.
        parse: its decompressed bytes, and a name for errors, to the parts it holds; None for an archive.
        raw_md5: of the decompressed bytes, if known.
        md5: of the file as it is published, if known.
        members: what an archive holds of the set.
        most: bytes that neither the file nor what it unpacks to is larger than; None: not known.
    """

    name: str
    parse: Callable[[bytes, str], Parts] | None
    raw_md5: str | None = None
    md5: str | None = None
    members: tuple["OfficialFile", ...] = ()
    most: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names it may have on disk: as published, decompressed, or without its folder."""
        bare = self.name.rpartition("/")[2]
        return tuple(dict.fromkeys((self.name, self.name.removesuffix(".gz"), bare)))

    @property
    def sums(self) -> set[str]:
        """Every checksum that is known of it and of what is in it."""
        return {md5 for file in (self, *self.members) for md5 in (file.raw_md5, file.md5) if md5}


@dataclass(frozen=True)
class Entry:
    """One known data set.

    Attributes:
        name: what it is called, and its folder's name.
        about: one line for the list.
        urls: folders on the web, the first one first; each ends in a slash.
        files: as they are downloaded, in the order in which their parts are put together.
        others: further layouts, each a tuple of files like ``files``.
        counts: how many training and test images are official.
        classes: what the labels mean, in their order.
    """

    name: str
    about: str
    urls: tuple[str, ...]
    files: tuple[OfficialFile, ...]
    others: tuple[tuple[OfficialFile, ...], ...] = ()
    counts: tuple[int, int] | None = None
    classes: tuple[str, ...] = ()

    @property
    def layouts(self) -> tuple[tuple[OfficialFile, ...], ...]:
        """Every layout, the one that is downloaded first."""
        return (self.files, *self.others)


def find_entry(name: str) -> Entry:
    """The entry of a name.

    Example:
        >>> find_entry("mnist").files[0].name
        'train-images-idx3-ubyte.gz'
        >>> find_entry("cifar_10")
        Traceback (most recent call last):
        gedi.errors.UserError: unknown data set 'cifar_10': did you mean 'cifar10'? Valid: cifar10, cifar100, ...
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
                     md5.get(f"{prefix}-{kind}"), most=head + n * each)
        for part, prefix, n in (("train", "train", 60_000), ("test", "t10k", 10_000))
        for kind, parse, head, each in (("images-idx3", _idx_images, 16, 28 * 28), ("labels-idx1", _idx_labels, 8, 1))
    )  # fmt: skip


def _labelled(
    parse: Callable[[bytes, str], tuple[np.ndarray, np.ndarray]], part: str, content: bytes, name: str
) -> Parts:
    images, labels = parse(content, name)
    return {part: images, f"{part}_labels": labels}


def _members(
    folder: str, md5: dict[str, str | None], parse: Callable[..., tuple[np.ndarray, np.ndarray]], classes: int
) -> tuple[OfficialFile, ...]:
    """CIFAR's files in the order of their images; what begins with "test" is the test part."""
    return tuple(
        OfficialFile(
            f"{folder}/{name}",
            partial(_labelled, partial(parse, classes=classes), "test" if name.startswith("test") else "train"),
            raw_md5,
            most=_CIFAR_MOST,
        )
        for name, raw_md5 in md5.items()
    )


def _archive(name: str, md5: str, members: tuple[OfficialFile, ...]) -> tuple[OfficialFile, ...]:
    return (OfficialFile(name, None, md5=md5, members=members, most=_CIFAR_MOST),)


_CIFAR_MOST = 200_000_000  # 60,000 images of 3,072 bytes, their labels and names

_CIFAR10_ROWS = _members(
    "cifar-10-batches-bin",
    {
        "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
        "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
        "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
        "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
        "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
        "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
    },
    parse_rows,
    classes=10,
)
_CIFAR10_BATCHES = _members(
    "cifar-10-batches-py",
    {
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
    },
    parse_batch,
    classes=10,
)
_CIFAR100_ROWS = _members(  # no checksum of these two is published: only their archive can vouch for them
    "cifar-100-binary", {"train.bin": None, "test.bin": None}, parse_rows, classes=100
)
_CIFAR100_BATCHES = _members(
    "cifar-100-python",
    {"train": "16019d7e3df5f24257cddd939b257f8d", "test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
    parse_batch,
    classes=100,
)

_DIGITS = tuple("0123456789")

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
        counts=(60_000, 10_000),
        classes=_DIGITS,
    ),
    "fashion-mnist": Entry(
        "fashion-mnist",
        "clothes in MNIST's format, 28 x 28 grey, 60,000 train and 10,000 test",
        (
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",  # no https; the checksum vouches
        ),
        _idx_files(
            md5={
                "train-images-idx3": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                "train-labels-idx1": "25c81989df183df01b3e8a0aad5dffbe",
                "t10k-images-idx3": "bef4ecab320f06d8554ea6380940ec79",
                "t10k-labels-idx1": "bb300cfdad3c16e7a12a480ee83cd310",
            },
            raw_md5={
                "train-images-idx3": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
                "train-labels-idx1": "9018921c3c673c538a1fc5bad174d6f9",
                "t10k-images-idx3": "8181f5470baa50b63fa0f6fddb340f0a",
                "t10k-labels-idx1": "15d484375f8d13e6eb1aabb0c3f46965",
            },
        ),
        counts=(60_000, 10_000),
        classes=("t-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"),
    ),
    "svhn": Entry(
        "svhn",
        "house numbers, cropped digits, 32 x 32 colour, 73,257 train and 26,032 test",
        ("http://ufldl.stanford.edu/housenumbers/",),  # no https; the checksum vouches
        (
            OfficialFile(
                "train_32x32.mat",
                partial(_labelled, parse_mat, "train"),
                "e26dedcc434d2e4c54c9b2d4a06d8373",
                most=73_257 * 3_100,
            ),
            OfficialFile(
                "test_32x32.mat",
                partial(_labelled, parse_mat, "test"),
                "eb5a983be6a315427106f1b164d9cef3",
                most=26_032 * 3_100,
            ),
        ),
        counts=(73_257, 26_032),
        classes=_DIGITS,
    ),
    "cifar10": Entry(
        "cifar10",
        "animals and vehicles of 10 kinds, 32 x 32 colour, 50,000 train and 10,000 test",
        ("https://www.cs.toronto.edu/~kriz/",),
        _archive("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", _CIFAR10_ROWS),
        (
            _CIFAR10_ROWS,
            _archive("cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a", _CIFAR10_BATCHES),
            _CIFAR10_BATCHES,
        ),
        counts=(50_000, 10_000),
        classes=("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    ),
    "cifar100": Entry(
        "cifar100",
        "things of 100 kinds, 32 x 32 colour, 50,000 train and 10,000 test",
        ("https://www.cs.toronto.edu/~kriz/",),
        _archive("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", _CIFAR100_ROWS),
        (
            _CIFAR100_ROWS,
            _archive("cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85", _CIFAR100_BATCHES),
            _CIFAR100_BATCHES,
        ),
        counts=(50_000, 10_000),
    ),
}
