"""How an estimator is fitted: its parameters become settings, points are learnt from, and what came out is gathered."""

import json
import shutil
import tempfile
import time
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn import config_context
from torch import Tensor, nn

from gedi.choosing import AUTO, DRAWN, settings_for
from gedi.config import Config, to_yaml
from gedi.data import Scaling, fingerprint
from gedi.data.limits import memory_limit
from gedi.data.values import check_columns
from gedi.devices import make_fabric
from gedi.directory import RunDirectory
from gedi.errors import UserError
from gedi.features import is_named
from gedi.fitted import Fitted, as_points
from gedi.fitting import Learnt, Prepared, learn, prepare
from gedi.in_memory import dataset_of
from gedi.methods import has_clusters, has_density
from gedi.report import Progress, write_report
from gedi.runs import results_of, versions
from gedi.usual import border, usual_known
from gedi.warm import begin_from

Record = dict[str, Any]
IDENTITY = "identity"


@dataclass(frozen=True)
class Page:
    """What a page on a fit is drawn from, beside the model and its results."""

    config: str
    records: list[Record]
    points: dict[str, Tensor]


@dataclass(frozen=True)
class Estimate:
    """What a fit found."""

    fitted: Fitted
    labels: np.ndarray
    offset: float
    border: float
    median: float
    results: Record
    page: Page


def estimate(
    estimator: Any, points: np.ndarray, seed: int, before: Fitted | None, began: float, answers: Any = None
) -> Estimate:
    """Learn from points with an estimator's parameters.

    Args:
        estimator: a :class:`gedi.GEDI`.
        points: rows or images, checked.
        seed: on which all depends.
        before: what a warm start goes on from.
        began: when fitting began, by ``time.perf_counter``.
        answers: what was observed of each group, where the constraint has several queries.
    """
    with config_context(array_api_dispatch=False):  # points are arrays of NumPy's by now
        return _estimate(estimator, points, seed, before, began, answers)


def _estimate(
    estimator: Any, given: np.ndarray, seed: int, before: Fitted | None, began: float, answers: Any
) -> Estimate:
    points = _drawn(estimator, given, seed)
    config = config_of(estimator, points, seed)
    if points.ndim == 2:
        told = range(points.shape[1]) if estimator.columns_ is None else map(repr, estimator.columns_.names)
        names = [f"column {name}" for name in told]
        estimator.notes_ += check_columns(list(points.T), names, "row {}".format, "X")
    inputs = before.inputs if before is not None else _scaling(estimator, points, config)
    called = () if estimator.columns_ is None else tuple(estimator.columns_.names)
    data = replace(dataset_of(points, config, estimator.constraint, inputs, answers), names=called)
    prepared = prepare(
        config,
        fabric=make_fabric(estimator.device, precision=estimator.precision),
        data=data,
        constraint=estimator.constraint,
        encoder=estimator.encoder if isinstance(estimator.encoder, nn.Module) else None,
    )
    if before is not None:
        begin_from(prepared, before)
    with Progress(config) if estimator.verbose else nullcontext() as progress:
        left = None if estimator.max_time is None else estimator.max_time - (time.perf_counter() - began)
        learnt = learn(prepared, progress or (lambda record: None), None if left is None else max(left, 0.0))
    return _gathered(prepared, learnt, given, estimator.contamination, began)


def _drawn(estimator: Any, points: np.ndarray, seed: int) -> np.ndarray:
    """The rows to learn from: all of them, or some of so many that copies of all would not fit in memory."""
    n = len(points)
    if points.ndim != 2 or n <= DRAWN or estimator.constraint is not None or points.nbytes <= memory_limit():
        return points
    note = f"{n:,} rows are more than memory should hold: {DRAWN:,} drawn at random are learnt from, all are labelled"
    estimator.notes_.append(note)
    warnings.warn(note, UserWarning, stacklevel=5)
    some: np.ndarray = points[np.sort(np.random.default_rng(seed).permutation(n)[:DRAWN])]
    return some


def _scaling(estimator: Any, points: np.ndarray, config: Config) -> Scaling | None:
    """How a frame with words is scaled; None: as all else."""
    apart = [] if estimator.columns_ is None else estimator.columns_.apart
    if not any(apart):
        return None
    return Scaling.mixed(as_points(points), torch.tensor(apart), config.data.columns, config.data.components)


