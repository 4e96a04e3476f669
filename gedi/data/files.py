"""The known data sets on this machine: where they are looked for, whether they are whole, and their images."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np
import pooch
import torch

from gedi.data.archive import md5_of, read_members, read_unpacked
from gedi.data.cache import cached
from gedi.data.catalogue import CATALOGUE, Entry, OfficialFile, Parts, find_entry
from gedi.data.images import ImageSet
from gedi.errors import UserError

State = Literal["ok", "not official", "missing", "broken"]


@dataclass(frozen=True)
class FileState:
    """One file of a data set as it stands on disk.

    Attributes:
        name: the file's official name.
        path: where it is, or where it would be.
        state: ``ok``: the official bytes; ``not official``: it can be read, but is a subset or a re-encoding, or no
            checksum of it is known; ``missing``; ``broken``: it cannot be read.
        why: what is known of the fault.
    """

    name: str
    path: Path
    state: State
    why: str = ""


@dataclass(frozen=True)
class _Reading:
    """What a file holds, and what its checksums say.

    Attributes:
        parts: one for each member of an archive; a single one else.
        official: True or False, or None if no checksum is known that could tell.
        owner: another data set that it is known to be a file of.
    """

    parts: list[Parts]
    official: bool | None
    owner: str | None


def load_images(name: str, data_dir: str | Path | None = None) -> ImageSet:
    """The images of a known data set, from files on this machine.

    Looked for in ``data_dir``, then in the folder ``GEDI_DATA`` names, then in the user's cache; in each, in a folder
    with the data set's name or directly; archived, compressed or not. Files that are not the official ones are
    accepted, and the set then says so: ``exact`` is False, and ``source`` tells what is there. They are decoded and
    checked once, then memory-mapped from a cache until a file changes (``GEDI_CACHE_DATA``, empty for none).
    """
    entry = find_entry(name)
    folder, layout = _find(entry, data_dir) or _refuse(entry, data_dir)
    paths = [_on_disk(folder, file) or folder / file.name for file in layout]
    return cached(name, folder, paths, lambda: _decode(entry, layout, paths))


def _decode(entry: Entry, layout: Sequence[OfficialFile], paths: Sequence[Path]) -> ImageSet:
    gathered: dict[str, list[np.ndarray]] = {}
    verdicts = []
    for file, path in zip(layout, paths, strict=True):
        reading = _read(entry, file, path)
        if reading.owner:  # several sets share their file names
            raise UserError(
                f"{str(path)!r} must be a file of {entry.name}, but is one of {reading.owner}; "
                "move it to its own folder"
            )
        verdicts.append(reading.official)
        for parts in reading.parts:
            for part, values in parts.items():
                gathered.setdefault(part, []).append(values)
    joined = {part: torch.from_numpy(_join(values)) for part, values in gathered.items()}
    return ImageSet(
        entry.name,
        joined["train"],
        joined["train_labels"].long(),
        joined["test"],
        joined["test_labels"].long(),
        all(verdicts),
        f"{entry.name}, {_in_words(entry, verdicts, (len(joined['train']), len(joined['test'])))}",
    )


def _in_words(entry: Entry, verdicts: Sequence[bool | None], counts: tuple[int, int]) -> str:
    if all(verdicts):
        return "official files"
    if entry.counts and counts != entry.counts:
        (train, test), (all_train, all_test) = counts, entry.counts
        return f"not the official bytes: {train:,} of {all_train:,} training and {test:,} of {all_test:,} test images"
    return "not the official bytes" if False in verdicts else "not known to be the official bytes"


def find_folder(name: str, data_dir: str | Path | None = None) -> Path | None:
    """The first folder that has every file of a data set by name, or None; the files are not opened."""
    found = _find(find_entry(name), data_dir)
    return found[0] if found else None


def verify(name: str, data_dir: str | Path | None = None) -> list[FileState]:
    """How each file of a data set stands, in the folder that ``load_images`` would take or comes nearest to it."""
    entry = find_entry(name)
    folder, layout = _nearest(entry, data_dir)
    return [file_state(entry, file, folder) for file in layout]


def file_state(entry: Entry, file: OfficialFile, folder: Path) -> FileState:
    """How one file stands in one folder."""
    return judge(entry, file, _on_disk(folder, file) or folder / file.name)


def judge(entry: Entry, file: OfficialFile, path: Path) -> FileState:
    """How one file stands at one place, whatever it is called there."""
    if not path.is_file():
        return FileState(file.name, path, "missing")
    try:
        reading = _read(entry, file, path)
    except UserError as error:
        return FileState(file.name, path, "broken", str(error))
    if reading.official:
        return FileState(file.name, path, "ok")
    unknown = "no checksum of it is known" if reading.official is None else ""
    return FileState(file.name, path, "not official", f"it is a file of {reading.owner}" if reading.owner else unknown)


def base_folders(data_dir: str | Path | None = None) -> list[Path]:
    """The folders that data sets are looked for in, the first one first."""
    environment = os.environ.get("GEDI_DATA")
    named = [Path(folder).expanduser() for folder in (data_dir, environment) if folder]
    return [*named, Path(pooch.os_cache("gedi"))]


def _folders(entry: Entry, data_dir: str | Path | None) -> Iterator[Path]:
    if data_dir and not Path(data_dir).expanduser().is_dir():
        raise UserError(
            f"the data folder must exist, but {str(data_dir)!r} is not there; "
            f"make it with: gedi data get {entry.name} --data-dir {data_dir}"
        )
    for base in base_folders(data_dir):
        yield base / entry.name
        yield base


def _find(entry: Entry, data_dir: str | Path | None) -> tuple[Path, tuple[OfficialFile, ...]] | None:
    """The first folder with a whole layout, and that layout."""
    places = ((folder, layout) for folder in _folders(entry, data_dir) for layout in entry.layouts)
    return next((place for place in places if _share(*place) == 1), None)


def _nearest(entry: Entry, data_dir: str | Path | None) -> tuple[Path, tuple[OfficialFile, ...]]:
    """The first folder and layout that the largest share of files is there of."""
    places = [(folder, layout) for folder in _folders(entry, data_dir) for layout in entry.layouts]
    return max(places, key=lambda place: _share(*place))


def _share(folder: Path, layout: Sequence[OfficialFile]) -> float:
    return sum(_on_disk(folder, file) is not None for file in layout) / len(layout)


def _refuse(entry: Entry, data_dir: str | Path | None) -> NoReturn:
    """Say where a data set was looked for, and what one lacks that is there in part."""
    advice = f"get it with: gedi data get {entry.name}, or set GEDI_DATA to the folder that holds it"
    folder, layout = _nearest(entry, data_dir)
    if _share(folder, layout) > 0:
        lacking = ", ".join(file.name for file in layout if not _on_disk(folder, file))
        raise UserError(f"{entry.name} must be whole, but {str(folder)!r} lacks {lacking}; {advice}")
    searched = ", ".join(str(base) for base in base_folders(data_dir))
    raise UserError(f"{entry.name} must be on this machine, but is not in {searched}; {advice}")


def _on_disk(folder: Path, file: OfficialFile) -> Path | None:
    return next((folder / name for name in file.names if (folder / name).is_file()), None)


def is_official(file: OfficialFile, path: Path) -> bool:
    """Whether a file is the published one, by checksums alone: a stranger's bytes are looked at in no other way."""
    if md5_of(path) == file.md5:
        return True
    try:
        return file.raw_md5 is not None and md5_of(path, file.most, raw=True) == file.raw_md5
    except UserError:  # it cannot be unpacked, or not within the size of the official one
        return False


