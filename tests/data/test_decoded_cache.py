"""Decoded once: what the cache gives is what was decoded, and no change of a file goes unseen."""

import os
from pathlib import Path

import pytest
import torch
from idx_bytes import to_idx

from gedi.data import files, load_images
from gedi.errors import UserError

LABELS = "train-labels-idx1-ubyte"
FIELDS = ("train", "train_labels", "test", "test_labels")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEDI_CACHE_DATA", str(tmp_path / "decoded"))
    return tmp_path / "decoded"


@pytest.fixture
def decoded(monkeypatch):
    """How many files were read."""
    read, paths = files._read, []
    monkeypatch.setattr(files, "_read", lambda entry, file, path: paths.append(path) or read(entry, file, path))
    return paths


def same(one, two):
    assert all(torch.equal(getattr(one, field), getattr(two, field)) for field in FIELDS)
    assert (one.name, one.exact, one.source) == (two.name, two.exact, two.source)


@pytest.mark.parametrize("official", [True, False])
def test_the_second_time_nothing_is_read(tmp_path, tiny, write, cache, decoded, official):
    write(tmp_path / "mine", tiny if official else {**tiny, LABELS: to_idx(torch.arange(6, dtype=torch.uint8).numpy())})
    first = load_images("tiny", tmp_path / "mine")
    assert len(decoded) == 4
    again = load_images("tiny", tmp_path / "mine")
    assert len(decoded) == 4
    same(first, again)
    assert again.exact == official
    assert [path.suffix for path in cache.iterdir()] == [".safetensors"]  # nothing temporary left


def test_a_changed_file_is_read_again_and_replaces_the_old_state(tmp_path, tiny, write, cache, decoded):
    write(tmp_path / "mine", tiny, compress=False)
    load_images("tiny", tmp_path / "mine")
    path = tmp_path / "mine" / LABELS
    path.write_bytes(to_idx(torch.full((6,), 7, dtype=torch.uint8).numpy()))  # of the same size
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
    images = load_images("tiny", tmp_path / "mine")
    assert images.train_labels.tolist() == [7] * 6
    assert not images.exact
    assert len(decoded) == 8
    assert len(list(cache.iterdir())) == 1
    path.write_bytes(b"half")
    with pytest.raises(UserError, match="must be an idx file"):
        load_images("tiny", tmp_path / "mine")


def test_two_places_do_not_share(tmp_path, tiny, write, cache):
    write(tmp_path / "one", tiny)
    write(tmp_path / "two", {**tiny, LABELS: to_idx(torch.zeros(6, dtype=torch.uint8).numpy())})
    for _ in range(2):
        assert load_images("tiny", tmp_path / "one").exact
        assert not load_images("tiny", tmp_path / "two").exact
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b[:50], lambda b: b"", lambda b: b + b"0", lambda b: b[8:]]
)
def test_a_damaged_cache_is_decoded_again(tmp_path, tiny, write, cache, decoded, damage):
    write(tmp_path / "mine", tiny)
    first = load_images("tiny", tmp_path / "mine")
    (stored,) = cache.iterdir()
    stored.write_bytes(damage(stored.read_bytes()))
    for _ in range(2):
        same(load_images("tiny", tmp_path / "mine"), first)
        assert len(decoded) == 8  # once more, and then mended


def test_writing_to_images_changes_no_file(tmp_path, tiny, write, cache):
    write(tmp_path / "mine", tiny)
    first = load_images("tiny", tmp_path / "mine")
    mapped = load_images("tiny", tmp_path / "mine")
    mapped.train.zero_()
    same(load_images("tiny", tmp_path / "mine"), first)
    assert not torch.equal(mapped.train, first.train)


def test_the_cache_is_mapped_not_read(tmp_path, tiny, write, cache):
    write(tmp_path / "mine", tiny)
    load_images("tiny", tmp_path / "mine")
    images = load_images("tiny", tmp_path / "mine")
    if not Path("/proc/self/maps").exists():
        pytest.skip("this system does not tell what is mapped")
    assert str(cache) in Path("/proc/self/maps").read_text()
    assert images.train.any()


@pytest.mark.parametrize("setting", ["off", "a file stands there"])
def test_no_cache_is_no_reason_to_fail(tmp_path, tiny, write, monkeypatch, decoded, setting):
    (tmp_path / "taken").write_bytes(b"")
    monkeypatch.setenv("GEDI_CACHE_DATA", "" if setting == "off" else str(tmp_path / "taken" / "below"))
    write(tmp_path / "mine", tiny)
    for _ in range(2):
        assert load_images("tiny", tmp_path / "mine").exact
    assert len(decoded) == 8


def test_a_full_disk_leaves_nothing_behind(tmp_path, tiny, write, cache, monkeypatch):
    def full(parts, path, about):
        path.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("gedi.data.cache.save_file", full)
    write(tmp_path / "mine", tiny)
    assert load_images("tiny", tmp_path / "mine").exact
    assert list(cache.iterdir()) == []
