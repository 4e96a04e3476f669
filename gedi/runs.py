"""A run: a config becomes a directory with everything that was learnt and measured."""

import importlib.metadata
import json
import math
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from lightning_fabric import Fabric
from safetensors.torch import save
from torch import Tensor, nn

from gedi.assess import assess
from gedi.building import (
    build_model,
    build_stages,
    cluster_loss_range,
    context_of,
    initial_distribution,
    trainer_settings,
)
from gedi.checkpoints import Checkpoints, Unusable, write_whole, writing
from gedi.config import Config, parse, to_yaml
from gedi.data import Dataset, differences, fingerprint
from gedi.densities.density import Place
from gedi.devices import make_fabric
from gedi.errors import DivergenceError, EndedElsewhere, UserError
from gedi.evaluation import density_check
from gedi.footprint import check_data, check_training
from gedi.judge import judge
from gedi.loggers import figures
from gedi.logic import Constraint
from gedi.methods import has_clusters, has_density, method_of, with_method
from gedi.nn import Model
from gedi.nn.compiled import compile_encoder
from gedi.presets import check_preset
from gedi.processes import Processes
from gedi.random import Streams
from gedi.renamed import VERSION, VERSION_KEY, renamed_tensors, written_by_0_1
from gedi.rules import build_constraint, check_constraint
from gedi.run_files import (
    Evaluation,
    Fingerprint,
    Results,
    Shape,
    checksum_of,
    read_json,
    read_lines,
    read_tensors,
    refuse,
)
from gedi.sampling import Box
from gedi.sources import data_box, load_data
from gedi.trained import check_method
from gedi.training import Trainer
from gedi.training.restoring import Misfit, refuse_misfit
from gedi.yaml_text import LONGEST, read_yaml

# A checkpoint is written when either is over.
CHECKPOINT_EVERY = 500  # iterations
CHECKPOINT_SECONDS = 60.0
FIRST_CHECKPOINT_SECONDS = 5.0  # the first one comes early, and each waits twice as long as the one before
THREADS = "threads.json"  # of a run whose threads were measured or asked for: see gedi.threads
_PATIENCE = 0.5  # seconds that someone who asks the training to stop may have to wait
_LOCK = ".lock"
_ALONE = Processes()
_VERSIONED = ("gedi-learn", "torch", "numpy", "scikit-learn", "lightning-fabric")
Record = dict[str, Any]


class Stopped(KeyboardInterrupt):
    """The training was asked to stop, and has written a checkpoint to go on from."""


