"""The idx format of MNIST and its relatives.

A file is ``00 00 type dims``, one big-endian uint32 a dimension, then the values, big-endian, last index fastest;
often gzipped. Defined at the end of http://yann.lecun.com/exdb/mnist/.
"""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from gedi.errors import UserError

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
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
    return parse_idx(decompress(read_bytes(path), path.name), path.name)


def read_bytes(path: Path) -> bytes:
    """A file's bytes as they are."""
    if not path.is_file():
        raise UserError(f"a data file must exist, but {str(path)!r} is not there")
    return path.read_bytes()


def decompress(content: bytes, name: str) -> bytes:
    """A file's bytes, decompressed if they are a gzip stream, whatever the file is called."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{name} must be a whole gzip file, but it is corrupt ({error}); {_AGAIN}") from None


def parse_idx(content: bytes, name: str) -> np.ndarray:
    """The array in the bytes of an idx file; ``name`` is what errors call it."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise UserError(f"{name} must be an idx file, but it begins with {content[:4].hex(' ') or 'nothing'}; {_AGAIN}")
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
