"""The known data sets from their official places."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import pooch
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from gedi.data.catalogue import Entry, OfficialFile, find_entry
from gedi.data.files import base_folders, file_state, is_official
from gedi.errors import UserError

_SECONDS = 30  # without a byte
_CHUNK = 1 << 16  # bytes that may be lost when a connection breaks


def fetch(name: str, data_dir: str | Path | None = None) -> Path:
    """Download the files of a data set that are not there yet; the folder they are in.

    They go to a folder with the data set's name inside ``data_dir``, else the folder ``GEDI_DATA`` names, else the
    user's cache. Official files that are there in any layout are enough. A file gets its name only when it is whole
    and its checksum is the official one; until then it ends in ``.part``, and a download that broke off goes on from
    there. A readable file that is not official is somebody's: it is left alone, and named.
    """
    entry = find_entry(name)
    base = base_folders(data_dir)[0]
    folder = base / entry.name
    for place in (base, folder):
        for layout in entry.layouts:
            if all(file_state(entry, file, place).state == "ok" for file in layout):
                return place
    folder.mkdir(parents=True, exist_ok=True)
    states = [file_state(entry, file, folder) for file in entry.files]
    for state in states:
        if state.state == "not official":
            raise UserError(
                f"{str(state.path)!r} is there but not the official file, and is not overwritten; "
                "move it away or give another --data-dir"
            )
    for file, state in zip(entry.files, states, strict=True):
        if state.state != "ok":
            state.path.unlink(missing_ok=True)
            _download(entry, file, folder)
    return folder


def _download(entry: Entry, file: OfficialFile, folder: Path) -> None:
    """One file from the first place that gives it whole."""
    faults = []
    part = folder / f"{file.name}.part"
    for url in entry.urls:
        try:
            _complete(file, url + file.name, part)
            part.replace(folder / file.name)
            return
        except (OSError, ValueError) as error:  # what requests raises is an OSError
            faults.append(f"{urlsplit(url).netloc}: {_reason(error)}")
    raise UserError(
        f"{file.name} of {entry.name} could not be downloaded ({'; '.join(faults)}); "
        f"try again later, or put the file into {str(folder)!r}"
    )


def _complete(file: OfficialFile, url: str, part: Path) -> None:
    """Get what is missing of a file. If the whole is not official, the beginning was of another: get it all."""
    for begun in (True, False) if part.is_file() else (False,):
        if not begun:
            part.unlink(missing_ok=True)
        try:
            with _progress(file.name) as bar:
                _get(url, part, bar, file.most)
        except OSError as error:
            if begun and _status(error) == 416:  # nothing is left to give of a file that is no longer than ours
                continue
            raise
        if is_official(file, part):
            return
    part.unlink()
    raise ValueError("what came is not the official file")


def _get(url: str, part: Path, bar: "_Bar | None", most: int | None = None) -> None:
    """Add to a file what a server has beyond it, or all from the start if it will not give a part."""
    with part.open("ab") as output:
        start = output.tell()

        def answered(response: Any, **_: Any) -> None:
            here = start if response.status_code == 206 else 0
            if response.status_code == 200:
                output.truncate(0)
            if bar:
                bar.begin(here)

        # identity: a server must not wrap what is compressed already
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        http = pooch.HTTPDownloader(
            bar or False, chunk_size=_CHUNK, timeout=_SECONDS, headers=headers, hooks={"response": answered}
        )
        try:
            http(url, output if most is None else _AtMost(output, most), None)
        finally:
            if output.tell() == 0:
                part.unlink()


class _AtMost:
    """A file that takes a number of bytes and no more: a server may have no end."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._most = file, most
        self.flush = file.flush

    def write(self, piece: bytes) -> int:
        """Add a piece."""
        if self._file.tell() + len(piece) > self._most:
            raise ValueError("what comes is more than the official file")
        return self._file.write(piece)


class _Bar:
    """A progress bar with the face that pooch expects of one."""

    def __init__(self, name: str, progress: Progress) -> None:
        self.total = 0  # of what is still to come
        self._start = 0
        self._progress, self._task = progress, progress.add_task(name)

    def begin(self, start: int) -> None:
        """Show how many bytes are there already."""
        self._start = start
        self.reset()

    def update(self, size: int) -> None:
        """Go on by a number of bytes."""
        self._progress.update(self._task, total=self._start + self.total or None, advance=size)

    def reset(self) -> None:
        """Go back to the start; pooch does so before it fills the bar."""
        self._progress.reset(self._task, completed=self._start)

    def close(self) -> None:
        """Nothing: the bar ends with its block, also when the download fails."""


@contextlib.contextmanager
def _progress(name: str) -> Iterator[_Bar | None]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        yield _Bar(name, progress)


def _status(error: Exception) -> int | None:
    return getattr(getattr(error, "response", None), "status_code", None)


def _reason(error: Exception) -> str:
    """Why a download failed, in a few words: the full text of a connection error is a paragraph."""
    if status := _status(error):
        return f"HTTP {status}"
    return str(error) if type(error) is ValueError else type(error).__name__