class RunDirectory:
    """The files of a run. Nothing is written before everything given has been checked.

    Who writes holds its lock, ``.lock``: of two that would, the second is refused. The system lets go of the lock of a
    process that is gone, so the file is no obstacle. Reading needs no lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = Checkpoints(path / "checkpoints")
        self._lock = FileLock(path / _LOCK, timeout=0)

    @classmethod
    def create(cls, path: str | Path, *, overwrite: bool = False) -> "RunDirectory":
        """A new directory; one that holds a run already is refused, or replaced if so told."""
        directory = cls(Path(path))
        directory._check_free(overwrite)
        with directory.held():
            directory._make_empty(overwrite)
        return directory

    @classmethod
    def open(cls, path: str | Path) -> "RunDirectory":
        """A directory that holds a run."""
        path = Path(path)
        if not (path / "config.yaml").is_file():
            raise UserError(f"{str(path)!r} is not a run: it holds no config.yaml")
        return cls(path)

    @contextmanager
    def held(self, processes: Processes = _ALONE) -> Iterator[None]:
        """Nobody else writes here meanwhile. Of several processes of one run the first one holds it for all."""
        processes.of_first(self._hold)
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def claimed(self, config: Config, processes: Processes, *, resume: bool, overwrite: bool) -> Iterator[None]:
        """Held to run these settings in: made, emptied, or as it is if the run shall go on."""
        go_on = processes.of_first(lambda: self._check_claim(config, resume, overwrite))
        with self.held(processes):
            processes.of_first(lambda: None if go_on else self._make_empty(overwrite))
            yield

    def _check_claim(self, config: Config, resume: bool, overwrite: bool) -> bool:
        """Whether the run goes on; it may begin if it does not."""
        if not resume or not (self.path / "config.yaml").is_file():
            self._check_free(overwrite)
            if resume:
                say(f"{str(self.path)!r} holds no run yet: it starts anew")
            return False
        if written_by_0_1(load_settings(self.path / "config.yaml")):
            raise _too_old(self.path)
        if self.config() != config:
            raise UserError(f"--resume needs the settings the run began with: see {str(self.path / 'config.yaml')!r}")
        return True

    def _check_free(self, overwrite: bool) -> None:
        path = self.path
        if path.exists() and not path.is_dir():
            raise UserError(f"--out must name a directory, but {str(path)!r} is a file")
        if self._occupied and not overwrite:
            raise UserError(
                f"--out {str(path)!r} already holds files: choose another directory, go on with --resume, "
                f"or replace it with --overwrite"
            )
        if self._occupied and not (path / "config.yaml").is_file():
            raise UserError(f"--overwrite only replaces a run, and {str(path)!r} holds no config.yaml")
        _check_writable(path)

    def _make_empty(self, overwrite: bool) -> None:
        self._check_free(overwrite)  # again: another may have begun a run before this one had the lock
        if self._occupied:
            _empty(self.path)

    @property
    def _occupied(self) -> bool:
        # a run that was killed at its very first write leaves nothing but these
        left = (THREADS, f"{THREADS}.tmp", "config.yaml.tmp", _LOCK)
        return self.path.is_dir() and any(entry.name not in left for entry in self.path.iterdir())

    def _hold(self) -> None:
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire()
            except Timeout:
                raise UserError(
                    f"{str(self.path)!r} is in use by another process: wait until it ends, or choose another directory"
                ) from None

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

    def check_metrics(self, keep: int) -> None:
        """The lines logged before a checkpoint must all be there."""
        path = self.path / "metrics.jsonl"
        there = len(read_lines(path, keep))
        if there < keep:
            refuse(path, f"of {keep} lines {there} are left", "put back a copy, or start anew with --overwrite")

    def trim_metrics(self, keep: int) -> None:
        """Forget lines logged after the checkpoint that a resumed run starts from; the last may be cut short."""
        path = self.path / "metrics.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)[:keep] if keep else []
        write_whole(path, b"".join(lines))

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

    def save_model(self, prepared: "Prepared") -> None:
        """Weights as safetensors, and what it takes to build the network again."""
        checksum = self.write_tensors("model/model.safetensors", prepared.trainer.model.state_dict())
        shape = {
            "shape": list(prepared.data.train.shape[1:]),
            "clusters": prepared.clusters,
            "low": prepared.box.low.tolist(),
            "high": prepared.box.high.tolist(),
            "config": {VERSION_KEY: VERSION, **_plain(prepared.method_config)},
            "own_encoder": prepared.own_encoder,
            "checksum": checksum,
        }
        self.write("model/config.json", json.dumps(shape))

    @property
    def needs_encoder(self) -> bool:
        """Whether the run was trained with an encoder of one's own, which no file describes."""
        path = self.path / "model" / "config.json"
        return path.is_file() and bool(read_json(path, Shape).get("own_encoder", False))

    def load_model(self, encoder: nn.Module | None = None) -> tuple[Model, Box]:
        """The trained network and the box its density lives in; a run with an encoder of one's own wants it again."""
        weights, path = (self.path / "model" / name for name in ("model.safetensors", "config.json"))
        if not weights.is_file():
            raise UserError(f"{str(self.path)!r} has no model yet: finish it with gedi run --resume")
        built = read_json(path, Shape)
        if built.get("own_encoder") and encoder is None:
            raise UserError(
                f"{str(self.path)!r} was trained with an encoder of your own: give one like it to load_model(encoder)"
            )
        own = with_method(self.config()) if (self.path / "config.yaml").is_file() else None
        try:
            config, shape = parse(built["config"]), tuple(built["shape"])
            # what a method changed, 0.1 wrote down otherwise
            comparable = config.method == "gedi" or not written_by_0_1(built["config"])
            if own is not None and comparable and config != own:
                raise UserError("its settings are not those of config.yaml")
            box = Box(torch.tensor(built["low"]), torch.tensor(built["high"]))
            if tuple(box.low.shape) != shape or tuple(box.high.shape) != shape or not (box.low < box.high).all():
                raise UserError(f"low and high must be the ends of a box of shape {shape}")
            check_training(config, shape, 1, built["clusters"])
            model = build_model(config, shape, built["clusters"], Streams(0), encoder)
        except (ValueError, TypeError, RuntimeError) as error:
            refuse(path, str(error).splitlines()[0])
        tensors = read_tensors(weights, built.get("checksum"))
        try:
            model.load_state_dict(renamed_tensors(tensors))
        except RuntimeError:  # whose message has a line for each tensor
            refuse(weights, f"its weights are not those of the network in {path.name}")
        return model.eval(), box

    def points(self) -> dict[str, Tensor]:
        """What the assessment kept for pictures: clusters of the test points; samples; points or images and theirs."""
        path, config = self.path / "model" / "points.safetensors", with_method(self.config())
        found = read_tensors(path, self.results().get("checksums", {}).get("points"))
        needed = {"predicted"} | ({"samples"} if has_density(config) else set())
        needed |= {"images", "shown"} if config.model.encoder != "mlp" else set()
        if lacking := sorted(needed - set(found)):
            refuse(path, f"it holds no {', '.join(lacking)}")
        shown = [found[name] for name in ("images", "test", "shown", "shown_labels") if name in found]
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


