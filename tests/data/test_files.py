"""Known data sets on disk: where they are found, whether they are whole, what they hold."""

import gzip
from dataclasses import replace
from hashlib import md5

import numpy as np
import pytest
import torch
from idx_bytes import to_idx

from gedi.data import CATALOGUE, find_folder, load_images, read_idx, verify
from gedi.errors import UserError

LABELS = "train-labels-idx1-ubyte"


@pytest.mark.parametrize("compress", [True, False], ids=["gz", "raw"])
@pytest.mark.parametrize("place", ["tiny", "."])
def test_images_are_found_and_read(tmp_path, tiny, write, compress, place):
    folder = write(tmp_path / place, tiny, compress)
    images = load_images("tiny", tmp_path)
    suffix = ".gz" if compress else ""
    assert images.train.shape == (6, 1, 2, 4)
    assert images.test.shape == (3, 1, 2, 4)
    assert images.train.dtype == images.test.dtype == torch.uint8
    np.testing.assert_array_equal(images.test[:, 0], read_idx(folder / f"t10k-images-idx3-ubyte{suffix}"))
    assert images.train_labels.tolist() == [3, 1, 4, 1, 5, 9]
    assert images.test_labels.tolist() == [2, 6, 5]
    assert images.train_labels.dtype == images.test_labels.dtype == torch.int64
    assert (images.exact, images.source) == (True, "tiny, official files")
    assert [state.state for state in verify("tiny", tmp_path)] == ["ok"] * 4


def test_folders_are_searched_in_their_order(tmp_path, tiny, write, monkeypatch):
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.setenv("GEDI_DATA", str(tmp_path / "environment"))
    given = tmp_path / "given"
    given.mkdir()
    for folder in (tmp_path / "cache/gedi/tiny", tmp_path / "environment", given, given / "tiny"):
        write(folder, tiny)
        assert find_folder("tiny", given) == folder
    assert find_folder("tiny") == tmp_path / "environment"
    monkeypatch.setenv("GEDI_DATA", "")
    assert find_folder("tiny") == tmp_path / "cache/gedi/tiny"


def test_a_folder_with_a_part_of_the_files_is_passed_over(tmp_path, tiny, write, monkeypatch):
    monkeypatch.setenv("GEDI_DATA", str(tmp_path / "whole"))
    write(tmp_path / "whole", tiny)
    write(tmp_path / "part", {LABELS: tiny[LABELS]})
    assert find_folder("tiny", tmp_path / "part") == tmp_path / "whole"
    assert {state.path.parent for state in verify("tiny", tmp_path / "part")} == {tmp_path / "whole"}


def test_what_is_not_there_is_said_with_the_places_and_the_way_out(tmp_path, tiny, write, monkeypatch):
    monkeypatch.setenv("GEDI_DATA", str(tmp_path / "environment"))
    (tmp_path / "given").mkdir()
    with pytest.raises(UserError) as caught:
        load_images("tiny", tmp_path / "given")
    for word in (str(tmp_path / "given"), str(tmp_path / "environment"), "cache", "gedi data get tiny", "GEDI_DATA"):
        assert word in str(caught.value)
    write(tmp_path / "given", {name: tiny[name] for name in tiny if name != LABELS})
    with pytest.raises(UserError, match=f"given' lacks {LABELS}.gz; get it with"):
        load_images("tiny", tmp_path / "given")
    with pytest.raises(UserError, match="typo' is not there; make it with"):
        load_images("tiny", tmp_path / "typo")
    with pytest.raises(UserError, match="did you mean 'mnist'"):
        load_images("mnits")


def test_other_bytes_are_accepted_and_named_as_such(tmp_path, tiny, write):
    write(tmp_path, {**tiny, LABELS: to_idx(np.array([3, 1, 4, 1, 5, 8], dtype=np.uint8))})
    images = load_images("tiny", tmp_path)
    assert images.train_labels.tolist() == [3, 1, 4, 1, 5, 8]
    assert (images.exact, images.source) == (False, "tiny, not the official bytes")
    assert [state.state for state in verify("tiny", tmp_path)] == ["ok", "not official", "ok", "ok"]


def test_a_published_checksum_alone_confirms_only_the_published_file(tmp_path, tiny, write, monkeypatch):
    entry = CATALOGUE["tiny"]
    packed = {file.name: gzip.compress(tiny[file.name.removesuffix(".gz")]) for file in entry.files}
    files = tuple(replace(f, raw_md5=None, md5=md5(packed[f.name]).hexdigest()) for f in entry.files)
    monkeypatch.setitem(CATALOGUE, "tiny", replace(entry, files=files))
    for name, content in packed.items():
        (tmp_path / name).write_bytes(content)
    assert load_images("tiny", tmp_path).exact
    assert not load_images("tiny", write(tmp_path / "raw", tiny, compress=False)).exact


def test_every_state_is_told_apart(tmp_path, tiny, write):
    write(tmp_path, tiny)
    (tmp_path / "train-images-idx3-ubyte.gz").unlink()
    (tmp_path / f"{LABELS}.gz").write_bytes(gzip.compress(to_idx(np.zeros(6, dtype=np.uint8))))
    cut = tmp_path / "t10k-images-idx3-ubyte.gz"
    cut.write_bytes(cut.read_bytes()[:-5])
    states = verify("tiny", tmp_path)
    assert [state.state for state in states] == ["missing", "not official", "broken", "ok"]
    assert [state.path for state in states] == [tmp_path / file.name for file in CATALOGUE["tiny"].files]
    assert "whole gzip" in states[2].why


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(5, dtype=np.uint8), "6 images and labels of shape .5,."),
        (np.zeros((6, 1), dtype=np.uint8), "uint8 array of 1 dimensions, got uint8 of 2"),
        (np.zeros(6, dtype=np.int32), "got int32 of 1"),
    ],
)
def test_labels_that_cannot_belong_are_refused(tmp_path, tiny, write, values, message):
    write(tmp_path, {**tiny, LABELS: to_idx(values)})
    with pytest.raises(UserError, match=message):
        load_images("tiny", tmp_path)


def test_a_corrupt_file_is_an_error_not_a_re_encoding(tmp_path, tiny, write):
    write(tmp_path, {**tiny, LABELS: tiny[LABELS][:-1]})
    with pytest.raises(UserError, match=f"{LABELS}.gz is truncated"):
        load_images("tiny", tmp_path)


def test_files_of_a_set_with_the_same_names_are_not_mistaken(tmp_path, tiny, write):
    write(tmp_path, tiny)
    with pytest.raises(UserError, match="must be a file of mnist, but is one of tiny"):
        load_images("mnist", tmp_path)
    assert {(state.state, state.why) for state in verify("mnist", tmp_path)} == {
        ("not official", "it is a file of tiny")
    }


def test_swapped_files_of_one_set_are_not_official(tmp_path, tiny, write):
    names = list(tiny)
    write(tmp_path, {**tiny, names[0]: tiny[names[2]], names[2]: tiny[names[0]]})
    assert [state.state for state in verify("tiny", tmp_path)] == ["not official", "ok", "not official", "ok"]


def test_mnist_is_the_official_one(mnist_folder):
    images = load_images("mnist", mnist_folder)
    assert images.exact
    assert images.train.shape == (60_000, 1, 28, 28)
    assert images.test.shape == (10_000, 1, 28, 28)
    assert images.train_labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert images.test_labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert images.train_labels.bincount().tolist()[0] == 5923
    assert [state.state for state in verify("mnist", mnist_folder)] == ["ok"] * 4
