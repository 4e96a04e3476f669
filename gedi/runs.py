"""A run: a training into a directory, with its results."""

import importlib.metadata
import json
import math
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from gedi.checkpoints import Unusable
from gedi.config import Config, to_yaml
from gedi.directory import RunDirectory, say, too_old
from gedi.errors import DivergenceError, EndedElsewhere, UserError
from gedi.evaluation import density_check
from gedi.fitting import Prepared, judge_prepared, measured_run, train
from gedi.loggers import figures
from gedi.methods import has_clusters
from gedi.renamed import VERSION, VERSION_KEY
from gedi.run_files import check_lines, trim_lines
from gedi.training.restoring import Misfit, refuse_misfit

_VERSIONED = ("gedi-learn", "torch", "numpy", "scikit-learn", "lightning-fabric")
Record = dict[str, Any]


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
    began, worked = time.perf_counter(), time.process_time()
    trainer, processes = prepared.trainer, prepared.trainer.processes
    print_of_data, state = processes.of_first(lambda: _begin(prepared, directory))
    spent = 0.0 if state is None else state["spent"]
    try:
        with processes.watched():
            _train(prepared, directory, state, on_log, stop)
    except DivergenceError as error:
        if trainer.last_good is not None:  # the guard put the last good state back
            trainer.finish()
            processes.of_first(lambda: prepared.fitted().save(directory.path / "model"))
        raise error if processes.first else EndedElsewhere(str(error)) from error
    if not processes.first:
        return {}
    prepared.fitted().save(directory.path / "model")
    assessing = time.perf_counter()
    metrics, points = measured_run(prepared)
    checksum = directory.write_tensors("model/points.safetensors", points)
    now = time.perf_counter()
    results = {
        **results_of(prepared, metrics, directory.metrics()),
        "seconds": {
            **trainer.seconds,
            "assess": now - assessing,
            "total": spent + now - began,
            "processor": time.process_time() - worked,  # since the run was last taken up
        },
        "precision": trainer.fabric.strategy.precision.precision,
        "versions": versions(),
        "fingerprint": print_of_data,
        "checksums": {"points": checksum},
    }
    directory.write("results.json", json.dumps(results, indent=2) + "\n")
    return results


def _train(
    prepared: Prepared,
    directory: RunDirectory,
    state: Record | None,
    on_log: Callable[[Record], None],
    stop: Callable[[], bool],
) -> None:
    """Train from a state, or from the beginning; what is logged and the states on the way go into the directory."""
    began, trainer = time.perf_counter(), prepared.trainer
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
        own = {"config": _plain(prepared.config), "logged": logged, "spent": spent + time.perf_counter() - began}
        directory.save_checkpoint({VERSION_KEY: VERSION, **state, **own})

    if trainer.processes.first:
        trainer.on_log = log
    train(prepared, checkpoint, stop)


def results_of(prepared: Prepared, metrics: Record, logged: list[Record]) -> Record:
    """What a run says of itself; the verdict comes first."""
    config, trainer = prepared.config, prepared.trainer
    losses = trainer.course.selection_losses
    interventions = sum(record.get("event") == "guard" for record in logged)
    return {
        "verdict": judge_prepared(prepared, metrics, interventions),
        "preset": config.preset,
        "method": config.method,
        "seed": config.seed,
        "data": prepared.data.name,
        "source": prepared.data.source,
        "columns": list(prepared.data.names),
        "clusters_by": "cluster head" if has_clusters(prepared.method_config) else "k-means on test features",
        "metrics": metrics,
        "rule": said_of_rule(prepared),
        "density": density_check(metrics) if "sample_1nn" in metrics else None,
        "restarts": {
            "selection_losses": losses,
            "chosen": losses.index(min(losses)) if losses else None,
            "good_enough": trainer.settings.good_enough,
        },
        "interventions": interventions,
        "temperature": trainer.density.temperature,
        "processes": trainer.processes.size,
    }


def said_of_rule(prepared: Prepared) -> Record | None:
    """What was told before training of the rule, and how many labels were used beside it."""
    found = prepared.left_open
    if found is None:
        return None
    return {
        "foretold": list(prepared.foretold),
        "maps": found.count,
        "exact": found.exact,
        "swaps": len(found.swaps),
        "labels": sum(prepared.few.values()),
    }


def _begin(prepared: Prepared, directory: RunDirectory) -> tuple[Record, Record | None]:
    """The fingerprint of the data and the state to go on from; whatever does not fit is refused before any write."""
    begun = (directory.path / "config.yaml").is_file()
    if begun and directory.config() != prepared.config:
        raise UserError(f"{str(directory.path)!r} holds a run with other settings: choose another directory")
    found = directory.check_data(prepared.data)
    known = directory.fingerprint() is not None
    state = directory.load_checkpoint(partial(_check_state, prepared, directory.path))
    logged = 0 if state is None else state["logged"]
    check_lines(directory.path / "metrics.jsonl", logged)
    if not begun:
        directory.write("config.yaml", to_yaml(prepared.config))
    elif state is None:
        say(f"{str(directory.path)!r} has no checkpoint yet: it starts anew")
    elif not known:
        say(f"{str(directory.path)!r} kept no fingerprint of its data: that they are the same is taken on trust")
    if not known:
        directory.write("data.json", json.dumps(found, indent=2) + "\n")
    trim_lines(directory.path / "metrics.jsonl", logged)
    return found, state


def _check_state(prepared: Prepared, path: Path, state: Record) -> None:
    """A checkpoint must be of this very run."""
    if VERSION_KEY not in state and {"leg", "chains", "model"} <= set(state):
        raise too_old(path)
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


def _plain(config: Config) -> Record:
    plain: Record = config.model_dump(mode="json")
    return plain


def versions() -> dict[str, str]:
    """What the run was made with."""
    found = {"python": platform.python_version()}
    for name in _VERSIONED:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
