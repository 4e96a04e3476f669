"""Compiled circuits on disk, by the content they were compiled from."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from gedi.logic.circuit import Circuit

_FORMAT = 1  # a new number forgets every stored circuit


def folder() -> Path | None:
    """``GEDI_CACHE``, or the user's cache folder; None if GEDI_CACHE is empty, which turns the cache off."""
    chosen = os.environ.get("GEDI_CACHE")
    if chosen == "":
        return None
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("gedi")) / "circuits"


def key_of(*content: Any) -> str:
    """A name that depends on the content and on nothing else."""
    text = json.dumps([_FORMAT, *content], sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def fingerprint(circuit: Circuit) -> str:
    """The content of a circuit as a name."""
    digest = hashlib.blake2b(digest_size=16)
    for array in (circuit.kinds, circuit.starts, circuit.children, circuit.roots):
        digest.update(np.ascontiguousarray(array).tobytes() + b"/")
    return digest.hexdigest() + str(circuit.columns)


def load(key: str) -> tuple[Circuit, dict[str, Any]] | None:
    """A stored circuit and what was stored beside it; None if there is none or it cannot be read."""
    place = folder()
    if place is None:
        return None
    try:
        # NumPy itself leaves a damaged file open
        with (place / f"{key}.npz").open("rb") as file, np.load(file, allow_pickle=False) as stored:
            about = json.loads(str(stored["about"]))
            circuit = Circuit(
                int(stored["columns"]), stored["kinds"], stored["starts"], stored["children"], stored["roots"]
            )
    except Exception:  # missing, or damaged in any of the ways a zip file can be: compile again
        return None
    return circuit, about


def store(key: str, circuit: Circuit, about: dict[str, Any]) -> None:
    """Keep a circuit, whole or not at all. A folder that cannot be written is no reason to fail."""
    place = folder()
    if place is None:
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place, suffix=".tmp")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(
                file,
                columns=circuit.columns,
                kinds=circuit.kinds,
                starts=circuit.starts,
                children=circuit.children,
                roots=circuit.roots,
                about=json.dumps(about),
            )
        os.replace(temporary, place / f"{key}.npz")
    except OSError:
        return
    finally:
        Path(temporary).unlink(missing_ok=True)  # still there only if something went wrong
