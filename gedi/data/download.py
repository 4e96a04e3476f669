"""The known data sets from their official places."""

import contextlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pooch
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from gedi.data.catalogue import Entry, OfficialFile, find_entry
from gedi.data.files import base_folders, file_state, judge
from gedi.errors import UserError

_SECONDS = 30  # without a byte


def fetch(name: str, data_dir: str | Path | None = None) -> Path:
    """Download the files of a data set that are not there yet; the folder they are in.

    They go to a folder with the data set's name inside ``data_dir``, else the folder ``GEDI_DATA`` names, else the
    user's cache. A file gets its name only when it is whole and its checksum is the official one, so a download
    that broke off never counts. A readable file that is not official is somebody's: it is left alone, and named.
    """
    entry = find_entry(name)
    base = base_folders(data_dir)[0]
    folder = base / entry.name
    if all(file_state(entry, file, base).state == "ok" for file in entry.files):
        return base
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
    for url in entry.urls:
        try:
            with _progress(file.name) as bar, _quiet():
                path = pooch.retrieve(url + file.name, None, file.name, folder, downloader=_Checked(entry, file, bar))
            Path(path).chmod(0o644)  # temporary files are for their owner only
            return
        except (OSError, ValueError) as error:  # what requests raises is an OSError
            faults.append(f"{urlsplit(url).netloc}: {_reason(error)}")
    raise UserError(
        f"{file.name} of {entry.name} could not be downloaded ({'; '.join(faults)}); "
        f"try again later, or put the file into {str(folder)!r}"
    )


class _Checked:
    """Download to the temporary name that pooch gives, and refuse what is not official before it is renamed."""

    def __init__(self, entry: Entry, file: OfficialFile, bar: "_Bar | None") -> None:
        self.entry, self.file = entry, file
        # identity: a server must not wrap what is compressed already
        headers = {"Accept-Encoding": "identity"}
        self.http = pooch.HTTPDownloader(bar or False, chunk_size=1 << 16, timeout=_SECONDS, headers=headers)

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        self.http(url, output_file, pooch)
        found = judge(self.entry, self.file, Path(output_file))
        if found.state != "ok":
            raise ValueError(f"what came is {found.state}")


class _Bar:
    """A progress bar with the face that pooch expects of one."""

    def __init__(self, name: str, progress: Progress) -> None:
        self.total = 0
        self._progress, self._task = progress, progress.add_task(name)

    def update(self, size: int) -> None:
        """Go on by so many bytes."""
        self._progress.update(self._task, total=self.total or None, advance=size)

    def reset(self) -> None:
        """Go back to nothing; pooch does so before it fills the bar."""
        self._progress.reset(self._task)

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


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep pooch from logging the checksum of each file: ours are checked already."""
    logger = pooch.get_logger()
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


def _reason(error: Exception) -> str:
    """Why a download failed, in a few words: the full text of a connection error is a paragraph."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None:
        return f"HTTP {status}"
    return str(error) if type(error) is ValueError else type(error).__name__
