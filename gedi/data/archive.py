"""Archives of data files, read in memory: nothing is unpacked to disk."""

import io
import tarfile
from collections.abc import Sequence

from gedi.errors import UserError

_AGAIN = "get the file again"


def read_members(content: bytes, wanted: Sequence[str], name: str) -> list[bytes]:
    """The bytes of the wanted members of a tar archive; ``name`` is what errors call it."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            members = {member.name.removeprefix("./"): member for member in archive if member.isfile()}
            if lacking := [member for member in wanted if member not in members]:
                raise UserError(f"{name} must hold {', '.join(lacking)}, but does not; {_AGAIN}")
            opened = [archive.extractfile(members[member]) for member in wanted]
            return [file.read() for file in opened if file is not None]
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UserError(f"{name} must be a whole tar archive, but it is corrupt ({error}); {_AGAIN}") from None
