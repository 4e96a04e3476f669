"""CIFAR and SVHN on disk in every official layout: the same images, and told for what they are."""

import gzip
from dataclasses import replace
from hashlib import md5

import numpy as np
import pytest
import torch
from cifar_bytes import to_batch, to_rows, to_tar
from scipy.io import savemat

from gedi.data import CATALOGUE, find_folder, load_images, verify
from gedi.data.catalogue import Entry
from gedi.errors import UserError

RNG = np.random.default_rng(0)
BATCHES = ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"]
CIFAR10 = {name: (RNG.integers(0, 256, (2, 3, 32, 32), np.uint8), [i, 9 - i]) for i, name in enumerate(BATCHES)}
CIFAR100 = {
    name: (RNG.integers(0, 256, (3, 3, 32, 32), np.uint8), [7, 99, i]) for i, name in enumerate(["train", "test"])
}
ROWS = {
    "cifar10": {f"cifar-10-batches-bin/{name}.bin": to_rows(x, y) for name, (x, y) in CIFAR10.items()},
    "cifar100": {f"cifar-100-binary/{name}.bin": to_rows(x, [1, 2, 3], y) for name, (x, y) in CIFAR100.items()},
}
PYTHON = {
    "cifar10": {f"cifar-10-batches-py/{name}": to_batch(x, labels=y) for name, (x, y) in CIFAR10.items()},
    "cifar100": {
        f"cifar-100-python/{name}": to_batch(x, fine_labels=y, coarse_labels=[1, 2, 3])
        for name, (x, y) in CIFAR100.items()
    },
}
ARCHIVES = {
    "cifar10": {
        "cifar-10-binary.tar.gz": gzip.compress(to_tar(ROWS["cifar10"])),
        "cifar-10-python.tar.gz": gzip.compress(to_tar(dict(reversed(PYTHON["cifar10"].items())))),
    },
    "cifar100": {
        "cifar-100-binary.tar.gz": gzip.compress(to_tar(ROWS["cifar100"])),
        "cifar-100-python.tar.gz": gzip.compress(to_tar(PYTHON["cifar100"])),
    },
}
LAYOUTS = [
    (name, layout, files)
    for name in ("cifar10", "cifar100")
    for layout, files in [
        ("rows", ROWS[name]),
        ("python", PYTHON[name]),
        *((archive, {archive: content}) for archive, content in ARCHIVES[name].items()),
        *((archive[:-3], {archive[:-3]: gzip.decompress(content)}) for archive, content in ARCHIVES[name].items()),
    ]
]


def put(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def expected(name):
    parts = CIFAR10 if name == "cifar10" else CIFAR100
    train = [part for part in parts if not part.startswith("test")]
    x, y = np.concatenate([parts[part][0] for part in train]), [label for part in train for label in parts[part][1]]
    test = next(part for part in parts if part.startswith("test"))
    return x, y, *parts[test]


def official(entry: Entry, contents) -> Entry:
    """The entry, were these its official files."""

    def known(file):
        content = contents.get(file.name)
        if content is None:
            return file
        field = "md5" if file.members else "raw_md5"
        return replace(file, **{field: md5(content).hexdigest()}, members=tuple(map(known, file.members)))

    layouts = [tuple(map(known, layout)) for layout in entry.layouts]
    return replace(entry, files=layouts[0], others=tuple(layouts[1:]))


@pytest.mark.parametrize(("name", "layout", "files"), LAYOUTS, ids=[f"{name}-{layout}" for name, layout, _ in LAYOUTS])
def test_every_layout_gives_the_same_images(tmp_path, name, layout, files):
    put(tmp_path / name, files)
    images = load_images(name, tmp_path)
    x, y, x_test, y_test = expected(name)
    assert (images.train.dtype, images.train_labels.dtype) == (torch.uint8, torch.int64)
    np.testing.assert_array_equal(images.train, x)
    np.testing.assert_array_equal(images.test, x_test)
    assert images.train_labels.tolist() == y
    assert images.test_labels.tolist() == y_test
    n, m = len(x), len(x_test)
    assert images.source == f"{name}, not the official bytes: {n} of 50,000 training and {m} of 10,000 test images"
    assert not images.exact
    assert {state.state for state in verify(name, tmp_path)} == {"not official"}
    assert find_folder(name, tmp_path) == tmp_path / name


@pytest.mark.parametrize(("name", "layout", "files"), LAYOUTS, ids=[f"{name}-{layout}" for name, layout, _ in LAYOUTS])
def test_checksums_make_a_layout_official(tmp_path, monkeypatch, name, layout, files):
    put(tmp_path, files)
    contents = {**PYTHON[name], **ARCHIVES[name], **(ROWS[name] if name == "cifar10" else {})}
    entry = replace(official(CATALOGUE[name], contents), counts=tuple(map(len, expected(name)[::2])))
    monkeypatch.setitem(CATALOGUE, name, entry)
    images = load_images(name, tmp_path)
    states = {(state.state, state.why) for state in verify(name, tmp_path)}
    if name == "cifar100" and layout in ("rows", "cifar-100-binary.tar"):  # only the .tar.gz has a checksum
        assert (images.exact, images.source) == (False, "cifar100, not known to be the official bytes")
        assert states == {("not official", "no checksum of it is known")}
    else:
        assert (images.exact, images.source) == (True, f"{name}, official files")
        assert states == {("ok", "")}


def test_one_changed_pixel_is_not_official(tmp_path, monkeypatch):
    entry = replace(official(CATALOGUE["cifar10"], ROWS["cifar10"]), counts=(10, 2))
    monkeypatch.setitem(CATALOGUE, "cifar10", entry)
    name = "cifar-10-batches-bin/data_batch_3.bin"
    content = bytearray(ROWS["cifar10"][name])
    content[100] ^= 1
    put(tmp_path, {**ROWS["cifar10"], name: bytes(content)})
    images = load_images("cifar10", tmp_path)
    assert (images.exact, images.source) == (False, "cifar10, not the official bytes")
    assert [state.state for state in verify("cifar10", tmp_path)] == ["ok", "ok", "not official", "ok", "ok", "ok"]


def test_files_may_lie_without_their_folder(tmp_path):
    put(tmp_path, {name.split("/")[1]: content for name, content in ROWS["cifar10"].items()})
    assert load_images("cifar10", tmp_path).train_labels.tolist() == expected("cifar10")[1]


def test_the_archive_is_taken_before_what_lies_beside_it(tmp_path):
    put(tmp_path, ARCHIVES["cifar10"])
    other = {name: to_rows(np.zeros((1, 3, 32, 32), np.uint8), [0]) for name in ROWS["cifar10"]}
    put(tmp_path, other)
    assert len(load_images("cifar10", tmp_path).train) == 10


def test_what_a_layout_lacks_is_said(tmp_path):
    put(tmp_path, {name: content for name, content in ROWS["cifar10"].items() if "batch_4" not in name})
    with pytest.raises(UserError, match=r"lacks cifar-10-batches-bin/data_batch_4.bin; get it with"):
        load_images("cifar10", tmp_path)
    assert sorted(state.state for state in verify("cifar10", tmp_path)) == ["missing"] + ["not official"] * 5
    put(tmp_path / "else", {})
    (tmp_path / "else").mkdir()
    assert [state.name for state in verify("cifar10", tmp_path / "else")] == ["cifar-10-binary.tar.gz"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ARCHIVES["cifar10"]["cifar-10-binary.tar.gz"][:-20], "must be a whole gzip file"),
        (to_tar(ROWS["cifar10"])[:9000], "must be a whole tar archive, but it is corrupt"),
        (b"<html>moved</html>", "must be a whole tar archive"),
        (to_tar(ROWS["cifar100"]), "must hold cifar-10-batches-bin/data_batch_1.bin, .*test_batch.bin, but does not"),
        (
            to_tar({name: content[:-1] for name, content in ROWS["cifar10"].items()}),
            "cifar-10-batches-bin/data_batch_1.bin in cifar-10-binary.tar.gz is truncated",
        ),
    ],
)
def test_a_corrupt_archive_is_named(tmp_path, content, message):
    put(tmp_path, {"cifar-10-binary.tar.gz": content})
    with pytest.raises(UserError, match=f"{message}.*; get the file again") as caught:
        load_images("cifar10", tmp_path)
    assert "cifar-10-binary.tar.gz" in str(caught.value)
    assert [(state.state, state.why) for state in verify("cifar10", tmp_path)] == [("broken", str(caught.value))]


