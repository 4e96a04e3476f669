"""Files that are whole or not there, and the checkpoints of a training among them."""

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from gedi.errors import UserError

KEPT = 2  # a damaged one has one before it
_MAGIC = b"gedi checkpoint 1 "  # then the digest and the end of the line
_HEADER = len(_MAGIC) + 2 * 32 + 1
State = dict[str, Any]


class Unusable(Exception):
    """A checkpoint cannot be used; the message says why, in words that go on after its name."""


class Checkpoints:
    """Numbered states of a training, ``000001.pt`` and on, of which the last two are kept.

    Each file is one line that ends in the BLAKE2b digest of all that follows it, so data and digest cannot part.
    Loading runs no code.

    Args:
        folder: where they are; made with the first of them.

    Attributes:
        damaged: the files that the last :meth:`load` had to pass over, each with what is wrong with it.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     checkpoints = Checkpoints(Path(folder))
        ...     for iteration in (10, 20, 30):
        ...         checkpoints.save({"iteration": iteration})
        ...     newest = checkpoints.files()[-1]
        ...     _ = newest.write_bytes(newest.read_bytes()[:-1])
        ...     checkpoints.load(), [path.name for path in checkpoints.damaged]
        ({'iteration': 20}, ['000003.pt'])
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: dict[Path, str] = {}

    def files(self) -> list[Path]:
        """The checkpoints there are, oldest first."""
        return sorted((path for path in self.folder.glob("*.pt") if path.stem.isdecimal()), key=_number)

    def save(self, state: State) -> None:
        """Write one more and, once it is safe, forget what it makes needless."""
        payload = io.BytesIO()
        torch.save(state, payload)
        digest = _digest(payload.getbuffer())
        number = max(map(_number, self.files()), default=0) + 1
        write_whole(self.folder / f"{number:06}.pt", _MAGIC + digest + b"\n", payload.getbuffer())
        good = [path for path in self.files() if path not in self.damaged]
        with writing(self.folder):
            for path in (*self.damaged, *good[:-KEPT], *self.folder.glob("*.tmp")):
                path.unlink(missing_ok=True)
        self.damaged = {}

    def load(self, check: Callable[[State], None] = lambda state: None) -> State | None:
        """The newest good state, or None before the first.

        Args:
            check: raises :class:`Unusable` where a state, though whole, is not one to go on from.
        """
        self.damaged = {}
        for path in reversed(self.files()):
            try:
                state = _read(path)
                check(state)
                return state
            except Unusable as error:
                self.damaged[path] = str(error)
        if self.damaged:
            reasons = ", ".join(f"{path.name} {why}" for path, why in self.damaged.items())
            raise UserError(
                f"no checkpoint in {str(self.folder)!r} can be used ({reasons}): start anew with --overwrite, or put "
                f"back a copy"
            )
        return None


def write_whole(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file whole or not at all, safe from a loss of power once this returns."""
    temporary = path.with_name(path.name + ".tmp")
    with writing(path.parent):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _sync(path.parent)
        finally:  # whatever happened, an interrupt too
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """A full disk or a locked folder, told with the folder's name and what to do."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{str(folder)!r} cannot be written: {error.strerror or error}; what was written before is whole: make "
            f"room or get permission, then give the same command with --resume"
        ) from error


def _sync(folder: Path) -> None:
    """A new name in a folder is safe only once the folder is."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _read(path: Path) -> State:
    """The state in a file. Under a right digest there may still be anything, as who damages it may write that too."""
    try:
        content = memoryview(path.read_bytes())
    except OSError as error:
        raise Unusable(f"cannot be read: {error.strerror or error}") from None
    header, payload = content[:_HEADER], content[_HEADER:]
    if header != _MAGIC + _digest(payload) + b"\n":
        raise Unusable("is damaged")
    try:
        # on the CPU: a run may go on elsewhere than on the device it was saved from
        state = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
    except Exception as error:  # what is no state fails in more ways than torch names; none of them runs code
        raise Unusable("holds no state") from error
    if not isinstance(state, dict):
        raise Unusable("holds no state")
    return state


def _digest(payload: memoryview) -> bytes:
    return hashlib.blake2b(payload, digest_size=32).hexdigest().encode()


def _number(path: Path) -> int:
    return int(path.stem)
