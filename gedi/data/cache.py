"""Decoded images on disk: read from their files once, memory-mapped ever after."""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pooch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from gedi.data.images import ImageSet
from gedi.errors import UserError

_DECODER = 2  # a new number decodes everything again


def cached(
    name: str, place: Path, files: Iterable[Path], decode: Callable[[], ImageSet], options: str = ""
) -> ImageSet:
    """The decoded images of some files: from the cache if no file has changed since, else decoded and kept.

    A file has changed when its place, size or time of change has. The tensors are memory-mapped, private to this
    process: writing to them changes no file. A cache that cannot be written or read is done without.

    Args:
        name: of the set.
        place: the folder of the files; a new state of it replaces the old one in the cache.
        files: all that the images depend on, inside ``place``.
        decode: reads the images.
        options: what else they depend on.
    """
    folder = cache_folder()
    if folder is None:
        return decode()
    path = folder / f"{name}-{digest([str(place.resolve()), options])}.safetensors"
    states = ((str(file.relative_to(place)), file.stat()) for file in files)
    stamp = digest([_DECODER, *([inside, state.st_size, state.st_mtime_ns] for inside, state in states)])
    images = _load(path, stamp)
    if images is None:
        images = decode()
        _store(path, stamp, images)
    return images


def cache_folder() -> Path | None:
    """``GEDI_CACHE_DATA``, or a folder in the user's cache; None if GEDI_CACHE_DATA is empty: no cache."""
    chosen = os.environ.get("GEDI_CACHE_DATA")
    if chosen == "":
        return None
    return Path(chosen).expanduser() if chosen else Path(pooch.os_cache("gedi")) / "decoded"


def digest(content: list[object]) -> str:
    """A name for plain data that nothing else has."""
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


def _load(path: Path, stamp: str) -> ImageSet | None:
    """What is stored, if it is whole and of this stamp."""
    try:
        with safe_open(path, "pt") as stored:  # it compares the size of the file with the shapes
            about = stored.metadata() or {}
            if about.get("stamp") != stamp:
                return None
            parts = {part: stored.get_tensor(part) for part in stored.keys()}  # noqa: SIM118 - it is no dictionary
        return ImageSet(
            about["name"],
            parts["train"],
            parts.get("train_labels"),
            parts["test"],
            parts.get("test_labels"),
            about["exact"] == "yes",
            about["source"],
        )
    except (OSError, SafetensorError, KeyError, UserError):  # missing or damaged
        return None


def _store(path: Path, stamp: str, images: ImageSet) -> None:
    """Keep images, whole or not at all."""
    parts = {part: getattr(images, part) for part in ("train", "train_labels", "test", "test_labels")}
    about = {"stamp": stamp, "name": images.name, "exact": "yes" if images.exact else "no", "source": images.source}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            temporary = Path(folder) / path.name
            save_file({part: x.contiguous() for part, x in parts.items() if x is not None}, temporary, about)
            temporary.replace(path)
    except (OSError, SafetensorError):
        return
