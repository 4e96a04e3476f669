"""The known data sets on this machine: where they are looked for, whether they are whole, and their images."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np
import pooch
import torch

from gedi.data.catalogue import CATALOGUE, Entry, OfficialFile, Parts, find_entry
from gedi.data.idx import read_raw
from gedi.data.images import ImageSet
from gedi.errors import UserError

State = Literal["ok", "not official", "missing", "broken"]


@dataclass(frozen=True)
class FileState:
    """One file of a data set as it stands on disk.

    Attributes:
        name: the file's official name.
        path: where it is, or where it would be.
        state: ``ok``: the official bytes; ``not official``: it can be read, but is a subset or a re-encoding;
            ``missing``; ``broken``: it cannot be read.
        why: what is known of the fault.
    """

    name: str
    path: Path
    state: State
    why: str = ""


def load_images(name: str, data_dir: str | Path | None = None) -> ImageSet:
    """The images of a known data set, from files on this machine.

    Looked for in ``data_dir``, then in the folder ``GEDI_DATA`` names, then in the user's cache; in each, in a folder
    with the data set's name or directly; compressed or not. Files that are not the official ones are accepted,
    and the set then says so: ``exact`` is False.
    """
    entry = find_entry(name)
    folder = find_folder(name, data_dir) or _refuse(entry, data_dir)
    gathered: dict[str, list[np.ndarray]] = {}
    exact = True
    for file in entry.files:
        path = _on_disk(folder, file)
        assert path is not None
        parts, owner = _read(entry, file, path)
        if owner not in (entry.name, None):  # several sets share their file names
            raise UserError(
                f"{str(path)!r} must be a file of {entry.name}, but is one of {owner}; move it to its own folder"
            )
        exact = exact and owner == entry.name
        for part, values in parts.items():
            gathered.setdefault(part, []).append(values)
    joined = {part: torch.from_numpy(_join(values)) for part, values in gathered.items()}
    return ImageSet(
        entry.name,
        joined["train"],
        joined["train_labels"].long(),
        joined["test"],
        joined["test_labels"].long(),
        exact,
        f"{entry.name}, {'official files' if exact else 'not the official bytes'}",
    )


def find_folder(name: str, data_dir: str | Path | None = None) -> Path | None:
    """The first folder that has every file of a data set by name, or None; the files are not opened."""
    entry = find_entry(name)
    return next((f for f in _folders(entry, data_dir) if len(_present(entry, f)) == len(entry.files)), None)


def verify(name: str, data_dir: str | Path | None = None) -> list[FileState]:
    """How each file of a data set stands, in the folder that ``load_images`` would take or comes nearest to it."""
    entry = find_entry(name)
    folders = list(_folders(entry, data_dir))
    folder = max(folders, key=lambda place: len(_present(entry, place)))  # the first of the fullest
    return [file_state(entry, file, folder) for file in entry.files]


def file_state(entry: Entry, file: OfficialFile, folder: Path) -> FileState:
    """How one file stands in one folder."""
    return judge(entry, file, _on_disk(folder, file) or folder / file.name)


def judge(entry: Entry, file: OfficialFile, path: Path) -> FileState:
    """How one file stands at one place, whatever it is called there."""
    if not path.is_file():
        return FileState(file.name, path, "missing")
    try:
        _, owner = _read(entry, file, path)
    except UserError as error:
        return FileState(file.name, path, "broken", str(error))
    if owner == entry.name:
        return FileState(file.name, path, "ok")
    return FileState(file.name, path, "not official", f"it is a file of {owner}" if owner else "")


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


def _refuse(entry: Entry, data_dir: str | Path | None) -> NoReturn:
    """Say where a data set was looked for, and what one lacks that is there in part."""
    advice = f"get it with: gedi data get {entry.name}, or set GEDI_DATA to the folder that holds it"
    for folder in _folders(entry, data_dir):
        if found := _present(entry, folder):
            lacking = ", ".join(file.name for file in entry.files if file not in found)
            raise UserError(f"{entry.name} must be whole, but {str(folder)!r} lacks {lacking}; {advice}")
    searched = ", ".join(str(base) for base in base_folders(data_dir))
    raise UserError(f"{entry.name} must be on this machine, but is not in {searched}; {advice}")


def _present(entry: Entry, folder: Path) -> list[OfficialFile]:
    return [file for file in entry.files if _on_disk(folder, file)]


def _on_disk(folder: Path, file: OfficialFile) -> Path | None:
    return next((folder / name for name in file.names if (folder / name).is_file()), None)


def _read(entry: Entry, file: OfficialFile, path: Path) -> tuple[Parts, str | None]:
    """What a file holds, and the name of the data set it is known to be an official file of."""
    raw = read_raw(path)
    parts = file.parse(raw, path.name)
    sums = {_md5(raw), _md5(path.read_bytes())}
    if {file.raw_md5, file.md5} & sums:
        return parts, entry.name
    others = [other for other in CATALOGUE.values() if other.name != entry.name]
    return parts, next((o.name for o in others if any({f.raw_md5, f.md5} & sums for f in o.files)), None)


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _join(values: list[np.ndarray]) -> np.ndarray:
    return values[0] if len(values) == 1 else np.concatenate(values)
