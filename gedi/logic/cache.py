"""Compiled circuits on disk, by the content they were compiled from."""

import functools
import hashlib
import json
import logging
import os
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import safetensors.numpy

from gedi.logic.circuit import AND, OR, Circuit

_FORMAT = 2  # a new number forgets every stored circuit
_SUFFIX = ".circuit"
_CHECKSUM = 32  # bytes before the content
_LARGEST = 500_000_000  # bytes of a file
_log = logging.getLogger(__name__)


def folder() -> Path | None:
    """``GEDI_CACHE``, or the user's cache folder; None if GEDI_CACHE is empty, which turns the cache off."""
    chosen = os.environ.get("GEDI_CACHE")
    if chosen == "":
        return None
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("gedi")) / "circuits"


def key_of(*content: Any) -> str:
    """A name that depends on the content, and on the compilers, and on nothing else."""
    text = json.dumps([_FORMAT, _compilers(), *content], sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@functools.cache
def _compilers() -> list[str]:
    return [metadata.version(name) for name in ("problog", "PySDD")]


def fingerprint(circuit: Circuit) -> str:
    """The content of a circuit as a name."""
    digest = hashlib.blake2b(digest_size=16)
    for array in (circuit.kinds, circuit.starts, circuit.children, circuit.roots):
        digest.update(np.ascontiguousarray(array).tobytes() + b"/")
    return digest.hexdigest() + str(circuit.columns)


def load(key: str, columns: int | None = None) -> tuple[Circuit, dict[str, Any]] | None:
    """A stored circuit and what was stored beside it; None if there is none, or any doubt about it.

    Args:
        key: its name.
        columns: how many leaves it must have, where that is known.
    """
    place = folder()
    path = None if place is None else place / f"{key}{_SUFFIX}"
    if path is None or not path.is_file():
        return None
    try:
        found = _opened(path, key)
        if columns not in (None, found[0].columns):
            raise ValueError(f"{found[0].columns} leaves in place of {columns}")
    except Exception as error:  # damaged in any of the ways a file can be, or another's: compile again
        _log.info("the stored circuit %s is not used: %s", path.name, error)
        return None
    return found


def store(key: str, circuit: Circuit, about: dict[str, Any]) -> None:
    """Keep a circuit, whole or not at all. A folder that cannot be written is no reason to fail."""
    place = folder()
    if place is None:
        return
    content = safetensors.numpy.save(
        {
            "columns": np.array([circuit.columns], dtype=np.int64),
            "kinds": circuit.kinds.astype(np.uint8),
            "starts": circuit.starts.astype(np.int64),
            "children": circuit.children.astype(np.int64),
            "roots": circuit.roots.astype(np.int64),
            "about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
        }
    )
    if len(content) > _LARGEST:
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place, suffix=".tmp")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_checksum(key, content) + content)
        os.replace(temporary, place / f"{key}{_SUFFIX}")
    except OSError:
        return
    finally:
        Path(temporary).unlink(missing_ok=True)  # still there only if something went wrong


def _checksum(key: str, content: bytes) -> bytes:
    """Of the content under its name: a file that was copied over another's does not fit."""
    return hashlib.blake2b(key.encode() + b"/" + content, digest_size=_CHECKSUM).digest()


def _opened(path: Path, key: str) -> tuple[Circuit, dict[str, Any]]:
    """What a file holds; raises if it is not what was once written under this name."""
    with path.open("rb") as file:
        written = file.read(_LARGEST + _CHECKSUM + 1)
    content = written[_CHECKSUM:]
    if len(content) > _LARGEST or written[:_CHECKSUM] != _checksum(key, content):
        raise ValueError("its checksum is another")
    stored = safetensors.numpy.load(content)  # arrays as they lie there: nothing unpacks, nothing is run
    (columns,) = stored["columns"].tolist()
    circuit = Circuit(columns, stored["kinds"], stored["starts"], stored["children"], stored["roots"])
    if not _is_sound(circuit):
        raise ValueError("it is no circuit")
    about = json.loads(stored["about"].tobytes())
    if not isinstance(about, dict):
        raise ValueError("it does not say what it is of")
    return circuit, about


def _is_sound(circuit: Circuit) -> bool:
    """Whether every node is a sum or a product of nodes before it."""
    kinds, starts, children, roots = circuit.kinds, circuit.starts, circuit.children, circuit.roots
    if kinds.dtype != np.uint8 or any(array.dtype != np.int64 for array in (starts, children, roots)):
        return False
    if any(array.ndim != 1 for array in (kinds, starts, children, roots)) or len(starts) != len(kinds) + 1:
        return False
    arity = np.diff(starts)
    if starts[0] != 0 or starts[-1] != len(children) or (arity < 1).any() or not np.isin(kinds, (AND, OR)).all():
        return False
    own = circuit.columns + np.repeat(np.arange(len(kinds)), arity)
    if (children < 0).any() or (children >= own).any():
        return False
    return circuit.columns > 0 and len(roots) > 0 and bool(((roots >= 0) & (roots < circuit.nodes)).all())
