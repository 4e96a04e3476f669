"""A run: a config becomes a directory with everything that was learnt and measured."""

import importlib.metadata
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import yaml
from lightning_fabric import Fabric
from safetensors.torch import load_file, save
from torch import Tensor, nn

from gedi.assess import assess
from gedi.checkpoints import Checkpoints, write_whole, writing
from gedi.config import Config, parse, to_yaml
from gedi.data import Dataset
from gedi.devices import make_fabric
from gedi.errors import DivergenceError, UserError
from gedi.evaluation import density_verdict
from gedi.loggers import figures
from gedi.logic import Constraint
from gedi.methods import (
    build_model,
    build_stages,
    has_clusters,
    initial_distribution,
    langevin,
    trainer_settings,
    with_method,
)
from gedi.nn import Model
from gedi.nn.compiled import compile_encoder
from gedi.processes import EndedElsewhere
from gedi.random import Streams
from gedi.rules import build_constraint, check_constraint
from gedi.sampling import Box
from gedi.sources import data_box, load_data
from gedi.training import Trainer

# A checkpoint is written when either is over.
CHECKPOINT_EVERY = 500  # iterations
CHECKPOINT_SECONDS = 60.0
THREADS = "threads.json"  # of a run whose threads were measured or asked for: see gedi.threads
_PATIENCE = 0.5  # seconds that someone who asks the training to stop may have to wait
_VERSIONED = ("gedi-learn", "torch", "numpy", "scikit-learn", "lightning-fabric")
Record = dict[str, Any]


class Stopped(KeyboardInterrupt):
    """The training was asked to stop, and has written a checkpoint to go on from."""