def test_a_file_of_the_other_cifar_is_not_mistaken(tmp_path, monkeypatch):
    monkeypatch.setitem(CATALOGUE, "cifar10", official(CATALOGUE["cifar10"], ARCHIVES["cifar10"]))
    put(tmp_path, {"cifar-100-binary.tar.gz": ARCHIVES["cifar10"]["cifar-10-binary.tar.gz"]})
    with pytest.raises(UserError, match=r"cifar-100-binary.tar.gz must hold cifar-100-binary/train.bin"):
        load_images("cifar100", tmp_path)


def test_svhn_is_read_and_named_as_what_it_is(tmp_path):
    x = RNG.integers(0, 256, (3, 3, 32, 32), np.uint8)
    for part in ("train", "test"):
        y = np.array([[10], [1], [2]], np.uint8)
        savemat(tmp_path / f"{part}_32x32.mat", {"X": x.transpose(2, 3, 1, 0), "y": y})
    images = load_images("svhn", tmp_path)
    np.testing.assert_array_equal(images.train, x)
    assert images.test_labels.tolist() == [0, 1, 2]
    assert images.source == "svhn, not the official bytes: 3 of 73,257 training and 3 of 26,032 test images"


def test_cifar10_is_the_official_one(kept):
    images = load_images("cifar10", kept("cifar10"))
    assert (images.exact, images.source) == (True, "cifar10, official files")
    assert (images.train.shape, images.test.shape) == ((50_000, 3, 32, 32), (10_000, 3, 32, 32))
    assert images.train_labels.bincount().tolist() == [5000] * 10
    assert images.test_labels[:4].tolist() == [3, 8, 8, 0]  # cat, ship, ship, airplane
    mean = images.train.double().mean(dim=(0, 2, 3)) / 255
    assert mean.tolist() == pytest.approx([0.4914, 0.4822, 0.4465], abs=5e-5)


def test_cifar100_is_a_subset_and_says_so(kept):
    images = load_images("cifar100", kept("cifar100"))
    assert images.source == ("cifar100, not the official bytes: 1,117 of 50,000 training and 916 of 10,000 test images")
    assert images.train_labels[:5].tolist() == [19, 29, 0, 11, 1]  # cattle, dinosaur, apple, boy, aquarium fish


@pytest.mark.slow
def test_svhn_is_a_re_encoding_and_says_so(kept):
    images = load_images("svhn", kept("svhn"))
    assert (images.exact, images.source) == (False, "svhn, not the official bytes")
    assert (images.train.shape, images.test.shape) == ((73_257, 3, 32, 32), (26_032, 3, 32, 32))
    assert images.test_labels.bincount().tolist() == [1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595]