@dataclass(frozen=True)
class Prepared:
    """A run that could start: everything given has been read and checked, nothing has been written."""

    config: Config
    method_config: Config  # with the method's changes applied
    data: Dataset
    box: Box
    streams: Streams
    trainer: Trainer
    constraint: Constraint | None
    clusters: int
    own_encoder: bool


def prepare(
    config: Config,
    *,
    fabric: Fabric | None = None,
    compiled: bool = False,
    data_dir: str | Path | None = None,
    data: Dataset | None = None,
    constraint: Constraint | None = None,
    encoder: nn.Module | None = None,
) -> Prepared:
    """Read the data, build the model and its trainer. The whole run follows from the config's seed.

    Args:
        config: the settings.
        fabric: device, precision and processes; see :func:`gedi.devices.make_fabric`. It is launched here, once
            everything given has been checked. None is this process on the CPU.
        compiled: compile the encoders with ``torch.compile`` where that works; see docs/speed.md for where it pays.
        data_dir: where image files are looked for first.
        data: points of your own in place of those the config names.
        constraint: one of your own in place of the one the config names.
        encoder: a module of your own (n, *shape) -> (n, h) in place of the one the config names. It should have no
            batch norm: an image's energy must not depend on its neighbours.
    """
    check_preset(config.preset)
    check_method(config)
    method_config = with_method(config)
    streams = Streams(config.seed)
    if data is None:
        check_data(config)
        data = load_data(config, streams, data_dir)
    clusters = config.model.clusters or data.clusters
    if clusters is None:
        raise UserError("data without labels need model.clusters, the number of clusters to find")
    check_training(method_config, data.train.shape[1:], len(data.train), clusters)
    # for the figures a rule counts even where the method does without it
    constraint = constraint or build_constraint(config.constraint, clusters)
    if constraint is not None:
        check_constraint(constraint, clusters, data.group_size, data.groups)
    fabric = make_fabric() if fabric is None else fabric
    fabric.launch()
    box = data_box(config, data)
    on_device = Box(fabric.to_device(box.low), fabric.to_device(box.high))
    train_points = fabric.to_device(data.train)
    initial = initial_distribution(method_config, train_points, on_device)
    model = build_model(method_config, data.train.shape[1:], clusters, streams, encoder)
    if compiled:
        for part in (model.encoder, getattr(model.density, "encoder", None)):
            if part is not None:
                compile_encoder(part, data.train.shape[1:])
    processes = Processes(fabric.global_rank, fabric.world_size)
    density = method_config.density.bind(Place(on_device, initial, processes))
    context = context_of(method_config, clusters, constraint, data.train_labels is not None)
    stages = build_stages(method_config, density, context)
    trainer = Trainer(
        model,
        train_points,
        density,
        stages,
        Streams(config.seed, fabric.device),
        fabric,
        trainer_settings(method_config, stages),
        group_size=data.group_size,
        groups=data.groups,
        labels=fabric.to_device(data.train_labels) if any(stage.looks_at_labels for stage in stages) else None,
    )
    return Prepared(config, method_config, data, box, streams, trainer, constraint, clusters, encoder is not None)


