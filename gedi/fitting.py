"""Fitting: points and settings become something learnt. The command line and everything else are faces of this."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from gedi.building import (
    build_model,
    build_stages,
    cluster_loss_range,
    context_of,
    initial_distribution,
    trainer_settings,
)
from gedi.config import Config
from gedi.data import Dataset
from gedi.densities.density import Place
from gedi.devices import make_fabric
from gedi.errors import UserError
from gedi.few_labels import choose_few
from gedi.fitted import Fitted
from gedi.footprint import check_data, check_training
from gedi.in_memory import dataset_of, settings_of
from gedi.judge import judge
from gedi.logic import Constraint, Shortcuts
from gedi.measures.measure import Trained
from gedi.measuring import kept_points, measured
from gedi.methods import with_method
from gedi.nn.compiled import compile_encoder
from gedi.pacing import pace
from gedi.presets import check_preset
from gedi.processes import Processes
from gedi.proposing import MOST_CLUSTERS, clusters_asked, has_graph, needs_graph, propose
from gedi.random import Streams
from gedi.rules import build_constraint, check_constraint, foretold, left_open
from gedi.sampling import Box
from gedi.sources import data_box, load_data, warn_of_scale
from gedi.trained import check_method
from gedi.training import Trainer

# A state is handed over when either is over.
CHECKPOINT_EVERY = 500  # iterations
CHECKPOINT_SECONDS = 60.0
FIRST_CHECKPOINT_SECONDS = 5.0  # the first one comes early, and each waits twice as long as the one before
_PATIENCE = 0.5  # seconds that someone who asks the training to stop may have to wait
Record = dict[str, Any]


class Stopped(KeyboardInterrupt):
    """The training was asked to stop, and has handed over its state to go on from."""


def fit(
    points: Any,
    config: Config | Mapping[str, Any] | str | None = None,
    *,
    clusters: int | Literal["auto"] | None = None,
    constraint: Constraint | None = None,
    answers: Any = None,
    encoder: nn.Module | None = None,
    fabric: Fabric | None = None,
    on_log: Callable[[Record], None] = lambda record: None,
) -> Fitted:
    """Learn from points in memory; nothing is written, no part is held out.

    Args:
        points: rows (n, d), images (n, c, h, w) as bytes or in [0, 1], or a :class:`~gedi.data.Dataset`. Rows are
            centred and scaled inside, and what comes out is in the units that went in.
        config: settings, the name of a preset, or plain data laid over one; None is the toy recipe.
        clusters: how many to look for, if the settings do not say; ``auto`` leaves it to the graph of the points, in
            presets that have one (``table``).
        constraint: what is known of groups of points, as large as it has variables; all points come in groups.
        answers: what was observed of each group, where the constraint has several queries (a sum): a list with None
            where nothing was, or how likely each answer is, (groups, answers).
        encoder: a module of your own (n, *shape) -> (n, h).
        fabric: device, precision and processes; see :func:`gedi.devices.make_fabric`.
        on_log: takes a record of figures now and then.

    Example:
        >>> import torch
        >>> x = torch.cat([torch.randn(100, 2), torch.randn(100, 2) + 9])
        >>> short = {"stage1": {"iterations": 20}, "stage2": {"iterations": 20}, "walk": {"steps": 2}, "n_init": 1}
        >>> fitted = fit(x, short, clusters=2)
        >>> fitted.predict(x).shape, fitted.log_density(x[:3]).shape
        (torch.Size([200]), torch.Size([3]))
    """
    settings = settings_of(config, clusters)
    if isinstance(points, Dataset):
        if answers is not None:
            raise UserError("the answers of a Dataset stand in it: give Dataset(..., answers=...)")
        data = points
    else:
        data = dataset_of(points, settings, constraint, answers=answers)
    return learn(prepare(settings, fabric=fabric, data=data, constraint=constraint, encoder=encoder), on_log).fitted


@dataclass(frozen=True)
class Learnt:
    """What a training in memory leaves behind: the model, its figures, the points behind them, and what was logged."""

    fitted: Fitted
    metrics: Record
    points: dict[str, Tensor]
    records: list[Record]


def learn(
    prepared: "Prepared", on_log: Callable[[Record], None] = lambda record: None, seconds: float | None = None
) -> Learnt:
    """Train what is prepared to its end, or for about so many seconds, and judge it; nothing is written."""
    trainer, records = prepared.trainer, list[Record]()

    def log(record: Record) -> None:
        records.append(record)
        on_log(record)

    trainer.on_log = log
    with trainer.processes.watched():
        if seconds is not None:
            pace(trainer, seconds)
        train(prepared)
    metrics, points = measured_run(prepared)
    interventions = sum(record.get("event") == "guard" for record in records)
    return Learnt(prepared.fitted(judge_prepared(prepared, metrics, interventions)), metrics, points, records)


@dataclass(frozen=True)
class Prepared:
    """A training that could start: everything given has been read and checked, nothing has been written."""

    config: Config
    method_config: Config  # with the method's changes applied
    data: Dataset
    box: Box
    streams: Streams
    trainer: Trainer
    constraint: Constraint | None
    clusters: int
    own_encoder: bool

    @cached_property
    def left_open(self) -> Shortcuts | None:
        """The namings that the rule cannot tell apart, where they can be searched."""
        return (
            None if self.constraint is None else left_open(self.constraint, self.trainer.answers, self.data.occurring)
        )

    @property
    def foretold(self) -> tuple[str, ...]:
        """What can be said before training of a rule: whether it can name the symbols."""
        return () if self.left_open is None else foretold(self.left_open, self.basis, self.few)

    @property
    def basis(self) -> str:
        """By which groups it is told what the rule leaves open."""
        if self.data.occurring is not None:
            return "the combinations that occur"
        return "" if self.data.answers is None else "every group whose answer occurs"

    @property
    def few(self) -> dict[int, int]:
        """How many images of which symbol have a label that training looks at."""
        few = self.trainer.few
        if few is None or not any(leg.stage.looks_at_few for leg in self.trainer.course.legs):
            return {}
        found, counts = torch.unique(few.labels.cpu(), return_counts=True)
        return dict(zip(found.tolist(), counts.tolist(), strict=True))

    def fitted(self, verdict: Record | None = None) -> Fitted:
        """What was learnt, once training has come to its end."""
        return Fitted(
            self.method_config,
            self.trainer.model,
            self.data.inputs,
            tuple(self.data.train.shape[1:]),
            self.clusters,
            self.box,
            own_encoder=self.own_encoder,
            verdict=verdict,
        )


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
    else:
        warn_of_scale(data, config)
    clusters = clusters_asked(method_config, data)
    if clusters is None and not has_graph(method_config):
        raise UserError("data without labels need model.clusters, the number of clusters to find")
    if config.model.clusters is None and clusters is not None and clusters < 2:
        raise UserError(
            f"there must be at least 2 clusters to find, got labels of {clusters} class: set model.clusters"
        )
    check_training(method_config, data.train.shape[1:], len(data.train), clusters or MOST_CLUSTERS)
    proposed = propose(method_config, data, clusters, streams) if has_graph(method_config) else None
    if proposed is not None:
        method_config, data, clusters = proposed.settled(method_config), proposed.visited(data), proposed.clusters
    if not needs_graph(method_config):
        proposed = None  # a baseline shares the lengths, and nothing that the graph says of clusters
    assert clusters is not None
    # for the figures a rule counts even where the method does without it
    constraint = constraint or build_constraint(config.constraint, clusters)
    if constraint is not None:
        check_constraint(constraint, clusters, data.group_size, data.groups, data.answers is not None)
    answers = None if constraint is None or data.answers is None else constraint.numbered(data.answers)
    fabric = make_fabric() if fabric is None else fabric
    fabric.launch()
    box = data_box(config, data)
    on_device = Box(fabric.to_device(box.low), fabric.to_device(box.high))
    train_points = fabric.to_device(data.train)
    initial = initial_distribution(method_config, train_points, on_device)
    processes = Processes(fabric.global_rank, fabric.world_size)
    density = method_config.density.bind(Place(on_device, initial, processes, train_points))
    model = build_model(method_config, data.train.shape[1:], clusters, streams, encoder, density)
    if compiled:
        for part in (model.encoder, getattr(model.density, "encoder", None)):
            if part is not None:
                compile_encoder(part, data.train.shape[1:])
    density.measure(model, data.train)
    telling = constraint is not None and config.data.label_these > 0
    open_ = left_open(constraint, answers, data.occurring) if telling and constraint is not None else None
    few = choose_few(config, data, constraint, open_, streams.numpy("labelled"))
    shares, graph = (None, None) if proposed is None else (proposed.shares, proposed.graph)
    context = context_of(method_config, clusters, constraint, data.train_labels is not None, shares, answers, few)
    stages = build_stages(method_config, density, context, graph)
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
        proposed=None if proposed is None else fabric.to_device(proposed.parts),
        answers=None if answers is None else fabric.to_device(answers),
        few=None if few is None else few._replace(rows=fabric.to_device(few.rows), labels=fabric.to_device(few.labels)),
    )
    own = encoder is not None
    return Prepared(config, method_config, data, box, streams, trainer, constraint, clusters, own)


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


def measured_run(prepared: Prepared) -> tuple[Record, dict[str, Tensor]]:
    """Every figure of a trained run, and the points behind them for pictures."""
    trained = Trained(
        prepared.trainer.model,
        prepared.method_config,
        prepared.trainer.density,
        prepared.data,
        prepared.box,
        prepared.streams,
        prepared.constraint,
        prepared.trainer.samples,
        prepared.few,
    )
    return measured(trained), kept_points(trained)


def judge_prepared(prepared: Prepared, metrics: Record, interventions: int) -> Record:
    """What the training knows of itself without labels: see :mod:`gedi.judge`."""
    return judge(
        prepared.method_config,
        metrics,
        clusters=prepared.clusters,
        test_points=len(prepared.data.test),
        selection_losses=prepared.trainer.course.selection_losses,
        loss_range=cluster_loss_range([leg.stage for leg in prepared.trainer.course.legs]),
        interventions=interventions,
        constraint=prepared.constraint,
        left_open=prepared.left_open,
        few=prepared.few,
    )
