"""Images in folders: classes, splits, sizes and colours, and every fault named with its file."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

from gedi.data import folder as module
from gedi.data import load_folder
from gedi.errors import UserError

RNG = np.random.default_rng(0)


def grey(h=6, w=6):
    return RNG.integers(0, 256, (h, w), dtype=np.uint8)


def colour(h=6, w=6):
    return RNG.integers(0, 256, (h, w, 3), dtype=np.uint8)


def put(folder, images):
    for name, values in images.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(values).save(folder / name)
    return folder


def whole(images):
    return torch.cat([images.train, images.test])


def test_subfolders_are_classes_and_a_fifth_of_each_is_the_test_part(tmp_path):
    pictures = {f"{kind}/{i:02}.png": colour() for kind in ("dog", "cat") for i in range(10)}
    images = load_folder(put(tmp_path / "pets", pictures))
    assert (images.train.shape, images.test.shape) == ((16, 3, 6, 6), (4, 3, 6, 6))
    assert images.train.dtype == torch.uint8
    assert images.train_labels.bincount().tolist() == [8, 8]
    assert images.test_labels.tolist() == [0, 0, 1, 1]
    assert (images.name, images.exact) == ("pets", False)
    assert images.source == "folder pets: 16 training and 4 test images, a fifth for the test"
    label = {values.tobytes(): int(name.startswith("dog")) for name, values in pictures.items()}  # cat 0, dog 1
    for part, labels in ((images.train, images.train_labels), (images.test, images.test_labels)):
        assert [label.pop(image.permute(1, 2, 0).numpy().tobytes()) for image in part] == labels.tolist()
    assert not label


def test_a_flat_folder_has_no_labels_and_keeps_the_order_of_the_names(tmp_path):
    pictures = {f"{name}.png": grey() for name in ("b", "a", "c")}
    (tmp_path / "notes.txt").write_text("not an image")
    (tmp_path / "._a.png").write_bytes(b"what some systems leave behind")
    images = load_folder(put(tmp_path, pictures))
    assert images.train_labels is None
    assert images.test_labels is None
    assert images.test.shape == (0, 1, 6, 6)
    np.testing.assert_array_equal(images.train[:, 0], [pictures[f"{name}.png"] for name in "abc"])


@pytest.mark.parametrize("test_classes", [True, False])
def test_train_and_test_are_the_split(tmp_path, test_classes):
    put(tmp_path, {"train/a/1.png": grey(), "train/b/1.png": grey(), "train/b/2.png": grey()})
    put(tmp_path, {"test/b/1.png" if test_classes else "test/1.png": grey()})
    images = load_folder(tmp_path)
    assert images.train_labels.tolist() == [0, 1, 1]
    assert len(images.test) == 1
    assert (images.test_labels is None) != test_classes
    if test_classes:
        assert images.test_labels.tolist() == [1]
    assert images.source.endswith("3 training and 1 test images, its own split")


def test_a_training_folder_alone_gives_a_fifth(tmp_path):
    put(tmp_path, {f"train/{kind}/{i}.png": grey() for kind in "ab" for i in range(5)})
    images = load_folder(tmp_path)
    assert images.train_labels.bincount().tolist() == [4, 4]
    assert images.test_labels.tolist() == [0, 1]


def test_one_image_in_colour_gives_all_three_channels(tmp_path):
    dull, bright = grey(), colour()
    images = load_folder(put(tmp_path, {"1.png": dull, "2.png": bright}))
    np.testing.assert_array_equal(images.train[0], np.stack([dull] * 3))
    np.testing.assert_array_equal(images.train[1], bright.transpose(2, 0, 1))


@pytest.mark.parametrize("suffix", [".png", ".PNG", ".bmp", ".tiff", ".ppm", ".webp", ".gif"])
def test_lossless_formats_come_back_as_they_were(tmp_path, suffix):
    values = np.full((6, 6, 3), (200, 10, 60), np.uint8)
    values[:2] = 0
    options = {"lossless": True} if suffix == ".webp" else {}
    Image.fromarray(values).save(tmp_path / f"1{suffix}", **options)
    np.testing.assert_array_equal(load_folder(tmp_path).train[0], values.transpose(2, 0, 1))


def test_a_jpeg_is_near_what_it_was_and_lies_as_its_camera_says(tmp_path):
    ramp = np.tile(np.arange(0, 240, 10, dtype=np.uint8), (16, 1))  # 24 wide, 16 high, brighter to the right
    turned = Image.Exif()
    turned[0x0112] = 6  # to be turned clockwise
    Image.fromarray(ramp).save(tmp_path / "1.jpg", quality=95, exif=turned)
    image = load_folder(tmp_path).train[0, 0].int().numpy()
    assert image.shape == (24, 16)
    assert np.abs(image - np.rot90(ramp, -1)).max() < 8


def test_other_depths_become_bytes(tmp_path):
    deep = RNG.integers(0, 65536, (6, 6)).astype(np.uint16)
    put(tmp_path / "deep", {"1.png": deep})
    np.testing.assert_array_equal(load_folder(tmp_path / "deep").train[0, 0], deep >> 8)
    (tmp_path / "bits").mkdir()
    Image.fromarray(grey() > 127).save(tmp_path / "bits/1.png")
    assert set(load_folder(tmp_path / "bits").train.unique().tolist()) == {0, 255}
    (tmp_path / "float").mkdir()
    Image.fromarray(np.full((6, 6), 70_000, np.int32)).save(tmp_path / "float/1.tif")
    with pytest.raises(UserError, match=r"1.tif' must be an image, .*70000, not 0 to 65535"):
        load_folder(tmp_path / "float")


def test_transparency_is_dropped(tmp_path):
    values = RNG.integers(0, 256, (6, 6, 4), dtype=np.uint8)
    put(tmp_path / "rgba", {"1.png": values})
    np.testing.assert_array_equal(load_folder(tmp_path / "rgba").train[0], values[..., :3].transpose(2, 0, 1))
    (tmp_path / "palette").mkdir()
    picture = Image.fromarray(colour()).quantize(8)
    picture.save(tmp_path / "palette/1.png", transparency=bytes(range(8)))
    expected = np.asarray(picture.convert("RGB")).transpose(2, 0, 1)
    np.testing.assert_array_equal(load_folder(tmp_path / "palette").train[0], expected)


def test_sizes_must_be_equal_or_a_side_be_given(tmp_path):
    put(tmp_path, {"1.png": grey(6, 6), "2.png": grey(6, 6), "3.png": grey(6, 8), "4.png": grey(9, 9)})
    with pytest.raises(UserError, match=r"3.png' is 8 x 6 and '1.png' is 6 x 6; give a side"):
        load_folder(tmp_path)
    assert load_folder(tmp_path, side=5).train.shape == (4, 1, 5, 5)
    with pytest.raises(UserError, match="side must be >= 1, got 0"):
        load_folder(tmp_path, side=0)


def test_a_side_takes_the_middle_and_keeps_what_fits(tmp_path):
    values = np.zeros((4, 12), np.uint8)
    values[:, 4:8] = 200  # the middle square
    exact = grey(4, 4)
    images = load_folder(put(tmp_path, {"1.png": values, "2.png": exact}), side=4)
    assert set(images.train[0].unique().tolist()) == {200}
    np.testing.assert_array_equal(images.train[1, 0], exact)


def encoded(kind):
    stream = io.BytesIO()
    Image.fromarray(colour(40, 40)).save(stream, kind)
    return stream.getvalue()


GOOD, PHOTO = encoded("PNG"), encoded("JPEG")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        GOOD[: len(GOOD) // 2],
        GOOD[:-20],
        GOOD[:200] + bytes([GOOD[200] ^ 255]) + GOOD[201:],
        PHOTO[: len(PHOTO) // 2],
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",  # Pillow would hand it to another program
    ],
    ids=["empty", "a page", "half", "end cut", "one byte changed", "half a JPEG", "a program"],
)
def test_a_corrupt_image_is_named(tmp_path, content):
    put(tmp_path, {"a/1.png": colour(40, 40), "b/1.png": colour(40, 40)})
    (tmp_path / "b/2.png").write_bytes(content)
    for side in (None, 4):
        with pytest.raises(UserError, match=r"b/2.png' must be an image, but cannot be read \(.*; mend it") as caught:
            load_folder(tmp_path, side=side)
        assert "\n" not in str(caught.value)


def test_what_is_no_folder_of_images_is_told(tmp_path):
    with pytest.raises(UserError, match="none' is not there"):
        load_folder(tmp_path / "none")
    with pytest.raises(UserError, match=r"must hold images \(.png .*\), but holds none"):
        load_folder(tmp_path)
    put(tmp_path, {"test/1.png": grey()})
    with pytest.raises(UserError, match="has a folder test, so it must have a folder train"):
        load_folder(tmp_path)
    put(tmp_path, {"train/a/1.png": grey(), "test/b/1.png": grey()})
    (tmp_path / "test/1.png").unlink()
    with pytest.raises(UserError, match=r"those of the training part, but .*test/b/1.png' is of class 'b'"):
        load_folder(tmp_path)
    put(tmp_path, {"train/loose.png": grey()})
    with pytest.raises(UserError, match=r"in the folder of its class, or none, but 'loose.png' is in no folder"):
        load_folder(tmp_path)


def test_images_are_decoded_once_until_one_changes(tmp_path, monkeypatch):
    decode, times = module._decode, []
    monkeypatch.setattr(module, "_decode", lambda *args: times.append(1) or decode(*args))
    put(tmp_path, {f"{kind}/{i}.png": grey() for kind in "ab" for i in range(5)})
    first, again = load_folder(tmp_path), load_folder(tmp_path)
    assert len(times) == 1
    assert torch.equal(whole(first), whole(again))
    assert torch.equal(first.test_labels, again.test_labels)
    assert load_folder(tmp_path, side=3).train.shape[2:] == (3, 3)
    put(tmp_path, {"b/9.png": grey()})
    assert len(whole(load_folder(tmp_path))) == 11
    (tmp_path / "a/0.png").unlink()
    assert len(whole(load_folder(tmp_path))) == 10
    assert len(times) == 4


def test_no_labels_survive_the_cache(tmp_path):
    put(tmp_path, {f"{i}.png": grey() for i in range(5)})
    for _ in range(2):
        images = load_folder(tmp_path)
        assert (images.train_labels, images.test_labels) == (None, None)
        assert (len(images.train), len(images.test)) == (4, 1)
