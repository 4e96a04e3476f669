"""Which files are shards, and which are for the test."""

import pytest

from gedi.data.shard_files import find_shards
from gedi.errors import UserError


def put(folder, *names):
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"")
    return folder


def names(files):
    return [file.name for file in files]


def test_a_folder_gives_its_shards_by_name_and_nothing_else(tmp_path):
    put(tmp_path, "b.tar", "a.tar", "notes.txt", ".hidden.tar", "c.tar.md5")
    (tmp_path / "sub").mkdir()
    found = find_shards(tmp_path)
    assert (names(found.train), found.test, found.kind, found.name) == (["a.tar", "b.tar"], [], ".tar", tmp_path.name)


def test_labels_stand_beside_their_rows(tmp_path):
    put(tmp_path, "x-0.npy", "y-0.npy", "test-x-0.npy", "test-y-0.npy", "x-1.npy")
    found = find_shards(tmp_path)
    assert (names(found.train), names(found.test)) == (["x-0.npy", "x-1.npy"], ["test-x-0.npy"])
    assert {a.name: b.name for a, b in found.labels.items()} == {"x-0.npy": "y-0.npy", "test-x-0.npy": "test-y-0.npy"}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("train-*.tar", ["train-08.tar", "train-09.tar", "train-10.tar"]),
        ("train-{08..09}.tar", ["train-08.tar", "train-09.tar"]),
        ("train-{08,10}.tar", ["train-08.tar", "train-10.tar"]),
        ("train-{09..10}.*", ["train-09.tar", "train-10.tar"]),
        ("train-08.tar", ["train-08.tar"]),
    ],
)
def test_a_pattern_counts_chooses_and_matches(tmp_path, pattern, expected):
    put(tmp_path, "train-08.tar", "train-09.tar", "train-10.tar", "val-00.tar")
    assert names(find_shards(tmp_path / pattern).train) == expected


def test_a_pattern_may_name_both_parts(tmp_path):
    put(tmp_path, *(f"train-{i}.tar" for i in range(9)), "test-0.tar", "val-0.tar")
    found = find_shards(str(tmp_path / "{train,test}-*.tar"))
    assert (len(found.train), names(found.test), found.how) == (9, ["test-0.tar"], "its own split")


def test_a_number_of_a_range_that_is_missing_is_told(tmp_path):
    put(tmp_path, "a-0.tar", "a-2.tar")
    with pytest.raises(UserError, match=r"a-1\.tar' is not there"):
        find_shards(tmp_path / "a-{0..2}.tar")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "must give shards, all .tar or all .npy, but gives none"),
        (["a.tar", "x-0.npy"], "but gives both"),
        (["a.tar", "b.tar.gz"], r"b\.tar\.gz'.* unpack it"),
        (["a.tgz"], r"a\.tgz'.* unpack it"),
        (["a.tar.zst"], r"a\.tar\.zst'.* unpack it"),
        (["train-0.tar", "val-0.tar"], r"val-0\.tar' is there too"),
        (["test-0.tar"], "must be shards to train on"),
    ],
)
def test_files_that_leave_a_doubt_are_told(tmp_path, files, message):
    with pytest.raises(UserError, match=message):
        find_shards(put(tmp_path / "own", *files))


def test_a_place_that_is_not_there_is_told():
    with pytest.raises(UserError, match="'nowhere' is not there"):
        find_shards("nowhere")
