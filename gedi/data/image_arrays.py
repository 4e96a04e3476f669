"""Images in arrays of one's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gedi.data.images import ImageSet
from gedi.data.labels import check_labels
from gedi.data.npy import check_file, read_arrays
from gedi.data.split import fifth
from gedi.errors import UserError


def load_image_arrays(path: str | Path) -> ImageSet:
    """Images from a ``.npy`` or ``.npz`` file. Nothing in the file can run code.

    Images are (n, h, w), (n, h, w, c) or (n, c, h, w) with one or three channels, uint8 or float in [0, 1].

    ============  ==========================================================================================
    ``.npy``      the images
    ``.npz``      ``x``, and ``y`` (n,) if there are labels; ``x_test`` and ``y_test`` if there is a test part
    ============  ==========================================================================================

    Without a test part a fifth is one, always the same.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(Path(folder) / "mine.npz", x=np.zeros((10, 8, 8, 3), np.uint8), y=["cat", "dog"] * 5)
        ...     images = load_image_arrays(Path(folder) / "mine.npz")
        >>> images.train.shape, images.test_labels
        (torch.Size([8, 3, 8, 8]), tensor([0, 1]))
    """
    path = Path(path).expanduser()
    check_file(path, (".npy", ".npz"))
    held = read_arrays(path, ("x", "y", "x_test", "y_test"))
    if "y_test" in held and "x_test" not in held:
        raise UserError(f"{path.name} holds y_test, so it must hold x_test")
    x = _images(held["x"], f"x of {path.name}")
    y = check_labels(held["y"], len(x), f"y of {path.name}") if "y" in held else None
    if "x_test" in held:
        x_test = _images(held["x_test"], f"x_test of {path.name}")
        y_test = check_labels(held["y_test"], len(x_test), f"y_test of {path.name}") if "y_test" in held else None
        labels, test_labels = numbered(y, y_test)
        how = "its own split"
    else:
        labels, _ = numbered(y, None)
        kept, held_out = fifth(len(x), labels)
        x, x_test = x[kept], x[held_out]
        labels, test_labels = (None, None) if labels is None else (labels[kept], labels[held_out])
        how = "a fifth for the test"
    source = f"file {path.name}: {len(x):,} training and {len(x_test):,} test images, {how}"
    return ImageSet(path.stem, x, labels, x_test, test_labels, False, source)


Layout = Literal["hw", "hwc", "chw"]


def layout_of(shape: Sequence[int], name: str) -> Layout:
    """How images (n, ...) of a shape are stored; ``name`` is for errors.

    Example:
        >>> layout_of((10, 28, 28), "x"), layout_of((10, 32, 32, 3), "x"), layout_of((10, 3, 32, 32), "x")
        ('hw', 'hwc', 'chw')
    """
    last, second = len(shape) == 4 and shape[3] in (1, 3), len(shape) == 4 and shape[1] in (1, 3)
    if len(shape) not in (3, 4) or shape[0] == 0 or (len(shape) == 4 and last == second):
        raise UserError(
            f"{name} must be images (n, h, w), (n, h, w, c) or (n, c, h, w) with c 1 or 3 and no doubt which, "
            f"got shape {tuple(shape)}"
        )
    return "hw" if len(shape) == 3 else "hwc" if last else "chw"


def channels_first(values: np.ndarray, layout: Layout) -> np.ndarray:
    """Images (n, c, h, w) of images in a layout."""
    if layout == "hw":
        return values[:, None]
    return values.transpose(0, 3, 1, 2) if layout == "hwc" else values


def _images(values: np.ndarray, name: str) -> Tensor:
    """Images (n, c, h, w), uint8 or float32."""
    values = channels_first(values, layout_of(values.shape, name))
    if values.dtype == np.uint8:
        return torch.from_numpy(np.ascontiguousarray(values))
    check_kind(values.dtype, name)
    check_range(values.min(), values.max(), name)
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))


def check_kind(dtype: np.dtype, name: str) -> None:
    """Refuse images that are neither bytes nor floats."""
    if dtype != np.uint8 and dtype.kind != "f":
        raise UserError(f"{name} must be uint8 or float in [0, 1], got {dtype}; convert it")


def check_range(low: float, high: float, name: str) -> None:
    """Refuse floats that are not from black to white."""
    if not (low >= 0 and high <= 1):  # also false for NaN
        raise UserError(f"{name} must be floats in [0, 1], got {low:g} to {high:g}; scale it, or store uint8")


def numbered(y: np.ndarray | None, y_test: np.ndarray | None) -> tuple[Tensor | None, Tensor | None]:
    """Labels of any kind as 0, 1, ...: the same number for the same label in both parts."""
    given = [labels for labels in (y, y_test) if labels is not None]
    if not given:
        return None, None
    kinds = np.unique(np.concatenate([labels.reshape(-1) for labels in given]))
    numbers = [torch.from_numpy(np.searchsorted(kinds, labels).astype(np.int64)) for labels in given]
    return (numbers[0] if y is not None else None), (numbers[-1] if y_test is not None else None)