class RunDirectory:
    """The files of a run. Nothing is written before everything given has been checked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = Checkpoints(path / "checkpoints")

    @classmethod
    def create(cls, path: str | Path, *, overwrite: bool = False) -> "RunDirectory":
        """A new directory; one that holds a run already is refused, or replaced if so told."""
        path = Path(path)
        if path.exists() and not path.is_dir():
            raise UserError(f"--out must name a directory, but {str(path)!r} is a file")
        # a run that was killed at its very first writes leaves nothing but these
        left = (THREADS, f"{THREADS}.tmp", "config.yaml.tmp")
        occupied = path.is_dir() and any(entry.name not in left for entry in path.iterdir())
        if occupied and not overwrite:
            raise UserError(
                f"--out {str(path)!r} already holds files: choose another directory, go on with --resume, "
                f"or replace it with --overwrite"
            )
        if occupied and not (path / "config.yaml").is_file():
            raise UserError(f"--overwrite only replaces a run, and {str(path)!r} holds no config.yaml")
        _check_writable(path)
        if occupied:
            _empty(path)
        path.mkdir(parents=True, exist_ok=True)
        return cls(path)

    @classmethod
    def open(cls, path: str | Path) -> "RunDirectory":
        """A directory that holds a run."""
        path = Path(path)
        if not (path / "config.yaml").is_file():
            raise UserError(f"{str(path)!r} is not a run: it holds no config.yaml")
        return cls(path)

    def config(self) -> Config:
        """The run's complete settings."""
        return load_config(self.path / "config.yaml")

    def results(self) -> Record:
        """The run's results."""
        path = self.path / "results.json"
        if not path.is_file():
            raise UserError(f"{str(self.path)!r} has no results yet: finish it with gedi run --resume")
        results: Record = json.loads(path.read_text())
        return results

    def evaluation(self) -> Record:
        """What ``gedi evaluate`` measured so far."""
        path = self.path / "evaluation.json"
        found: Record = json.loads(path.read_text()) if path.is_file() else {}
        return found

    def metrics(self) -> list[Record]:
        """The logged steps."""
        path = self.path / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []

    def write(self, name: str, text: str) -> None:
        """Write a file whole or not at all."""
        write_whole(self.path / name, text.encode())

    def write_tensors(self, name: str, tensors: dict[str, Tensor]) -> None:
        """Write tensors as safetensors, whole or not at all."""
        write_whole(self.path / name, save({key: x.contiguous() for key, x in tensors.items()}))

    def append_metrics(self, record: Record) -> None:
        """One line of ``metrics.jsonl``."""
        with writing(self.path), (self.path / "metrics.jsonl").open("a") as lines:
            lines.write(json.dumps(record) + "\n")

    def trim_metrics(self, keep: int) -> int:
        """Forget lines logged after the checkpoint that a resumed run starts from, the last of which may be cut short.

        Returns:
            How many lines are left.
        """
        path = self.path / "metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True)[:keep] if path.is_file() else []
        self.write("metrics.jsonl", "".join(lines))
        return len(lines)

    def save_checkpoint(self, state: Record) -> None:
        """The trainer's state, whole or not at all; the one before is kept."""
        with writing(self.path), (self.path / "metrics.jsonl").open("a") as lines:
            os.fsync(lines.fileno())  # the lines that the state says are there
        self.checkpoints.save(state)

    def load_checkpoint(self) -> Record | None:
        """The trainer's state, or None before the first checkpoint. A damaged one is passed over, and said."""
        state = self.checkpoints.load()
        for path in self.checkpoints.damaged:
            print(f"gedi: {str(path)!r} is damaged; the checkpoint before it is used", file=sys.stderr)
        return state

    def save_model(self, prepared: "Prepared") -> None:
        """Weights as safetensors, and what it takes to build the network again."""
        self.write_tensors("model/model.safetensors", prepared.trainer.model.state_dict())
        shape = {
            "shape": list(prepared.data.train.shape[1:]),
            "clusters": prepared.clusters,
            "low": prepared.box.low.tolist(),
            "high": prepared.box.high.tolist(),
            "config": prepared.method_config.model_dump(mode="json"),
            "own_encoder": prepared.own_encoder,
        }
        self.write("model/config.json", json.dumps(shape))

    @property
    def needs_encoder(self) -> bool:
        """Whether the run was trained with an encoder of one's own, which no file describes."""
        path = self.path / "model" / "config.json"
        return path.is_file() and bool(json.loads(path.read_text()).get("own_encoder", False))

    def load_model(self, encoder: nn.Module | None = None) -> tuple[Model, Box]:
        """The trained network and the box its density lives in; a run with an encoder of one's own wants it again."""
        folder = self.path / "model"
        if not (folder / "model.safetensors").is_file():
            raise UserError(f"{str(self.path)!r} has no model yet: finish it with gedi run --resume")
        shape = json.loads((folder / "config.json").read_text())
        if self.needs_encoder and encoder is None:
            raise UserError(
                f"{str(self.path)!r} was trained with an encoder of your own: give one like it to load_model(encoder)"
            )
        model = build_model(parse(shape["config"]), shape["shape"], shape["clusters"], Streams(0), encoder)
        model.load_state_dict(load_file(folder / "model.safetensors"))
        return model.eval(), Box(torch.tensor(shape["low"]), torch.tensor(shape["high"]))


def load_config(path: str | Path) -> Config:
    """A config from a YAML file."""
    return parse(load_settings(path))


def load_settings(path: str | Path) -> dict[str, Any]:
    """The settings in a YAML file, unchecked."""
    try:
        settings = yaml.safe_load(Path(path).read_text())
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{str(path)!r} cannot be read as YAML: {str(error).splitlines()[0]}") from None
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
    method_config = with_method(config)
    streams = Streams(config.seed)
    data = load_data(config, streams, data_dir) if data is None else data
    clusters = config.model.clusters or data.clusters
    if clusters is None:
        raise UserError("data without labels need model.clusters, the number of clusters to find")
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
        for part in (model.encoder, model.generative_encoder):
            if part is not None:
                compile_encoder(part, data.train.shape[1:])
    trainer = Trainer(
        model,
        train_points,
        build_stages(method_config, on_device, initial, constraint),
        Streams(config.seed, fabric.device),
        initial,
        fabric,
        trainer_settings(method_config, clusters),
        group_size=data.group_size,
        groups=data.groups,
        labels=_labels_for_upper_bound(method_config, data, fabric),
    )
    return Prepared(config, method_config, data, box, streams, trainer, constraint, clusters, encoder is not None)