def config_of(estimator: Any, points: np.ndarray, seed: int) -> Config:
    """An estimator's parameters as settings for these points."""
    _check(estimator)
    asked: Record = {"method": estimator.method, "seed": seed}
    if points.ndim == 2:
        frozen = is_named(estimator.encoder) and estimator.scaling == AUTO
        asked["data"] = {"columns": "cosine" if frozen else estimator.scaling, "components": AUTO}
    if estimator.n_init is not None:
        asked["n_init"] = _plain(estimator.n_init)
    if estimator.encoder == IDENTITY:
        asked["model"] = {"encoder": IDENTITY}
    return settings_for(
        points.shape[1:],
        len(points),
        clusters=_plain(estimator.n_clusters),
        group_size=_group_size(estimator),
        asked=asked,
        iterations=_plain(estimator.iterations),
        batch_size=_plain(estimator.batch_size),
        rule=estimator.constraint is not None,
    )


def _plain(value: Any) -> Any:
    """A number of NumPy's, as a grid search has them, as one of Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _check(estimator: Any) -> None:
    """Refuse parameters that cannot be meant, by the names they have here."""
    number = estimator.n_clusters
    if number != AUTO and (not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 1):
        raise UserError(f'n_clusters must be a whole number from 1 on, or "auto", got {number!r}')
    encoder = estimator.encoder
    if not isinstance(encoder, nn.Module) and encoder not in (AUTO, IDENTITY) and not is_named(encoder):
        raise UserError(
            f'encoder must be "auto", "identity", a name such as "timm:resnet18" or a torch.nn.Module, got {encoder!r}'
        )
    for name, least in (("iterations", 1), ("n_init", 1), ("batch_size", 2)):  # one point has no spread
        value = getattr(estimator, name)
        if value is not None and (not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least):
            raise UserError(f"{name} must be a whole number from {least} on, or None, got {value!r}")
    if estimator.max_time is not None and not (
        isinstance(_plain(estimator.max_time), int | float) and 0 < estimator.max_time < np.inf
    ):
        raise UserError(f"max_time must be seconds, more than 0, or None, got {estimator.max_time!r}")
    if not (isinstance(_plain(estimator.contamination), int | float) and 0 < estimator.contamination < 0.5):
        raise UserError(f"contamination must be a share between 0 and 0.5, got {estimator.contamination!r}")


def _group_size(estimator: Any) -> int:
    if estimator.constraint is None:
        if estimator.group_size not in (None, 1):
            raise UserError(f"group_size={estimator.group_size!r} says how a constraint reads rows: give a constraint")
        return 1
    size = len(getattr(estimator.constraint, "domains", ()))
    if estimator.group_size not in (None, size):
        raise UserError(f"group_size must be {size}, as the constraint has variables, got {estimator.group_size!r}")
    return max(size, 1)


def _gathered(prepared: Prepared, learnt: Learnt, points: np.ndarray, contamination: float, began: float) -> Estimate:
    fitted = learnt.fitted
    offset = least = median = float("nan")
    if has_density(fitted.config):
        usual = usual_known(fitted, points)
        offset, _ = border(usual.log_density, contamination)
        least, median = border(usual.beside, contamination)
    seconds = {**prepared.trainer.seconds, "total": time.perf_counter() - began}
    results = {
        **results_of(prepared, learnt.metrics, learnt.records),
        "seconds": seconds,
        "versions": versions(),
        "fingerprint": fingerprint(prepared.data),
    }
    labels = fitted.predict(points).numpy() if has_clusters(fitted.config) else None
    page = Page(to_yaml(prepared.config), learnt.records, learnt.points)
    return Estimate(fitted, labels, offset, least, median, results, page)  # type: ignore[arg-type]


def write_page(estimator: Any, path: Path) -> Path:
    """The page of a fit, drawn as that of a run is."""
    page: Page = estimator.page_
    with tempfile.TemporaryDirectory() as folder:
        directory = RunDirectory.create(Path(folder) / "run")
        directory.write("config.yaml", page.config)
        estimator.fitted_.save(directory.path / "model")
        checksum = directory.write_tensors("model/points.safetensors", page.points)
        directory.write("results.json", json.dumps({**estimator.results_, "checksums": {"points": checksum}}))
        for record in page.records:
            directory.append_metrics(record)
        made = write_report(directory)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, path)
    return path
