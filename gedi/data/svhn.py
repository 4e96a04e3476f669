"""The MATLAB files of SVHN's cropped digits.

``X`` (32, 32, 3, n) holds the images, ``y`` (n, 1) the digits, where 10 stands for the digit 0.
Defined at http://ufldl.stanford.edu/housenumbers/.
"""

import io

import numpy as np
from scipy.io import loadmat

from gedi.errors import UserError

_AGAIN = "get the file again"


def parse_mat(content: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 3, 32, 32) uint8 and digits (n,) from the bytes of a ``.mat`` file; ``name`` is for errors."""
    try:
        held = loadmat(io.BytesIO(content), variable_names=("X", "y"))
    except Exception as error:  # a damaged file makes SciPy stumble in many ways
        raise UserError(f"{name} must be a whole MATLAB file, but cannot be read ({error}); {_AGAIN}") from None
    if not {"X", "y"} <= set(held):
        raise UserError(f"{name} must hold X and y, but does not; {_AGAIN}")
    x, y = held["X"], held["y"].reshape(-1)
    if x.dtype != np.uint8 or x.shape[:-1] != (32, 32, 3):
        raise UserError(f"{name} must hold X of shape (32, 32, 3, n) in uint8, got {x.shape} in {x.dtype}; {_AGAIN}")
    if not np.isin(y, range(1, 11)).all():
        raise UserError(f"{name} must hold digits 1 to 10 in y, 10 for the digit 0, got {y.min()} to {y.max()}")
    return np.ascontiguousarray(x.transpose(3, 2, 0, 1)), y % 10
