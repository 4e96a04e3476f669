"""The two formats of CIFAR-10 and CIFAR-100: rows of bytes, and Python batches.

A row of a ``.bin`` file is one label byte (CIFAR-100: the coarse label, then the fine one) and 3072 pixel bytes: red,
green, blue, each 32 rows of 32. A Python batch is a pickled dictionary with the same pixels in ``data`` (n, 3072) and
the labels in ``labels`` or ``fine_labels``. Defined at https://www.cs.toronto.edu/~kriz/cifar.html.
"""

import io
import math
import pickle
import pickletools
from collections.abc import Callable
from typing import Any

import numpy as np

from gedi.errors import UserError

_SIDE = 32
_PIXELS = 3 * _SIDE * _SIDE
_AGAIN = "get the file again"


def parse_rows(content: bytes, name: str, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 3, 32, 32) uint8 and labels (n,) from the bytes of a ``.bin`` file; ``name`` is for errors.

    Example:
        >>> images, labels = parse_rows(bytes([7]) + bytes(3072) + bytes([2]) + bytes(3072), "two.bin", classes=10)
        >>> images.shape, labels
        ((2, 3, 32, 32), array([7, 2], dtype=uint8))
    """
    width = (1 if classes == 10 else 2) + _PIXELS
    if not content or len(content) % width:
        raise UserError(
            f"{name} is truncated: it must hold whole images of {width} bytes each, got {len(content)} bytes; {_AGAIN}"
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, width)
    return rows[:, -_PIXELS:].reshape(-1, 3, _SIDE, _SIDE), _labels(rows[:, -_PIXELS - 1], name, classes)


def parse_batch(content: bytes, name: str, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 3, 32, 32) uint8 and labels (n,) from the bytes of a Python batch. Nothing in it can run code."""
    try:
        _check_memo(content)
        batch = _Batch(io.BytesIO(content), encoding="latin1").load()
    except UserError as error:
        raise UserError(f"{name} {error}") from None
    except Exception as error:  # a damaged pickle may raise anything
        raise UserError(f"{name} must be a Python batch of CIFAR, but cannot be read ({error}); {_AGAIN}") from None
    kind = "labels" if classes == 10 else "fine_labels"
    data, labels = (batch.get("data"), batch.get(kind)) if isinstance(batch, dict) else (None, None)
    if not isinstance(data, _Array) or not isinstance(labels, list) or {type(label) for label in labels} != {int}:
        raise UserError(f"{name} must hold 'data' and whole numbers as {kind!r}, but does not; {_AGAIN}")
    if data.shape != (len(labels), _PIXELS) or len(data.content) != math.prod(data.shape):
        raise UserError(
            f"{name} must hold {_PIXELS} bytes for each of its {len(labels)} labels, got an array of shape "
            f"{data.shape} in {len(data.content)} bytes; {_AGAIN}"
        )
    pixels = np.frombuffer(data.content, np.uint8).reshape(data.shape, order=data.order)
    return pixels.reshape(-1, 3, _SIDE, _SIDE), _labels(np.array(labels), name, classes)


def _check_memo(content: bytes) -> None:
    """Refuse a place in the memo beyond any real one: the unpickler would make room for all places before it."""
    for number, (op, place, _) in enumerate(pickletools.genops(content)):
        if op.name in ("PUT", "BINPUT", "LONG_BINPUT") and (place or 0) > number:
            raise UserError(f"must be a Python batch of CIFAR, but asks for {place:,} places of memory; {_AGAIN}")


def _labels(labels: np.ndarray, name: str, classes: int) -> np.ndarray:
    if labels.min() < 0 or labels.max() >= classes:
        wrong = int(labels[(labels < 0) | (labels >= classes)][0])
        raise UserError(f"{name} must hold labels 0 to {classes - 1}, got {wrong}; it is not a file of CIFAR-{classes}")
    return labels


class _Array:
    """What a pickled array says of itself; NumPy's own code never runs on a stranger's words."""

    shape: tuple[int, ...] = ()
    order: Any = "C"
    content = b""

    def __setstate__(self, state: tuple[int, tuple[int, ...], "_Uint8", bool, str | bytes]) -> None:
        _, shape, dtype, fortran, content = state
        if not isinstance(dtype, _Uint8):
            raise UserError("must hold arrays of uint8, but holds others; " + _AGAIN)
        self.shape, self.order = tuple(int(size) for size in shape), "F" if fortran else "C"
        self.content = content.encode("latin1") if isinstance(content, str) else bytes(content)


class _Uint8:
    """The one type of element that a batch has."""

    def __init__(self, code: str, *_: object) -> None:
        if code != "u1":
            raise UserError(f"must hold arrays of uint8, but holds {str(code)[:9]!r}; " + _AGAIN)

    def __setstate__(self, state: object) -> None:
        pass  # the order of bytes, and other things that a byte has not


class _Batch(pickle.Unpickler):
    """Numbers, strings, lists, dictionaries and arrays of uint8; every other word is refused before it is looked up."""

    _KNOWN: dict[tuple[str, str], Callable[..., object]] = {  # noqa: RUF012 - never changed
        ("numpy.core.multiarray", "_reconstruct"): lambda *_: _Array(),
        ("numpy._core.multiarray", "_reconstruct"): lambda *_: _Array(),
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _Uint8,
    }

    def find_class(self, module: str, name: str) -> Any:
        """Our stand-in for a name in the file."""
        if (module, name) not in self._KNOWN:
            raise UserError(
                f"must hold nothing but arrays, lists and strings, but asks for {module}.{name}, which could run code; "
                "it was not opened: get the file from its official place"
            )
        return self._KNOWN[module, name]
