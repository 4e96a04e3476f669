"""What was found out about a file, kept on disk until the file changes."""

import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gedi.data.cache import cache_folder, digest
from gedi.data.mapped import Stamp

_VERSION = 1  # a new number finds everything out again


def remembered(
    path: Path, stamp: Stamp, what: str, find_out: Callable[[], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """Named arrays that follow from a file: from the cache, beside decoded images, if the file has not changed.

    Args:
        path: the file.
        stamp: its size and time of change.
        what: tells apart what is found out about one file.
        find_out: reads the file.
    """
    folder = cache_folder()
    if folder is None:
        return find_out()
    kept = folder / f"{path.stem}-{digest([str(path.resolve()), what])}.npz"
    state = digest([_VERSION, *stamp])
    found = _load(kept, state)
    if found is None:
        found = find_out()
        _store(kept, state, found)
    return found


def _load(kept: Path, state: str) -> dict[str, np.ndarray] | None:
    try:
        with kept.open("rb") as file, np.load(file, allow_pickle=False) as held:
            return {name: held[name] for name in held.files if name != "state"} if held["state"] == state else None
    except (OSError, ValueError, KeyError, EOFError, AttributeError, zipfile.BadZipFile):  # missing or damaged
        return None


def _store(kept: Path, state: str, found: dict[str, np.ndarray]) -> None:
    """Keep arrays, whole or not at all."""
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            temporary = Path(folder) / kept.name
            np.savez(temporary, state=np.array(state), **found)  # type: ignore[arg-type]
            temporary.replace(kept)
    except OSError:
        return
