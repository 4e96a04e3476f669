"""NumPy's files, read so that neither a pickle nor a claim in a header can harm."""

import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np

from gedi.data.limits import check_size, check_unpacked, in_words
from gedi.errors import UserError

_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_CHUNK = 2**24  # bytes read at a time
#: A damaged file makes both readers stumble in many ways.
_FAULTS = (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, SyntaxError)
_PACKING = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # all that NumPy writes


def check_file(path: Path, suffixes: Sequence[str]) -> None:
    """Refuse what is not a file of one of these kinds."""
    if not path.is_file():
        raise UserError(f"data.path must name a file, but {str(path)!r} is not there")
    if path.suffix.lower() not in suffixes:
        raise UserError(f"data.path must end in {', '.join(suffixes[:-1])} or {suffixes[-1]}, got {path.name!r}")


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Those of the names that a ``.npz`` file holds, the first for sure; the array of a ``.npy`` file as the first.

    Nothing in the file can run code, and what its header claims is compared with its size before anything is read.
    """
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                file.seek(0)
                return {names[0]: _read(file, path.stat().st_size, path.name)}
            with zipfile.ZipFile(file) as held:
                members = {info.filename.removesuffix(".npy"): info for info in held.infolist()}
                if names[0] not in members:
                    raise UserError(
                        f"{path.name} must hold an array named {names[0]!r}, got {', '.join(members)[:200] or 'none'}"
                    )
                return {
                    name: _member(held, members[name], f"{name} of {path.name}") for name in names if name in members
                }
    except UserError:
        raise
    except _FAULTS as error:
        raise _unreadable(path, error) from None


def _member(held: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> np.ndarray:
    if info.compress_type not in _PACKING or info.flag_bits & 1:
        raise UserError(f"{name} must be packed as NumPy packs, but is packed or locked in another way; write it again")
    check_unpacked(info.compress_size, info.file_size, name)
    with held.open(info) as file:
        return _read(file, info.file_size, name)


def _read(file: IO[bytes], size: int, name: str) -> np.ndarray:
    """One array of a file, whose length in bytes is known."""
    shape, fortran, dtype = header_of_array(file, size, name)
    check_size(math.prod(shape) * dtype.itemsize, name)
    flat = np.empty(math.prod(shape), dtype)
    _fill(file, flat)
    return flat.reshape(shape, order="F" if fortran else "C")


def header_of_array(file: IO[bytes], size: int, name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and kind of an array in a file, whose length in bytes is known; what lies is refused."""
    start = file.read(8)
    if len(start) < 8 or not start.startswith(np.lib.format.MAGIC_PREFIX) or (start[6], start[7]) not in _READERS:
        raise ValueError("it does not begin like an array of NumPy's")
    shape, fortran, dtype = _READERS[start[6], start[7]](file)
    if dtype.hasobject:
        raise UserError(f"{name} cannot be read: it holds Python objects, which could run code; store numbers or text")
    if dtype.names is not None:
        fields = ", ".join(dtype.names)[:100]
        raise UserError(f"{name} must be a plain array, but has fields ({fields}); store each as an array, or a table")
    claimed = math.prod(shape) * dtype.itemsize
    if claimed > size or any(length < 0 for length in shape):
        raise ValueError(f"it claims {str(shape)[:100]} in {dtype}, {in_words(claimed)}, but is {in_words(size)}")
    return shape, fortran, dtype


def _fill(file: IO[bytes], flat: np.ndarray) -> None:
    """Read an array's bytes into it: no second copy of them is in memory."""
    room = memoryview(flat.view(np.uint8)) if flat.nbytes else memoryview(b"")  # type: ignore[arg-type]
    while len(room):
        part = file.read(min(len(room), _CHUNK))
        if not part:
            raise EOFError("it ends too early")
        room[: len(part)] = part
        room = room[len(part) :]


def mapped_array(path: Path) -> np.ndarray:
    """The array of a ``.npy`` file, mapped into memory and not read; its header must not claim more than its size."""
    try:
        with path.open("rb") as file:
            shape, fortran, dtype = header_of_array(file, path.stat().st_size, path.name)
            place = file.tell()
    except UserError:
        raise
    except _FAULTS as error:
        raise _unreadable(path, error) from None
    return np.memmap(path, dtype, "r", place, shape, "F" if fortran else "C") if math.prod(shape) else np.empty(shape)


def dimensions_of(path: Path) -> int:
    """How many dimensions the array of a ``.npy`` file has, or ``x`` of a ``.npz`` file; nothing else is read."""
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                file.seek(0)
                return len(header_of_array(file, path.stat().st_size, path.name)[0])
            with zipfile.ZipFile(file) as held:
                members = {info.filename.removesuffix(".npy"): info for info in held.infolist()}
                if "x" not in members:
                    raise UserError(
                        f"{path.name} must hold an array named 'x', got {', '.join(members)[:200] or 'none'}"
                    )
                with held.open(members["x"]) as inside:
                    return len(header_of_array(inside, members["x"].file_size, path.name)[0])
    except UserError:
        raise
    except _FAULTS as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> UserError:
    said = " ".join(str(error).split())[:200]
    return UserError(f"{path.name} cannot be read as {path.suffix}: {said}; write it again with NumPy")
