"""Archives of data files, read in memory and never beyond a limit: nothing is unpacked to disk."""

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from gedi.data.limits import check_size, in_words
from gedi.errors import UserError

_AGAIN = "get the file again"
_GZIP = b"\x1f\x8b"
_CHUNK = 2**20


def unpacked(path: Path, most: int | None = None, name: str | None = None) -> Iterator[bytes]:
    """A file's bytes a piece at a time, decompressed if they are gzip streams, whatever the file is called.

    Args:
        path: the file.
        most: bytes that it may be when it is unpacked; None: as many as fit in memory.
        name: what errors call it.
    """
    name = name or path.name
    done = 0
    for piece in _pieces(path, name):
        done += len(piece)
        if most is not None and done > most:
            raise UserError(f"{name} must be at most {in_words(most)} when unpacked, but is more; {_AGAIN}")
        if most is None:
            check_size(done, name)
        yield piece


def read_unpacked(path: Path, most: int | None = None) -> bytes:
    """All of a file's bytes, decompressed: see :func:`unpacked`."""
    if not path.is_file():
        raise UserError(f"a data file must exist, but {str(path)!r} is not there")
    return b"".join(unpacked(path, most))


def md5_of(path: Path, most: int | None = None, raw: bool = False) -> str:
    """The checksum of a file as it is, or of what it unpacks to (raw); no more than a piece of it is in memory."""
    digest = hashlib.md5(usedforsecurity=False)
    if raw:
        for piece in unpacked(path, most):
            digest.update(piece)
        return digest.hexdigest()
    with path.open("rb") as file:
        while piece := file.read(_CHUNK):
            digest.update(piece)
    return digest.hexdigest()


def is_packed(path: Path) -> bool:
    """Whether a file is a gzip stream."""
    with path.open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP


def _pieces(path: Path, name: str) -> Iterator[bytes]:
    try:
        with gzip.open(path) if is_packed(path) else path.open("rb") as file:
            while piece := file.read(_CHUNK):
                yield piece
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{name} must be a whole gzip file, but it is corrupt ({error}); {_AGAIN}") from None


def read_members(content: bytes, wanted: Sequence[str], name: str) -> list[bytes]:
    """The bytes of the wanted members of a tar archive; ``name`` is what errors call it."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            members = {member.name.removeprefix("./"): member for member in archive if member.isfile()}
            if lacking := [member for member in wanted if member not in members]:
                raise UserError(f"{name} must hold {', '.join(lacking)}, but does not; {_AGAIN}")
            for member in (members[each] for each in wanted):
                if member.issparse() or member.size > len(content):  # holes would be filled with zeros
                    raise UserError(f"{name} must hold {member.name!r} as a plain file, but does not; {_AGAIN}")
            opened = [archive.extractfile(members[member]) for member in wanted]
            return [file.read() for file in opened if file is not None]
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{name} must be a whole tar archive, but it is corrupt ({error}); {_AGAIN}") from None
