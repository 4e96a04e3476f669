"""The MATLAB files of SVHN's cropped digits.

``X`` (32, 32, 3, n) holds the images, ``y`` (n, 1) the digits, where 10 stands for the digit 0.
Defined at http://ufldl.stanford.edu/housenumbers/.
"""

import io
import zlib
from typing import Literal

import numpy as np
from scipy.io import loadmat

from gedi.data.limits import check_unpacked, memory_limit
from gedi.errors import UserError

_HEADER = 128  # bytes before the first variable
_PACKED = 15  # the kind of a variable that is a zlib stream
_CHUNK = 2**20
_AGAIN = "get the file again"


def parse_mat(content: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 3, 32, 32) uint8 and digits (n,) from the bytes of a ``.mat`` file; ``name`` is for errors."""
    try:
        check_unpacked(len(content), _unpacked_size(content), name)
        held = loadmat(io.BytesIO(content), variable_names=("X", "y"))
    except UserError:
        raise
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


def _unpacked_size(content: bytes) -> int:
    """Bytes of all variables of a MATLAB 5 file, each of which may be packed; stops beyond what memory should hold."""
    total, limit = 0, memory_limit()
    order: Literal["big", "little"] = "big" if content[126:128] == b"MI" else "little"
    place = _HEADER
    while place + 8 <= len(content) and total <= limit:
        kind, size = (int.from_bytes(content[place + i : place + i + 4], order) for i in (0, 4))
        place += 8
        if kind == _PACKED:
            stream, part = zlib.decompressobj(), content[place : place + size]
            while part and total <= limit:
                total += len(stream.decompress(part, _CHUNK))
                part = stream.unconsumed_tail
        else:
            total += size
        place += size
    return total