def _read(entry: Entry, file: OfficialFile, path: Path) -> _Reading:
    """What a file holds, and what is known of it; it is parsed after its checksums are known."""
    packed = md5_of(path)
    raw = read_unpacked(path, file.most)
    pieces = [(file, raw, path.name)]
    if file.members:
        held = read_members(raw, [member.name for member in file.members], path.name)
        pieces = [
            (member, inside, f"{member.name} in {path.name}") for member, inside in zip(file.members, held, strict=True)
        ]
    official, owner = _judged(entry, file, packed, [(piece.raw_md5, _md5(inside)) for piece, inside, _ in pieces])
    return _Reading([piece.parse(inside, name) for piece, inside, name in pieces if piece.parse], official, owner)


def _judged(
    entry: Entry, file: OfficialFile, packed: str, sums: Sequence[tuple[str | None, str]]
) -> tuple[bool | None, str | None]:
    """Whether a file with these checksums, official and found, is official, and whose it is if another's."""
    verdicts = [None if official is None else official == found for official, found in sums]
    if packed == file.md5 or all(verdicts):
        return True, None
    found = {packed, *(found for _, found in sums)}
    others = [other for other in CATALOGUE.values() if other.name != entry.name]
    owner = next((o.name for o in others if any(f.sums & found for layout in o.layouts for f in layout)), None)
    return False if False in verdicts else None, owner


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _join(values: list[np.ndarray]) -> np.ndarray:
    """One array that owns its memory: the bytes of a file cannot be written to."""
    return np.require(np.concatenate(values) if len(values) > 1 else values[0], requirements=["C", "W"])