def train(
    prepared: Prepared,
    checkpoint: Callable[[Record], None] = lambda state: None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Train to the end, handing over the trainer's state now and then; where it is handed over changes no bit.

    Args:
        prepared: the run.
        checkpoint: takes the state.
        stop: asked about twice a second; once true, the state is handed over and :class:`Stopped` raised.
    """
    trainer, processes = prepared.trainer, prepared.trainer.processes
    few, since, saved = 1, 0, time.monotonic()  # iterations until the next look, and since the last checkpoint
    wait = FIRST_CHECKPOINT_SECONDS
    while not trainer.course.over:
        began = time.monotonic()
        few = min(few, CHECKPOINT_EVERY - since)
        trainer.fit(stop_after=few)
        now = time.monotonic()
        since += few
        few = max(1, min(2 * few, int(few * _PATIENCE / max(now - began, 1e-6))))
        due = since >= CHECKPOINT_EVERY or now - saved >= min(wait, CHECKPOINT_SECONDS)
        # the first process's clock counts, and who asks any of them to stop asks all
        everyone = processes.of_all((few, due, stop()))
        (few, due, _), stopped = everyone[0], any(asked for _, _, asked in everyone)
        if stopped or due or trainer.course.over:
            state = trainer.state_dict()
            processes.of_first(partial(checkpoint, state))
            since, saved, wait = 0, time.monotonic(), 2 * wait
        if stopped:
            raise Stopped
    trainer.finish()


def execute(
    prepared: Prepared,
    directory: RunDirectory,
    on_log: Callable[[Record], None] = lambda record: None,
    stop: Callable[[], bool] = lambda: False,
) -> Record:
    """Run into a directory, from its last checkpoint if it has one, and return the results.

    Whenever it was killed, it ends in the same model, bit for bit, on the same machine. Of several processes only the
    first reads and writes the directory, and has results; the others return none.

    Args:
        prepared: the run.
        directory: where it goes.
        on_log: takes each record as it is logged.
        stop: whether the training shall stop; see :func:`train`.
    """
    with directory.held(prepared.trainer.processes):
        return _execute(prepared, directory, on_log, stop)


def _execute(
    prepared: Prepared, directory: RunDirectory, on_log: Callable[[Record], None], stop: Callable[[], bool]
) -> Record:
    began = time.perf_counter()
    config, trainer, processes = prepared.config, prepared.trainer, prepared.trainer.processes
    print_of_data, state = processes.of_first(lambda: _begin(prepared, directory))
    logged, spent = (0, 0.0) if state is None else (state["logged"], state["spent"])
    if state is not None:
        trainer.load_state_dict(state)

    def log(record: Record) -> None:
        nonlocal logged
        logged += 1
        directory.append_metrics(record)
        before = sum(leg.stage.iterations for leg in trainer.course.legs[: trainer.course.at])
        trainer.fabric.log_dict(figures(record), before + record["iteration"])
        on_log(record)

    def checkpoint(state: Record) -> None:
        own = {"config": _plain(config), "logged": logged, "spent": spent + time.perf_counter() - began}
        directory.save_checkpoint({**state, **own})

    if processes.first:
        trainer.on_log = log
    try:
        with processes.watched():
            train(prepared, checkpoint, stop)
    except DivergenceError as error:
        if trainer.last_good is not None:  # the guard put the last good state back
            trainer.finish()
            processes.of_first(lambda: directory.save_model(prepared))
        raise error if processes.first else EndedElsewhere(str(error)) from error
    if not processes.first:
        return {}
    directory.save_model(prepared)
    assessing = time.perf_counter()
    metrics, points = _assess(prepared)
    checksum = directory.write_tensors("model/points.safetensors", points)
    losses = trainer.course.selection_losses
    interventions = sum(record.get("event") == "guard" for record in directory.metrics())
    now = time.perf_counter()
    results: Record = {
        "verdict": _judge(prepared, metrics, interventions),
        "preset": config.preset,
        "method": config.method,
        "seed": config.seed,
        "data": prepared.data.name,
        "source": prepared.data.source,
        "clusters_by": "cluster head" if has_clusters(prepared.method_config) else "k-means on test features",
        "metrics": metrics,
        "density": density_check(metrics) if "sample_1nn" in metrics else None,
        "restarts": {
            "selection_losses": losses,
            "chosen": losses.index(min(losses)) if losses else None,
            "good_enough": trainer.settings.good_enough,
        },
        "interventions": interventions,
        "temperature": prepared.trainer.density.temperature,
        "processes": processes.size,
        "seconds": {**trainer.seconds, "assess": now - assessing, "total": spent + now - began},
        "versions": versions(),
        "fingerprint": print_of_data,
        "checksums": {"points": checksum},
    }
    directory.write("results.json", json.dumps(results, indent=2) + "\n")
    return results


def _begin(prepared: Prepared, directory: RunDirectory) -> tuple[Record, Record | None]:
    """The fingerprint of the data and the state to go on from; whatever does not fit is refused before any write."""
    begun = (directory.path / "config.yaml").is_file()
    if begun and directory.config() != prepared.config:
        raise UserError(f"{str(directory.path)!r} holds a run with other settings: choose another directory")
    found = directory.check_data(prepared.data)
    known = directory.fingerprint() is not None
    state = directory.load_checkpoint(partial(_check_state, prepared, directory.path))
    logged = 0 if state is None else state["logged"]
    directory.check_metrics(logged)
    if not begun:
        directory.write("config.yaml", to_yaml(prepared.config))
    elif state is None:
        say(f"{str(directory.path)!r} has no checkpoint yet: it starts anew")
    elif not known:
        say(f"{str(directory.path)!r} kept no fingerprint of its data: that they are the same is taken on trust")
    if not known:
        directory.write("data.json", json.dumps(found, indent=2) + "\n")
    directory.trim_metrics(logged)
    return found, state


def _check_state(prepared: Prepared, path: Path, state: Record) -> None:
    """A checkpoint must be of this very run."""
    if {"leg", "chains", "model"} <= set(state):
        raise _too_old(path)
    try:
        for name, kind in (("logged", int), ("spent", float)):
            if not isinstance(state.get(name), kind):
                raise Misfit(f"lacks {name!r}, as another version of gedi may have written it")
        own = _plain(prepared.config)
        if state.get("config") != own:
            raise Misfit("is of a run with other settings")
        if state["logged"] < 0 or not 0 <= state["spent"] < math.inf:
            raise Misfit("has a wrong 'logged' or 'spent'")
        refuse_misfit(prepared.trainer, state)
    except Misfit as error:
        raise Unusable(str(error)) from None
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError) as error:  # of a kind that none foresaw
        raise Unusable("does not fit this run") from error


def _too_old(path: Path) -> UserError:
    return UserError(
        f"the run in {str(path)!r} is of gedi 0.1, which this version cannot go on with: finish it with 0.1, or start "
        f"anew with --overwrite or another --out"
    )


def _plain(config: Config) -> Record:
    plain: Record = config.model_dump(mode="json")
    return plain


def assess_run(prepared: Prepared) -> Record:
    """Every figure of a trained run that is kept in memory."""
    return _assess(prepared)[0]


def _assess(prepared: Prepared) -> tuple[Record, dict[str, Tensor]]:
    return assess(
        prepared.trainer.model,
        prepared.method_config,
        prepared.trainer.density,
        prepared.data,
        prepared.box,
        prepared.streams,
        prepared.constraint,
        prepared.trainer.samples,
    )


def _judge(prepared: Prepared, metrics: Record, interventions: int) -> Record:
    return judge(
        prepared.method_config,
        metrics,
        clusters=prepared.clusters,
        test_points=len(prepared.data.test),
        selection_losses=prepared.trainer.course.selection_losses,
        loss_range=cluster_loss_range([leg.stage for leg in prepared.trainer.course.legs]),
        interventions=interventions,
        constraint=prepared.constraint,
    )


def versions() -> dict[str, str]:
    """What the run was made with."""
    found = {"python": platform.python_version()}
    for name in _VERSIONED:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


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
        elif entry.name not in ("config.yaml", _LOCK):
            entry.unlink()
    (path / "config.yaml").unlink()
