"""Images in arrays of one's own."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gedi.data.arrays import check_file, read_arrays
from gedi.data.images import ImageSet
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
    x, y = _images(held["x"], f"x of {path.name}"), held.get("y")
    if "x_test" in held:
        x_test = _images(held["x_test"], f"x_test of {path.name}")
        labels, test_labels = _numbers(y, held.get("y_test"))
        how = "its own split"
    else:
        labels, _ = _numbers(y, None)
        if labels is not None and labels.shape != (len(x),):
            raise UserError(f"{path.name} must hold one label an image, got {len(x)} and {tuple(labels.shape)}")
        kept, held_out = fifth(len(x), labels)
        x, x_test = x[kept], x[held_out]
        labels, test_labels = (None, None) if labels is None else (labels[kept], labels[held_out])
        how = "a fifth for the test"
    source = f"file {path.name}: {len(x):,} training and {len(x_test):,} test images, {how}"
    return ImageSet(path.stem, x, labels, x_test, test_labels, False, source)


def _images(values: np.ndarray, name: str) -> Tensor:
    """Images (n, c, h, w), uint8 or float32."""
    last, second = values.ndim == 4 and values.shape[3] in (1, 3), values.ndim == 4 and values.shape[1] in (1, 3)
    if len(values) == 0 or values.ndim not in (3, 4) or (values.ndim == 4 and last == second):
        raise UserError(
            f"{name} must be images (n, h, w), (n, h, w, c) or (n, c, h, w) with c 1 or 3 and no doubt which, "
            f"got shape {values.shape}"
        )
    if values.ndim == 3:
        values = values[:, None]
    elif last:
        values = values.transpose(0, 3, 1, 2)
    if values.dtype == np.uint8:
        return torch.from_numpy(np.ascontiguousarray(values))
    if values.dtype.kind != "f":
        raise UserError(f"{name} must be uint8 or float in [0, 1], got {values.dtype}; convert it")
    if not (values.min() >= 0 and values.max() <= 1):  # also false for NaN
        raise UserError(
            f"{name} must be floats in [0, 1], got {values.min():g} to {values.max():g}; scale it, or store uint8"
        )
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))


def _numbers(y: np.ndarray | None, y_test: np.ndarray | None) -> tuple[Tensor | None, Tensor | None]:
    """Labels of any kind as 0, 1, ...: the same number for the same label in both parts."""
    given = [labels for labels in (y, y_test) if labels is not None]
    if not given:
        return None, None
    kinds = np.unique(np.concatenate([labels.reshape(-1) for labels in given]))
    numbers = [torch.from_numpy(np.searchsorted(kinds, labels).astype(np.int64)) for labels in given]
    return (numbers[0] if y is not None else None), (numbers[-1] if y_test is not None else None)