def _labels_for_upper_bound(config: Config, data: Dataset, fabric: Fabric) -> Tensor | None:
    if config.stage2.weights.supervised == 0:
        return None
    if data.train_labels is None:
        raise UserError("method supervised needs labelled training data")
    labels: Tensor = fabric.to_device(data.train_labels)
    return labels


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
    while trainer.leg < len(trainer.legs):
        began = time.monotonic()
        few = min(few, CHECKPOINT_EVERY - since)
        trainer.fit(stop_after=few)
        now = time.monotonic()
        since += few
        few = max(1, min(2 * few, int(few * _PATIENCE / max(now - began, 1e-6))))
        due = since >= CHECKPOINT_EVERY or now - saved >= CHECKPOINT_SECONDS
        # the first process's clock counts, and who asks any of them to stop asks all
        everyone = processes.of_all((few, due, stop()))
        (few, due, _), stopped = everyone[0], any(asked for _, _, asked in everyone)
        if stopped or due or trainer.leg == len(trainer.legs):
            state = trainer.state_dict()
            processes.of_first(partial(checkpoint, state))
            since, saved = 0, time.monotonic()
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
    began = time.perf_counter()
    config, trainer, processes = prepared.config, prepared.trainer, prepared.trainer.processes
    state = processes.of_first(lambda: _begin(config, directory))
    logged, spent = (0, 0.0) if state is None else (state["logged"], state["spent"])
    if state is not None:
        try:
            trainer.load_state_dict(state)
        except KeyError as error:
            raise UserError(
                f"the checkpoint in {str(directory.path)!r} lacks {error}, as another version of gedi wrote it: go on "
                f"with that version, or start anew with --overwrite"
            ) from error
    logged = processes.of_first(lambda: directory.trim_metrics(logged))

    def log(record: Record) -> None:
        nonlocal logged
        logged += 1
        directory.append_metrics(record)
        before = sum(leg.stage.iterations for leg in trainer.legs[: trainer.leg])
        trainer.fabric.log_dict(figures(record), before + record["iteration"])
        on_log(record)

    def checkpoint(state: Record) -> None:
        directory.save_checkpoint({**state, "logged": logged, "spent": spent + time.perf_counter() - began})

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
    directory.write_tensors("model/points.safetensors", points)
    losses = trainer.selection_losses
    now = time.perf_counter()
    results: Record = {
        "preset": config.preset,
        "method": config.method,
        "seed": config.seed,
        "data": prepared.data.name,
        "source": prepared.data.source,
        "clusters_by": "cluster head" if has_clusters(prepared.method_config) else "k-means on test features",
        "metrics": metrics,
        "density": density_verdict(metrics) if "sample_1nn" in metrics else None,
        "restarts": {
            "selection_losses": losses,
            "chosen": losses.index(min(losses)) if losses else None,
            "good_enough": trainer.settings.good_enough,
        },
        "interventions": sum(record.get("event") == "guard" for record in directory.metrics()),
        "temperature": langevin(config, prepared.box).temperature,
        "processes": processes.size,
        "seconds": {**trainer.seconds, "assess": now - assessing, "total": spent + now - began},
        "versions": versions(),
    }
    directory.write("results.json", json.dumps(results, indent=2) + "\n")
    return results


def _begin(config: Config, directory: RunDirectory) -> Record | None:
    directory.write("config.yaml", to_yaml(config))
    return directory.load_checkpoint()


def assess_run(prepared: Prepared) -> Record:
    """Every figure of a trained run that is kept in memory."""
    return _assess(prepared)[0]


def _assess(prepared: Prepared) -> tuple[Record, dict[str, Tensor]]:
    return assess(
        prepared.trainer.model,
        prepared.method_config,
        prepared.data,
        prepared.box,
        prepared.streams,
        prepared.constraint,
        prepared.trainer.buffer.chains.cpu(),
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
        elif entry.name != "config.yaml":
            entry.unlink()
    (path / "config.yaml").unlink()
