"""Images kept as bytes: what asking for points gives, and that nothing else is made."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gedi.data import Dataset, Pixels, StoredImages, chunks, unit_range
from gedi.errors import UserError

SETTINGS = [
    Pixels(),
    Pixels(mean=0.5, std=0.5),
    Pixels(pad=2),
    Pixels(channels=3),
    Pixels(pad=1, channels=3, mean=0.1, std=0.28),
]


def some_bytes(n=7, channels=1, side=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randint(256, (n, channels, side, side), generator=g, dtype=torch.uint8)


def by_hand(stored, pixels):
    """Pixel by pixel in double precision."""
    x = stored.double().numpy() / (255 if stored.dtype == torch.uint8 else 1)
    n, c, h, w = x.shape
    p = pixels.pad
    points = np.zeros((n, 3 if pixels.channels == 3 and c == 1 else c, h + 2 * p, w + 2 * p))
    for row in range(h):
        for column in range(w):
            points[:, :, row + p, column + p] = x[:, :, row, column]
    return torch.tensor((points - pixels.mean) / pixels.std)


def test_every_byte_becomes_its_share_of_white():
    points = Pixels()(torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)).flatten()
    assert points.dtype == torch.float32
    assert (points[0], points[255]) == (0, 1)
    torch.testing.assert_close(points.double(), torch.arange(256).double() / 255, rtol=2e-7, atol=0)
    assert (points.diff() > 0).all()


@pytest.mark.parametrize("pixels", SETTINGS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["bytes", "floats", "doubles"])
def test_points_are_what_the_float_computation_gives(pixels, channels, kind):
    stored = some_bytes(channels=channels)
    if kind != "bytes":
        stored = unit_range(stored).to(torch.float32 if kind == "floats" else torch.float64)
    kept = stored.clone()
    points = pixels(stored)
    assert points.dtype == torch.float32
    torch.testing.assert_close(points.double(), by_hand(stored, pixels), rtol=1e-6, atol=1e-6)
    assert torch.equal(stored, kept)


@pytest.mark.parametrize("pixels", SETTINGS)
def test_range_is_what_black_and_white_become(pixels):
    black, white = (pixels(torch.full((1, 1, 2, 2), value, dtype=torch.uint8)) for value in (0, 255))
    low, high = pixels.range
    assert low == pytest.approx(black.min().item(), abs=1e-6)
    assert high == pytest.approx(white.max().item(), abs=1e-6)
    points = pixels(some_bytes(n=50))
    assert low - 1e-6 <= points.min()
    assert points.max() <= high + 1e-6


def test_the_border_is_black_and_grey_channels_are_alike():
    points = Pixels(pad=2, channels=3, mean=0.5, std=0.25)(some_bytes())
    assert points.shape == (7, 3, 8, 8)
    inside = torch.zeros(8, 8, dtype=torch.bool)
    inside[2:-2, 2:-2] = True
    assert (points[:, :, ~inside] == -2).all()
    assert torch.equal(points[:, 0], points[:, 1])
    assert torch.equal(points[:, 0], points[:, 2])


INDICES = [
    slice(None), slice(2, 5), slice(None, None, 3), slice(5, 100), slice(3, 3),
    torch.tensor([4, 0, 4]), torch.tensor([], dtype=torch.long), torch.tensor([True] * 3 + [False] * 4),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("pixels", SETTINGS)
def test_indexing_gives_the_rows_that_indexing_all_points_gives(index, pixels):
    stored = some_bytes()
    images = StoredImages(stored, pixels)
    assert torch.equal(images[index], pixels(stored)[index])
    assert images[index].shape[1:] == images.shape[1:]


@pytest.mark.parametrize("pixels", SETTINGS)
def test_the_shape_is_that_of_the_points(pixels):
    images = StoredImages(some_bytes(), pixels)
    assert images.shape == images[:].shape
    assert isinstance(images.shape, torch.Size)
    assert len(images) == 7


def test_bytes_stay_bytes_and_are_not_copied():
    source = np.random.default_rng(0).integers(0, 256, (9, 1, 4, 4), dtype=np.uint8)
    stored = torch.from_numpy(source)
    images = StoredImages(stored, Pixels(mean=0.5, std=0.5))
    images[:]
    data = Dataset("x", images, images)
    for kept in (images.stored, images.to("cpu").stored, data.train.stored):
        assert kept.dtype == torch.uint8
        assert kept.data_ptr() == stored.data_ptr() == source.ctypes.data
    source[3] = 255
    assert (images[3:4] == 1).all()  # the source itself is asked, every time


def test_points_of_bytes_may_be_changed_without_changing_the_images():
    images = StoredImages(some_bytes(), Pixels())
    before = images[:].clone()
    images[:].zero_()
    images[torch.tensor([1, 2])].zero_()
    assert torch.equal(images[:], before)


def test_moved_images_are_the_same_images():
    images = StoredImages(some_bytes(), SETTINGS[-1])
    moved = images.to("cpu", non_blocking=True)
    assert isinstance(moved, StoredImages)
    assert moved.pixels is images.pixels
    assert torch.equal(moved[:], images[:])
    meta = images.to(torch.device("meta"))
    assert meta.stored.device.type == "meta"
    assert meta.shape == images.shape


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_chunks_together_are_all_points_in_order(size):
    images = StoredImages(some_bytes(), SETTINGS[-1])
    for x in (images, images[:]):
        parts = list(chunks(x, size))
        assert [len(part) for part in parts] == [size] * (7 // size) + [7 % size] * (7 % size > 0)
        assert torch.equal(torch.cat(parts), images[:])
    assert list(chunks(torch.zeros(0, 2), size)) == []


@pytest.mark.parametrize("pixels", SETTINGS)
def test_a_data_set_of_stored_images_groups_them_as_it_groups_points(pixels):
    stored = some_bytes(n=8)
    images = Dataset("x", StoredImages(stored, pixels), StoredImages(stored[:2], pixels), group_size=3, groups=2)
    points = replace(images, train=pixels(stored), test=pixels(stored[:2]))
    assert images.grouped.shape == (2, 3, *images.train.shape[1:])
    assert torch.equal(images.grouped, points.grouped)
    assert torch.equal(images.free, points.free)
    assert len(images.free) == 2


def test_a_data_set_refuses_stored_images_as_it_refuses_points():
    images = StoredImages(some_bytes(), Pixels())
    with pytest.raises(UserError, match=r"one shape, got \(1, 4, 4\) and \(1, 6, 6\)"):
        Dataset("x", images, StoredImages(some_bytes(), Pixels(pad=1)))
    with pytest.raises(UserError, match="one for each of the 7 points"):
        Dataset("x", images, images, train_labels=torch.zeros(6))
    with pytest.raises(UserError, match=r"3 groups of 3 need 9 training points, got 7"):
        Dataset("x", images, images, group_size=3, groups=3)
    with pytest.raises(UserError, match=r"test data must be points .* got shape \(0, 1, 4, 4\)"):
        Dataset("x", images, StoredImages(some_bytes(n=0), Pixels()))
    spoilt = unit_range(some_bytes())
    spoilt[5, 0, 1, 1] = torch.nan
    with pytest.raises(UserError, match=r"training data must be finite: 1 of 7 rows .* row 5"):
        Dataset("x", StoredImages(spoilt, Pixels()), images)


def test_bytes_are_not_turned_into_points_to_check_them(monkeypatch):
    images = StoredImages(some_bytes(), Pixels(mean=0.5))

    def asked(self, index):
        raise AssertionError("points were made")

    monkeypatch.setattr(StoredImages, "__getitem__", asked)
    Dataset("x", images, images)
