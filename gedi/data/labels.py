"""Labels of any kind as 0, 1, ..."""

import numpy as np
import torch
from torch import Tensor

from gedi.errors import UserError


def check_labels(y: np.ndarray, n: int, name: str) -> np.ndarray:
    """Labels (n,) that are whole numbers or text; anything else is refused. ``name`` is for errors.

    Example:
        >>> check_labels(np.array([1.0, 2.0]), 2, "y")
        array([1., 2.])
    """
    if y.shape != (n,):
        raise UserError(f"{name} must hold one label a row, got {n} rows and {y.shape}")
    if y.dtype.kind not in "biufUS":
        raise UserError(f"{name} must hold labels that are whole numbers or text, got {y.dtype}")
    if y.dtype.kind == "f":
        if missing := int(np.isnan(y).sum()):
            raise UserError(
                f"{name} must hold a label for every row, but {missing} of {n} are NaN; fill them, or leave labels out"
            )
        odd = np.flatnonzero(~np.isfinite(y) | (y != np.round(y)))
        if len(odd):
            raise UserError(f"{name} must hold labels that are whole numbers or text, got {y[odd[0]]} in row {odd[0]}")
    return y


def number_labels(y: np.ndarray) -> Tensor:
    """Labels as 0, 1, ... in their order, (n,) int64.

    Example:
        >>> number_labels(np.array(["b", "a", "b"]))
        tensor([1, 0, 1])
    """
    return torch.from_numpy(np.unique(y, return_inverse=True)[1].reshape(-1))
