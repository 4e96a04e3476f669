"""Whose a run directory is: held by one process at a time, and never taken from somebody else's files."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from gedi.checkpoints import writing
from gedi.errors import UserError
from gedi.processes import Processes

LOCK = ".lock"
ALONE = Processes()
THREADS = "threads.json"  # of a run whose threads were measured or asked for: see gedi.threads
_LEFT = (THREADS, f"{THREADS}.tmp", "config.yaml.tmp", LOCK)  # by a run that was killed at its very first writes


@contextmanager
def held(path: Path, lock: FileLock | None = None, processes: Processes = ALONE) -> Iterator[None]:
    """Nobody else writes here meanwhile. Of several processes of one run the first one holds it for all."""
    lock = FileLock(path / LOCK, timeout=0) if lock is None else lock
    processes.of_first(lambda: _hold(path, lock))
    try:
        yield
    finally:
        lock.release()


def _hold(path: Path, lock: FileLock) -> None:
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout:
            raise UserError(
                f"{str(path)!r} is in use by another process: wait until it ends, or choose another directory"
            ) from None


def check_free(path: Path, overwrite: bool) -> None:
    """Refuse a directory that a run may not begin in."""
    if path.exists() and not path.is_dir():
        raise UserError(f"--out must name a directory, but {str(path)!r} is a file")
    if _occupied(path) and not overwrite:
        raise UserError(
            f"--out {str(path)!r} already holds files: choose another directory, go on with --resume, "
            f"or replace it with --overwrite"
        )
    if _occupied(path) and not (path / "config.yaml").is_file():
        raise UserError(f"--overwrite only replaces a run, and {str(path)!r} holds no config.yaml")
    _check_writable(path)


def make_empty(path: Path, overwrite: bool) -> None:
    """Forget the run that is there, if so told. The directory must be held."""
    check_free(path, overwrite)  # again: another may have begun a run before this one had the lock
    if _occupied(path):
        _empty(path)


def _occupied(path: Path) -> bool:
    return path.is_dir() and any(entry.name not in _LEFT for entry in path.iterdir())


def _check_writable(path: Path) -> None:
    """The nearest folder that exists must take new files."""
    parent = path
    while not parent.exists():
        parent = parent.parent
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UserError(f"--out {str(path)!r} cannot be written: no permission in {str(parent)!r}")


def _empty(path: Path) -> None:
    """Forget a run; what says that it is one goes last, so that a killed replacement can be made again."""
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name not in ("config.yaml", LOCK):
            entry.unlink()
    (path / "config.yaml").unlink()
