"""The idx format of MNIST and its relatives.

A file is ``00 00 type dims``, one big-endian uint32 a dimension, then the values, big-endian, last index fastest;
often gzipped. Defined at the end of http://yann.lecun.com/exdb/mnist/.
"""

import math
from pathlib import Path

import numpy as np

from gedi.data.archive import read_unpacked
from gedi.errors import UserError

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_DIMS = 8
_AGAIN = "get the file again"


def read_idx(path: str | Path) -> np.ndarray:
    """The array of one idx file, gzipped or not, in the machine's own byte order.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "labels-idx1-ubyte"
        ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3]) + bytes([5, 0, 4]))
        ...     read_idx(path)
        array([5, 0, 4], dtype=uint8)
    """
    path = Path(path)
    return parse_idx(read_unpacked(path), path.name)


def parse_idx(content: bytes, name: str) -> np.ndarray:
    """The array in the bytes of an idx file; ``name`` is what errors call it."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise UserError(f"{name} must be an idx file, but it begins with {content[:4].hex(' ') or 'nothing'}; {_AGAIN}")
    if content[3] > _MOST_DIMS:
        raise UserError(f"{name} must have at most {_MOST_DIMS} dimensions, but claims {content[3]}; {_AGAIN}")
    dtype, start = np.dtype(_TYPES[content[2]]), 4 + 4 * content[3]
    if len(content) < start:
        raise UserError(f"{name} is truncated: its header must be {start} bytes, got {len(content)}; {_AGAIN}")
    shape = [int(size) for size in np.frombuffer(content[4:start], ">u4")]
    expected = start + math.prod(shape) * dtype.itemsize
    if len(content) != expected:
        fault = "truncated" if len(content) < expected else "too long"
        raise UserError(f"{name} is {fault}: shape {tuple(shape)} is {expected} bytes, got {len(content)}; {_AGAIN}")
    values = np.frombuffer(content, dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="))  # a copy: the bytes of a file cannot be written to
