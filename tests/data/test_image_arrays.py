"""Images in arrays: every order of axes, labels and splits, and every fault named."""

import numpy as np
import pytest
import torch

from gedi.data import ImageSet, load_image_arrays
from gedi.errors import UserError

RNG = np.random.default_rng(0)
X = RNG.integers(0, 256, (10, 3, 8, 6), dtype=np.uint8)


def test_every_order_of_axes_gives_the_same_images(tmp_path):
    np.save(tmp_path / "second.npy", X)
    np.save(tmp_path / "last.npy", X.transpose(0, 2, 3, 1))
    np.savez(tmp_path / "named.npz", x=X)
    for name in ("second.npy", "last.npy", "named.npz"):
        images = load_image_arrays(tmp_path / name)
        assert (images.train.shape, images.test.shape) == ((8, 3, 8, 6), (2, 3, 8, 6))
        assert images.train.is_contiguous()
        got = {image.numpy().tobytes() for image in torch.cat([images.train, images.test])}
        assert got == {image.tobytes() for image in X}
        assert images.train_labels is None
    np.save(tmp_path / "grey.npy", X[:, 0])
    assert load_image_arrays(tmp_path / "grey.npy").train.shape == (8, 1, 8, 6)


def test_labels_follow_their_images(tmp_path):
    y = np.array(["dog", "cat"] * 5)
    np.savez(tmp_path / "mine.npz", x=X, y=y)
    images = load_image_arrays(tmp_path / "mine.npz")
    number = {image.tobytes(): int(kind == "dog") for image, kind in zip(X, y, strict=True)}
    for part, labels in ((images.train, images.train_labels), (images.test, images.test_labels)):
        assert labels.tolist() == [number[image.numpy().tobytes()] for image in part]
    assert images.test_labels.bincount().tolist() == [1, 1]
    assert (images.name, images.exact) == ("mine", False)
    assert images.source == "file mine.npz: 8 training and 2 test images, a fifth for the test"


def test_a_test_part_is_taken_as_it_is(tmp_path):
    np.savez(tmp_path / "a.npz", x=X, y=np.arange(10) + 5, x_test=X[:3], y_test=np.array([14, 5, 4]))
    images = load_image_arrays(tmp_path / "a.npz")
    np.testing.assert_array_equal(images.train, X)
    np.testing.assert_array_equal(images.test, X[:3])
    assert images.train_labels.tolist() == list(range(1, 11))
    assert images.test_labels.tolist() == [10, 1, 0]
    assert images.source.endswith("its own split")
    np.savez(tmp_path / "b.npz", x=X, y=np.arange(10), x_test=X[:3])
    assert load_image_arrays(tmp_path / "b.npz").test_labels is None


def test_floats_stay_floats(tmp_path):
    np.save(tmp_path / "a.npy", (X / 255).astype(np.float64))
    images = load_image_arrays(tmp_path / "a.npy")
    assert images.train.dtype == torch.float32
    assert (images.train.min(), images.train.max()) == (0, 1)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X.astype(np.float32)}, r"x of a.npz must be floats in \[0, 1\], got 0 to 255"),
        ({"x": np.full((2, 8, 8), np.nan)}, r"floats in \[0, 1\], got nan"),
        ({"x": X.astype(np.int64)}, r"must be uint8 or float in \[0, 1\], got int64"),
        ({"x": X[:, :2]}, r"with c 1 or 3 and no doubt which, got shape \(10, 2, 8, 6\)"),
        ({"x": X[..., :3]}, r"no doubt which, got shape \(10, 3, 8, 3\)"),
        ({"x": X[0, 0]}, r"got shape \(8, 6\)"),
        ({"x": X[:0]}, r"got shape \(0, 3, 8, 6\)"),
        ({"x": X, "y": np.arange(9)}, r"y of a.npz must hold one label a row, got 10 rows and \(9,\)"),
        ({"x": X, "y": np.zeros((10, 1))}, r"one label a row, got 10 rows and \(10, 1\)"),
        ({"x": X, "y_test": np.arange(9)}, "holds y_test, so it must hold x_test"),
        (
            {"x": X, "x_test": X, "y_test": np.arange(9)},
            r"y_test of a.npz must hold one label a row, got 10",
        ),
        ({"x": X, "x_test": X[:, :, :5]}, "a: training and test images must be alike"),
        ({"images": X}, "must hold an array named 'x', got images"),
    ],
)
def test_a_fault_is_named(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(UserError, match=message):
        load_image_arrays(tmp_path / "a.npz")


def test_damaged_and_strange_files_are_named(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=X)
    content = (tmp_path / "a.npz").read_bytes()
    for damaged in (content[:-30], content[:300] + bytes([content[300] ^ 255]) + content[301:], b"", b"PK\3\4"):
        (tmp_path / "b.npz").write_bytes(damaged)
        with pytest.raises(UserError, match=r"b.npz cannot be read as .npz"):
            load_image_arrays(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", x=np.array([{}], dtype=object))
    with pytest.raises(UserError, match=r"c.npz cannot be read"):
        load_image_arrays(tmp_path / "c.npz")
    (tmp_path / "d.csv").write_text("a\n1\n")
    with pytest.raises(UserError, match=r"must end in .npy or .npz, got 'd.csv'"):
        load_image_arrays(tmp_path / "d.csv")
    with pytest.raises(UserError, match="is not there"):
        load_image_arrays(tmp_path / "none.npy")


def test_labels_are_there_or_asked_for():
    x, y = torch.zeros(2, 1, 4, 4), torch.tensor([0, 1])
    assert torch.equal(torch.stack(ImageSet("a", x, y, x, y, True, "").labels()), torch.stack([y, y]))
    with pytest.raises(UserError, match="a must have labels for every image"):
        ImageSet("a", x, y, x, None, True, "").labels()
