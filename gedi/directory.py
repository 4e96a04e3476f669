"""The directory of a run: everything that was learnt and measured, read with suspicion and written whole."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock
from safetensors.torch import save
from torch import Tensor, nn

from gedi.checkpoints import Checkpoints, write_whole, writing
from gedi.claims import ALONE, LOCK, check_free, held, make_empty
from gedi.config import Config, parse
from gedi.data import Dataset, differences, fingerprint
from gedi.errors import UserError
from gedi.fitted import Fitted
from gedi.methods import has_density, method_of, with_method
from gedi.processes import Processes
from gedi.proposing import unsettled
from gedi.random import Streams
from gedi.renamed import written_by_0_1
from gedi.run_files import (
    Evaluation,
    Fingerprint,
    Results,
    checksum_of,
    read_json,
    read_lines,
    read_tensors,
    refuse,
)
from gedi.sources import load_data
from gedi.yaml_text import LONGEST, read_yaml

Record = dict[str, Any]


class RunDirectory:
    """The files of a run. Nothing is written before everything given has been checked.

    Who writes holds its lock, ``.lock``: of two that would, the second is refused. The system lets go of the lock of a
    process that is gone, so the file is no obstacle. Reading needs no lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = Checkpoints(path / "checkpoints")
        self._lock = FileLock(path / LOCK, timeout=0)

    @classmethod
    def create(cls, path: str | Path, *, overwrite: bool = False) -> "RunDirectory":
        """A new directory; one that holds a run already is refused, or replaced if so told."""
        check_free(Path(path), overwrite)
        with held(Path(path)):
            make_empty(Path(path), overwrite)
        return cls(Path(path))

    @classmethod
    def open(cls, path: str | Path) -> "RunDirectory":
        """A directory that holds a run."""
        path = Path(path)
        if not (path / "config.yaml").is_file():
            raise UserError(f"{str(path)!r} is not a run: it holds no config.yaml")
        return cls(path)

    @contextmanager
    def held(self, processes: Processes = ALONE) -> Iterator[None]:
        """Nobody else writes here meanwhile. Of several processes of one run the first one holds it for all."""
        with held(self.path, self._lock, processes):
            yield

    @contextmanager
    def claimed(self, config: Config, processes: Processes, *, resume: bool, overwrite: bool) -> Iterator[None]:
        """Held to run these settings in: made, emptied, or as it is if the run shall go on."""
        go_on = processes.of_first(lambda: _goes_on(self, config, resume, overwrite))
        with self.held(processes):
            processes.of_first(lambda: None if go_on else make_empty(self.path, overwrite))
            yield

    def config(self) -> Config:
        """The run's complete settings."""
        return load_config(self.path / "config.yaml")

    def results(self) -> Record:
        """The run's results."""
        path = self.path / "results.json"
        if not path.is_file():
            raise UserError(f"{str(self.path)!r} has no results yet: finish it with gedi run --resume")
        return read_json(path, Results)

    def evaluation(self) -> Record:
        """What ``gedi evaluate`` measured so far."""
        path = self.path / "evaluation.json"
        return read_json(path, Evaluation, "remove it, and gedi evaluate measures again") if path.is_file() else {}

    def metrics(self) -> list[Record]:
        """The logged steps."""
        return read_lines(self.path / "metrics.jsonl")

    def fingerprint(self) -> Record | None:
        """What the run's data were; None of runs of 0.1.0, which did not keep it."""
        path = self.path / "data.json"
        if path.is_file():
            return read_json(path, Fingerprint, "put back a copy, or run it again with --overwrite")
        found: Record | None = self.results().get("fingerprint") if (self.path / "results.json").is_file() else None
        return found

    def data(self, data_dir: str | Path | None = None) -> Dataset:
        """The run's data, read again; refused if they are others by now."""
        config = with_method(self.config())
        data = load_data(config, Streams(config.seed), data_dir)
        self.check_data(data)
        return data

    def check_data(self, data: Dataset) -> Record:
        """Refuse data that are not those the run began with, and say what differs.

        Returns:
            Their fingerprint.
        """
        now, then = fingerprint(data), self.fingerprint()
        changed = [] if then is None else differences(then, now)
        if changed:
            raise UserError(
                f"the data are not those that the run in {str(self.path)!r} began with: {'; '.join(changed)}; put them "
                f"back, or run anew with --overwrite or another --out"
            )
        return now

    def write(self, name: str, text: str) -> None:
        """Write a file whole or not at all."""
        write_whole(self.path / name, text.encode())

    def write_tensors(self, name: str, tensors: dict[str, Tensor]) -> str:
        """Write tensors as safetensors, whole or not at all, and return the checksum to keep."""
        content = save({key: x.contiguous() for key, x in tensors.items()})
        write_whole(self.path / name, content)
        return checksum_of(content)

    def append_metrics(self, record: Record) -> None:
        """One line of ``metrics.jsonl``."""
        with writing(self.path), (self.path / "metrics.jsonl").open("a") as lines:
            lines.write(json.dumps(record) + "\n")

    def save_checkpoint(self, state: Record) -> None:
        """The trainer's state, whole or not at all; the one before is kept."""
        with writing(self.path), (self.path / "metrics.jsonl").open("a") as lines:
            os.fsync(lines.fileno())  # the lines that the state says are there
        self.checkpoints.save(state)

    def load_checkpoint(self, check: Callable[[Record], None] = lambda state: None) -> Record | None:
        """The trainer's state, or None before the first checkpoint. A bad one is passed over, and said.

        Args:
            check: raises :class:`~gedi.checkpoints.Unusable` where a state is not one to go on from.
        """
        state = self.checkpoints.load(check)
        for path, why in self.checkpoints.damaged.items():
            say(f"{str(path)!r} {why}; the checkpoint before it is used")
        return state

    def fitted(self, encoder: nn.Module | None = None) -> Fitted:
        """What the run has learnt; one with an encoder of your own wants one like it again."""
        found = Fitted.load(self.path / "model", encoder)
        own = load_settings(self.path / "config.yaml") if (self.path / "config.yaml").is_file() else None
        # what a method changed, 0.1 wrote down otherwise
        comparable = own is not None and (found.config.method == "gedi" or not written_by_0_1(own))
        if comparable and unsettled(found.config) != unsettled(with_method(self.config())):
            refuse(self.path / "model" / "config.json", "its settings are not those of config.yaml")
        found.verdict = self.results().get("verdict") if (self.path / "results.json").is_file() else None
        return found

    def points(self) -> dict[str, Tensor]:
        """What the assessment kept for pictures: clusters of the test points; samples; points or images and theirs."""
        path, config = self.path / "model" / "points.safetensors", with_method(self.config())
        found = read_tensors(path, self.results().get("checksums", {}).get("points"))
        needed = {"predicted"} | ({"samples"} if has_density(config) else set())
        needed |= {"images", "shown"} if not config.model.of_rows else set()
        if lacking := sorted(needed - set(found)):
            refuse(path, f"it holds no {', '.join(lacking)}")
        shown = [found[name] for name in ("images", "test", "rows", "shown", "shown_labels") if name in found]
        if found["predicted"].dim() != 1 or len({len(x) if x.dim() else 0 for x in shown}) > 1:
            refuse(path, "it must hold one cluster for each point")
        return found

    def energies(self) -> dict[str, Tensor]:
        """What ``gedi evaluate`` kept for pictures: energies of its own test images and of other sets."""
        path = self.path / "model" / "energies.safetensors"
        cure = "remove it, and gedi evaluate --part ood measures again"
        return (
            read_tensors(path, self.evaluation().get("checksums", {}).get("energies"), cure) if path.is_file() else {}
        )


