"""Shards in the manner of WebDataset: what is read is what was packed, nothing runs, and every fault is named."""

import gzip
import io
import json
import os
import tarfile

import numpy as np
import pytest
import torch
from PIL import Image

from gedi.data import load_folder, load_shards, tar_shards
from gedi.errors import UserError

RNG = np.random.default_rng(0)


def picture(values, kind="png", **options):
    held = io.BytesIO()
    Image.fromarray(values).save(held, {"jpg": "jpeg"}.get(kind, kind), **options)
    return held.getvalue()


def grey(h=6, w=6):
    return RNG.integers(0, 256, (h, w), dtype=np.uint8)


def colour(h=6, w=6):
    return RNG.integers(0, 256, (h, w, 3), dtype=np.uint8)


def pack(path, members, form=tarfile.USTAR_FORMAT):
    """A .tar file of these bytes by name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=form) as tar:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    return path


def packed(folder, shards=5, each=4, values=grey):
    """Shards of labelled images; the images by their label, which is a number of their own."""
    images = {}
    for shard in range(shards):
        members = {}
        for _ in range(each):
            label = len(images)
            images[label] = values()
            members[f"{label:06}.png"] = picture(images[label])
            members[f"{label:06}.cls"] = str(label).encode()
        pack(folder / f"part-{shard}.tar", members)
    return images


@pytest.mark.parametrize("shards", [1, 3, 5, 11])
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_image_is_there_once_with_its_label(tmp_path, shards, form):
    images, n = {}, 5 * shards
    for shard in range(shards):
        members = {}
        for label in range(5 * shard, 5 * shard + 5):
            images[label] = colour()
            key = f"{'deep/' * 30}{label}"  # longer than the name field: further headers come before the content
            members |= {f"{key}.cls": str(label).encode(), f"{key}.png": picture(images[label]), f"{key}.txt": b"?"}
        if form == tarfile.USTAR_FORMAT:
            members = {name.replace("deep/", ""): content for name, content in members.items()}
        pack(tmp_path / f"s-{shard}.tar", members, form)
    held = load_shards(tmp_path)
    assert len(held.train) + len(held.test) == n
    assert len(held.test) == (n // 5 if shards < 5 else shards // 5 * 5)
    seen = []
    for part, labels in ((held.train, held.train_labels), (held.test, held.test_labels)):
        order = torch.randperm(len(part))
        for image, label in zip(part[order], labels[order].tolist(), strict=True):
            np.testing.assert_array_equal(image.permute(1, 2, 0), images[label])
            seen.append(label)
    assert sorted(seen) == list(range(n))


def test_images_are_decoded_as_those_of_a_folder(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6  # lies on its side
    files = {
        "a.jpg": picture(colour(20, 30), "jpg", exif=turned),
        "b.jpeg": picture(grey(30, 20), "jpg"),
        "c.webp": picture(colour(30, 20), "webp"),
        "d.png": picture(RNG.integers(0, 2**16, (30, 20), dtype=np.uint16)),
        "e.png": picture(RNG.integers(0, 256, (30, 20, 4), dtype=np.uint8)),
    }
    pack(tmp_path / "tars" / "train-0.tar", files)
    pack(tmp_path / "tars" / "test-0.tar", {"f.png": files["e.png"]})
    (tmp_path / "loose" / "train").mkdir(parents=True)
    (tmp_path / "loose" / "test").mkdir(parents=True)
    for name, content in files.items():
        (tmp_path / "loose" / "train" / name).write_bytes(content)
    (tmp_path / "loose" / "test" / "f.png").write_bytes(files["e.png"])
    for side in (None, 8):
        ours, theirs = load_shards(tmp_path / "tars", side), load_folder(tmp_path / "loose", side)
        assert ours.train.shape == (5, 3, *((30, 20) if side is None else (8, 8)))
        assert torch.equal(ours.train[:], theirs.train)
        assert torch.equal(ours.test[:], theirs.test)


def test_grey_images_have_one_channel_unless_any_is_in_colour(tmp_path):
    pack(tmp_path / "train-0.tar", {"a.png": picture(grey())})
    pack(tmp_path / "test-0.tar", {"b.png": picture(grey())})
    assert load_shards(tmp_path).train.shape == (1, 1, 6, 6)
    pack(tmp_path / "test-1.tar", {"c.png": picture(colour())})
    held = load_shards(tmp_path)
    assert held.train.shape == (1, 3, 6, 6)
    assert held.train_labels is None


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        ([b"10", b"9\n", b"10", b"2"], [2, 1, 2, 0]),  # in the order of numbers, not of letters
        ([b"dog", b"cat", b"cat", b"emu"], [1, 0, 0, 2]),
    ],
)
def test_labels_are_numbers_or_names(tmp_path, labels, numbers):
    for kind in ("cls", "json"):
        texts = labels if kind == "cls" else [json.dumps({"label": x.decode().strip()}).encode() for x in labels]
        members = {f"{i}.{kind}": text for i, text in enumerate(texts)} | {
            f"{i}.png": picture(grey()) for i in range(4)
        }
        pack(tmp_path / kind / "train-0.tar", members)
        pack(tmp_path / kind / "test-0.tar", {"0.png": picture(grey())})
        held = load_shards(tmp_path / kind)
        assert held.train_labels.tolist() == numbers
        assert held.test_labels is None


def test_a_json_without_a_label_is_none(tmp_path):
    pack(tmp_path / "train-0.tar", {"0.png": picture(grey()), "0.json": b'{"width": 6}'})
    pack(tmp_path / "test-0.tar", {"0.png": picture(grey()), "0.json": b"[1]"})
    assert load_shards(tmp_path).train_labels is None


@pytest.fixture
def indexed(monkeypatch):
    """Which files were gone through."""
    index, paths = tar_shards._index, []
    monkeypatch.setattr(tar_shards, "_index", lambda path: paths.append(path.name) or index(path))
    return paths


def test_a_file_is_gone_through_once_until_it_changes(tmp_path, indexed, monkeypatch):
    packed(tmp_path, shards=3)
    first = load_shards(tmp_path)
    assert indexed == ["part-0.tar", "part-1.tar", "part-2.tar"]
    again = load_shards(tmp_path)
    assert len(indexed) == 3
    assert torch.equal(first.train[:], again.train[:])
    assert torch.equal(first.train_labels, again.train_labels)
    path = tmp_path / "part-1.tar"
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
    load_shards(tmp_path)
    assert indexed[3:] == ["part-1.tar"]
    monkeypatch.setenv("GEDI_CACHE_DATA", "")
    load_shards(tmp_path)
    assert len(indexed) == 7


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:50], lambda b: b"", lambda b: b"\x93NUMPY" + b])
def test_a_damaged_index_is_made_again(tmp_path, indexed, damage, monkeypatch):
    monkeypatch.setenv("GEDI_CACHE_DATA", str(tmp_path / "kept"))
    packed(tmp_path / "own", shards=1)
    first = load_shards(tmp_path / "own")
    (kept,) = (tmp_path / "kept").iterdir()
    kept.write_bytes(damage(kept.read_bytes()))
    assert torch.equal(load_shards(tmp_path / "own").train[:], first.train[:])
    assert len(indexed) == 2


def test_nothing_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setenv("GEDI_CACHE_DATA", "")
    members = {"../../out.png": picture(grey()), "/abs.png": picture(grey()), "in.png": picture(grey())}
    pack(tmp_path / "own" / "train-0.tar", members)
    pack(tmp_path / "own" / "test-0.tar", {"a.png": picture(grey())})
    assert len(load_shards(tmp_path / "own").train[:]) == 3
    assert [file.name for file in sorted(tmp_path.rglob("*"))] == ["own", "test-0.tar", "train-0.tar"]


def cut_at(where):
    return lambda content: content[:where]


def flip(where):
    return lambda content: content[:where] + bytes([content[where] ^ 0xFF]) + content[where + 1 :]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda b: b"", "must be a whole .tar file"),
        (lambda b: b"garbage" * 1000, "must be a whole .tar file"),
        (cut_at(100), "must be a whole .tar file"),
        (cut_at(600), "must be a whole .tar file"),
        (cut_at(512 * 4), "must be a whole .tar file.*cut short"),  # between two members
        (cut_at(512 * 4 + 100), "damaged after byte 2048"),
        (flip(512 * 4), "damaged after byte 2048"),  # of a later header; tarfile takes that for the end
        (lambda b: b + b, "damaged after byte"),  # two archives, one behind the other
        (gzip.compress, "must not be compressed as a whole, but .* is, by gzip.*unpack it"),
        (flip(512 + 3), "'000004.png in .*part-1.tar' must be an image"),
    ],
)
def test_a_broken_file_is_named(tmp_path, damage, message):
    packed(tmp_path, shards=2)
    path = tmp_path / "part-1.tar"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=message) as error:
        load_shards(tmp_path)
    assert "part-1.tar" in str(error.value)
    assert "\n" not in str(error.value)


def test_an_image_that_breaks_off_is_named_when_it_is_asked_for(tmp_path):
    whole = picture(grey(40, 40))
    pack(tmp_path / "train-0.tar", {"a.png": whole, "b.png": whole[: len(whole) // 2], "c.png": whole})
    pack(tmp_path / "test-0.tar", {"a.png": whole})
    held = load_shards(tmp_path)
    assert len(held.train[torch.tensor([2, 0])]) == 2
    with pytest.raises(UserError, match=r"'b\.png in .*train-0\.tar' must be an image, but cannot be read"):
        held.train[:]


def test_images_of_two_sizes_need_a_side(tmp_path):
    pack(tmp_path / "train-0.tar", {"a.png": picture(grey()), "b.png": picture(grey(6, 9))})
    pack(tmp_path / "test-0.tar", {"a.png": picture(grey())})
    with pytest.raises(UserError, match=r"image 1 of '.*train-0\.tar' is 9 x 6 .* 6 x 6; give data\.side"):
        load_shards(tmp_path)
    assert load_shards(tmp_path, side=4).train[:].shape == (2, 1, 4, 4)
    with pytest.raises(UserError, match="side must be >= 1"):
        load_shards(tmp_path, side=0)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a.txt": b"hello"}, "must hold images"),
        ({"a.png": picture(grey()), "b.cls": b"1"}, "a label must have its image, but 'b' in"),
        ({"a.png": picture(grey()), "a.jpg": picture(grey(), "jpg")}, "must hold one image, but 'a.jpg in"),
        ({"a.png": picture(grey()), "b.png": picture(grey()), "b.cls": b"1"}, "or none, but 'a.png' has none"),
        ({"a.png": picture(grey()), "a.json": b"{"}, r"'a\.json in .*must hold a label, but cannot be read"),
        ({"a.png": picture(grey()), "a.json": b"[" * 100_000}, r"'a\.json in .*must hold a label"),
        ({"a.png": picture(grey()), "a.json": b'{"label": [1]}'}, "a number or text, got"),
        ({"a.png": picture(grey()), "a.cls": b"\xff"}, r"'a\.cls in .*must hold a label"),
        ({"a.png": b"%!PS-Adobe-3.0 EPSF-3.0\n"}, r"'a\.png in .* must be an image"),  # would start a program
    ],
)
def test_samples_that_leave_a_doubt_are_told(tmp_path, members, message):
    pack(tmp_path / "own.tar", members)
    with pytest.raises(UserError, match=message):
        load_shards(tmp_path)


def test_a_link_is_no_image(tmp_path):
    with tarfile.open(tmp_path / "own.tar", "w") as tar:
        link = tarfile.TarInfo("a.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(UserError, match=r"'a\.png in .*own\.tar' must be a plain file"):
        load_shards(tmp_path)


def test_shards_with_and_without_labels_are_told(tmp_path):
    packed(tmp_path, shards=2)
    pack(tmp_path / "part-9.tar", {"a.png": picture(grey())})
    with pytest.raises(UserError, match=r"every shard must have labels, or none, but .*part-9\.tar' has none"):
        load_shards(tmp_path)
