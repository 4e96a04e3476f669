"""Files as memory: the system reads a page when it is looked at, and forgets it when memory is short."""

import mmap
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from gedi.errors import UserError

_OPEN = 128  # each open file counts against a limit of the system, often 1024


class Stamp(NamedTuple):
    """What changes when a file does."""

    size: int
    changed: int  # nanoseconds


def stamp_of(path: Path) -> Stamp:
    """The present stamp of a file."""
    try:
        state = path.stat()
    except OSError as error:
        raise UserError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    return Stamp(state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=_OPEN)
def mapped(path: Path, stamp: Stamp) -> mmap.mmap:
    """The bytes of a file that is still as it was when the stamp was taken; those asked for last stay open."""
    if stamp_of(path) != stamp:
        raise UserError(f"{str(path)!r} must stay as it is while it is in use, but it has changed; start again")
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise UserError(f"{str(path)!r} cannot be read: {error}") from None