def _goes_on(directory: RunDirectory, config: Config, resume: bool, overwrite: bool) -> bool:
    """Whether the run goes on; it may begin if it does not."""
    path = directory.path
    if not resume or not (path / "config.yaml").is_file():
        check_free(path, overwrite)
        if resume:
            say(f"{str(path)!r} holds no run yet: it starts anew")
        return False
    if written_by_0_1(load_settings(path / "config.yaml")):
        raise too_old(path)
    if directory.config() != config:
        raise UserError(f"--resume needs the settings the run began with: see {str(path / 'config.yaml')!r}")
    return True


def too_old(path: Path) -> UserError:
    """What to say of a run that cannot go on."""
    return UserError(
        f"the run in {str(path)!r} is of gedi 0.1, which this version cannot go on with: finish it with 0.1, or start "
        f"anew with --overwrite or another --out"
    )


def default_directory(config: Config) -> Path:
    """Where a run goes that is not told where: a folder in ``runs``, as no name in it can lead elsewhere."""
    method_of(config)
    return Path("runs") / f"{config.preset}-{config.method}-seed{config.seed}"


def say(text: str) -> None:
    """A word to the user that is no result."""
    print(f"gedi: {text}", file=sys.stderr)


def load_config(path: str | Path) -> Config:
    """A config from a YAML file."""
    settings = load_settings(path)
    try:
        return parse(settings)
    except UserError as error:
        raise UserError(f"{str(path)!r} cannot be used: {error}") from None


def load_settings(path: str | Path) -> dict[str, Any]:
    """The settings in a YAML file, unchecked."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(LONGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{str(path)!r} cannot be read as YAML: {str(error).splitlines()[0]}") from None
    settings = read_yaml(text, repr(str(path)))
    if not isinstance(settings, dict):
        raise UserError(f"{str(path)!r} must hold sections and keys, got {type(settings).__name__}")
    return settings
