"""Run folders that somebody, or something, has damaged."""

import atexit
import functools
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from calls import Typed
from safetensors.torch import load_file, save_file

from gedi.config import override, parse
from gedi.directory import RunDirectory
from gedi.fitting import prepare
from gedi.presets import preset
from gedi.runs import execute

TINY = [
    *("data.n_train=60", "data.n_test=20", "stage1.iterations=2", "stage2.iterations=2", "walk.steps=1"),
    *("stage1.batch_size=20", "stage2.batch_size=20", "density.buffer=20", "density.chains=10"),
    *("density.steps=1", "log_every=1", "n_init=1", "model.hidden=[8]"),
]
TINY_IMAGES = [
    *("stage1.iterations=2", "stage2.iterations=2", "model.width=2", "density.buffer=64", "density.chains=8"),
    *("density.steps=2", "n_init=1"),
]
RESUME = "run circles --out run --resume " + " ".join(f"--set '{setting}'" for setting in TINY)
Damage = Callable[[Path], object]


@functools.cache
def finished() -> Path:
    """A finished run, made once."""
    return _run("circles", TINY)


@functools.cache
def finished_on_images() -> Path:
    """A finished run on images, made once."""
    return _run("digits-energy", TINY_IMAGES)


def _run(name: str, settings: list[str]) -> Path:
    path = Path(tempfile.mkdtemp()) / "run"
    atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
    execute(prepare(parse(override(preset(name), settings))), RunDirectory.create(path))
    return path


def copied(damage: Damage, of: Callable[[], Path] = finished) -> Damage:
    """A finished run with one thing wrong."""

    def make(path: Path) -> None:
        shutil.copytree(of(), path)
        damage(path)

    return make


def gone(name: str) -> Damage:
    return lambda run: (run / name).unlink()


def holds(name: str, content: str | bytes) -> Damage:
    return lambda run: (run / name).write_bytes(content.encode() if isinstance(content, str) else content)


def edited(name: str, change: Callable[[Any], object]) -> Damage:
    """A JSON file with another content."""

    def make(run: Path) -> None:
        record = json.loads((run / name).read_text())
        change(record)
        (run / name).write_text(json.dumps(record))

    return make


def flipped(name: str, place: float) -> Damage:
    """A file with one bit the other way round."""

    def make(run: Path) -> None:
        content = bytearray((run / name).read_bytes())
        content[int(place * len(content))] ^= 4
        (run / name).write_bytes(content)

    return make


def cut(name: str) -> Damage:
    def make(run: Path) -> None:
        content = (run / name).read_bytes()
        (run / name).write_bytes(content[: len(content) // 2])

    return make


def folder(name: str) -> Damage:
    def make(run: Path) -> None:
        (run / name).unlink()
        (run / name).mkdir()

    return make


def weights(change: Callable[[dict[str, torch.Tensor]], object], *, kept: bool = False) -> Damage:
    """Other weights, as a run of 0.1.0 has them: without a checksum, unless it is kept."""

    def make(run: Path) -> None:
        path = run / "model" / "model.safetensors"
        tensors = {name: x.clone() for name, x in load_file(path).items()}
        change(tensors)
        save_file(tensors, path)
        if not kept:
            edited("model/config.json", lambda record: record.pop("checksum"))(run)

    return make


def points(change: Callable[[dict[str, torch.Tensor]], object]) -> Damage:
    def make(run: Path) -> None:
        path = run / "model" / "points.safetensors"
        tensors = {name: x.clone() for name, x in load_file(path).items()}
        change(tensors)
        save_file(tensors, path)
        edited("results.json", lambda record: record.pop("checksums"))(run)

    return make


def states(change: Callable[[dict[str, Any]], Any]) -> Damage:
    """Every checkpoint with another content under a right digest."""

    def make(run: Path) -> None:
        checkpoints = RunDirectory(run).checkpoints
        state = checkpoints.load()
        assert state is not None
        changed = change(state)
        for path in checkpoints.files():
            path.unlink()
        checkpoints.save(state if changed is None else changed)

    return make


def _report(name: str, damage: Damage, says: str) -> Typed:
    return Typed(name, "report run", says, {"run": copied(damage)})


def _resume(name: str, damage: Damage, says: str) -> Typed:
    return Typed(name, RESUME, says, {"run": copied(damage)})


def _put(name: str, value: Any) -> Callable[[Any], object]:
    """``a.b.c`` of a record becomes a value."""
    *way, last = name.split(".")

    def change(record: Any) -> None:
        for key in way:
            record = record[key]
        record[last] = value

    return change


def _chains(x: torch.Tensor) -> Callable[[Any], object]:
    """A state with other chains, in the form that it keeps them in."""

    def change(state: Any) -> None:
        kept = state["state"]["density"]["chains"]
        kept[next(iter(kept))] = x

    return change


MODEL, POINTS = "model/model.safetensors", "model/points.safetensors"
REPORTS = [
    Typed("a folder that is not there", "report run", "is not a run: it holds no config.yaml"),
    Typed("a file for a run", "report run", "is not a run", {"run": "text"}),
    _report("settings gone", gone("config.yaml"), "is not a run"),
    _report("settings cut", cut("config.yaml"), "config.yaml"),
    _report("settings empty", holds("config.yaml", ""), "must hold sections and keys"),
    _report("settings of no text", holds("config.yaml", bytes(range(256))), "cannot be read as YAML"),
    _report("settings of other data", holds("config.yaml", "data: {name: moons}\n"), "are not those of config.yaml"),
    _report("results gone", gone("results.json"), "has no results yet"),
    _report("results empty", holds("results.json", ""), "results.json' cannot be used: it is no JSON"),
    _report("results cut", cut("results.json"), "it is no JSON"),
    _report("results that are a list", holds("results.json", "[1]"), "it must hold names and values"),
    _report("results of nested brackets", holds("results.json", "[" * 100_000), "it is no JSON"),
    _report("results without figures", edited("results.json", lambda r: r.pop("metrics")), "metrics is missing"),
    _report("a figure in words", edited("results.json", _put("metrics.nmi", "high")), "results.json'"),
    _report("a figure that is a list", edited("results.json", _put("metrics.nmi", [1])), "results.json'"),
    _report("a figure beyond all", edited("results.json", _put("metrics.nmi", 10**400)), "results.json'"),
    _report("no total of seconds", edited("results.json", _put("seconds", {})), "results.json'"),
    _report("tries in words", edited("results.json", _put("restarts.selection_losses", ["a"])), "cannot be used"),
    _report("a density in words", edited("results.json", _put("density", "good")), "density"),
    _report("results that are a folder", folder("results.json"), "has no results yet"),
    _report("a log of no JSON", holds("metrics.jsonl", "{\n{\n"), "line 1: it is no JSON"),
    _report("a log of bytes", holds("metrics.jsonl", bytes(range(256)) * 2), "line 1: it is no JSON"),
    _report("a log of numbers", holds("metrics.jsonl", "1\n2\n"), "line 1: it must hold names and values"),
    _report("a log without stages", holds("metrics.jsonl", '{"iteration": 1}\n'), "line 1: stage is missing"),
    _report("a log of words", holds("metrics.jsonl", '{"stage": "a", "iteration": 1, "x": "y"}\n'), "'x' is no number"),
    _report(
        "an event without its kind",
        holds("metrics.jsonl", '{"stage": "a", "iteration": 1, "event": "guard"}\n'),
        "does not say what happened",
    ),
    _report("an evaluation of no JSON", holds("evaluation.json", "{"), "evaluation.json' cannot be used"),
    _report("an evaluation in words", holds("evaluation.json", '{"ood": 5}'), "evaluation.json' cannot be used"),
    _report("no shape of the model", gone("model/config.json"), "it is not there"),
    _report("a shape of no JSON", holds("model/config.json", "{"), "it is no JSON"),
    _report("a shape of nothing", edited("model/config.json", _put("shape", [])), "config.json'"),
    _report("a shape that is huge", edited("model/config.json", _put("shape", [10**12])), "config.json'"),
    _report("a box turned round", edited("model/config.json", _put("low", [9.0, 9.0])), "the ends of a box"),
    _report("a box in words", edited("model/config.json", _put("low", ["a", "b"])), "config.json'"),
    _report("a billion clusters", edited("model/config.json", _put("clusters", 10**9)), "of memory"),
    _report(
        "as many clusters as there are not",
        edited("model/config.json", _put("clusters", 5)),
        "not those of the network",
    ),
    _report("a model of other settings", edited("model/config.json", _put("config.seed", 9)), "of config.yaml"),
    _report(
        "a network of other settings", edited("model/config.json", _put("config.model.hidden", [9])), "not those of"
    ),
    _report("a model of a later version", edited("model/config.json", _put("version", 9)), "of a later gedi"),
    _report("a version in words", edited("model/config.json", _put("version", "two")), "of a later gedi"),
    _report("a model of no settings", edited("model/config.json", _put("config", {"a": 1})), "unknown key"),
    _report("no model", gone(MODEL), "has no model yet"),
    _report("a model cut", cut(MODEL), "checksum is not the one kept"),
    _report("a bit of a weight", flipped(MODEL, 0.9), "checksum is not the one kept"),
    _report("a bit of a name", flipped(MODEL, 0.1), "checksum is not the one kept"),
    _report(
        "weights exchanged",
        weights(lambda w: w.update({k: x + 1 for k, x in w.items() if x.is_floating_point()}), kept=True),
        "checksum is not the one kept",
    ),
    _report(
        "an old model cut",
        lambda run: (weights(lambda w: None)(run), cut(MODEL)(run)),
        "model.safetensors' cannot be used",
    ),
    _report("an old model that lacks a weight", weights(lambda w: w.pop(min(w))), "not those of the network"),
    _report(
        "an old model of another shape",
        weights(lambda w: w.update({min(w): torch.zeros(3)})),
        "not those of the network",
    ),
    _report("no points", gone(POINTS), "points.safetensors' cannot be used: it is not there"),
    _report("a bit of the points", flipped(POINTS, 0.9), "checksum is not the one kept"),
    _report("points without clusters", points(lambda p: p.pop("predicted")), "it holds no predicted"),
    _report("points without samples", points(lambda p: p.pop("samples")), "it holds no samples"),
    _report("too few clusters", points(lambda p: p.update(shown=p["shown"][:5].clone())), "one cluster for each"),
]
EVALUATIONS = [
    Typed(f"{name}, evaluated", "evaluate run", says, {"run": copied(damage, of=finished_on_images)})
    for name, damage, says in (
        ("settings of other data", holds("config.yaml", "data: {name: moons}\n"), "takes runs on images"),
        ("no model", gone(MODEL), "has no model yet"),
        ("a bit of a weight", flipped(MODEL, 0.9), "checksum is not the one kept"),
        ("a shape of no JSON", holds("model/config.json", "{"), "it is no JSON"),
        ("a fingerprint of no JSON", holds("data.json", "{"), "data.json' cannot be used"),
        ("a fingerprint in words", holds("data.json", '{"train": 5}'), "data.json' cannot be used"),
        ("data that changed", edited("data.json", _put("test.shape", [9, 1, 8, 8])), "test points instead of 9"),
    )
]
RESUMED = [
    _resume("settings cut, resumed", cut("config.yaml"), "config.yaml'"),
    _resume(
        "settings that changed", holds("config.yaml", "seed: 3\n"), "--resume needs the settings the run began with"
    ),
    _resume("a log gone", gone("metrics.jsonl"), "lines 0 are left"),
    _resume("a log cut", cut("metrics.jsonl"), "are left"),
    _resume("a log of no JSON, resumed", holds("metrics.jsonl", "{\n" * 9), "line 1: it is no JSON"),
    _resume("a fingerprint in words, resumed", holds("data.json", '{"train": 5}'), "data.json' cannot be used"),
    _resume("a fingerprint of no JSON, resumed", holds("data.json", "{"), "data.json' cannot be used"),
    _resume(
        "data that changed, resumed",
        edited("data.json", _put("train.shape", [61, 2])),
        "60 training points instead of 61",
    ),
    _resume("a state that is a list", states(lambda s: [1]), "holds no state"),
    _resume("a state that is empty", states(lambda s: {}), "lacks 'logged'"),
    _resume("a state without its model", states(lambda s: s["state"].pop("model") and None), "lacks 'model'"),
    _resume("a state without its streams", states(lambda s: s.pop("streams") and None), "lacks 'streams'"),
    _resume("a state of other settings", states(_put("config.seed", 5)), "is of a run with other settings"),
    _resume(
        "a model of another shape",
        states(lambda s: s["state"]["model"].update({min(s["state"]["model"]): torch.zeros(3)})),
        "wrong 'state.model.",
    ),
    _resume(
        "a model with a weight too many",
        states(lambda s: s["state"]["model"].update(more=torch.zeros(3))),
        "wrong 'state.model'",
    ),
    _resume("a model of text", states(_put("state.model", "weights")), "wrong 'state.model'"),
    _resume("a state of 0.1", states(lambda s: {"leg": 1, "chains": 2, "model": 3}), "is of gedi 0.1, which this"),
    _resume("chains of another shape", states(_chains(torch.zeros(20, 3))), "wrong 'state.density.chains"),
    _resume("chains of whole numbers", states(_chains(torch.zeros(20, 2, dtype=torch.long))), "wrong 'state.density"),
    _resume("no chains", states(_put("state.density", None)), "wrong 'state.density'"),
    _resume("what an objective never carries", states(_put("state.objectives", 5)), "wrong 'objectives'"),
    _resume("an iteration in words", states(_put("state.iteration", "two")), "wrong 'state.iteration'"),
    _resume("an iteration below none", states(_put("state.iteration", -1)), "wrong 'state.iteration'"),
    _resume("an iteration after the end", states(_put("state.iteration", 10**9)), "wrong 'state.iteration'"),
    _resume("a leg after the last", states(_put("course.at", 99)), "wrong 'course.at'"),
    _resume("a leg in words", states(_put("course.at", "last")), "wrong 'course.at'"),
    _resume("a course of nothing", states(_put("course", 5)), "wrong 'course'"),
    _resume("losses in words", states(_put("course.selection_losses", ["low"])), "wrong 'course.selection_losses'"),
    _resume("a best try of nothing", states(_put("course.best", {})), "lacks 'model'"),
    _resume("walks of nothing", states(_put("walks", {})), "lacks 'frozen'"),
    _resume("ends of other points", states(_put("walks.ends", torch.zeros(3, 2))), "wrong 'walks.ends'"),
    _resume("a try there is not", states(_put("streams.name", "restart/7")), "wrong 'streams.name'"),
    _resume("streams in a list", states(_put("streams.name", ["restart/0"])), "wrong 'streams.name'"),
    _resume(
        "streams of nothing",
        states(_put("streams.shared.batch", torch.zeros(3, dtype=torch.uint8))),
        "wrong 'streams.shared.batch'",
    ),
    _resume(
        "an order of batches of others", states(_put("batches.order", torch.full((60,), 99))), "wrong 'batches.order'"
    ),
    _resume("a place in no order", states(_put("batches.cursor", 10**6)), "wrong 'batches.cursor'"),
    _resume("an optimiser of nothing", states(_put("state.optimizer", {})), "lacks 'param_groups'"),
    _resume(
        "moments of another shape",
        states(lambda s: s["state"]["optimizer"]["state"][0].update(exp_avg=torch.zeros(1))),
        "wrong 'state.optimizer'",
    ),
    _resume("averages of nothing", states(_put("state.average", [1])), "wrong 'state.average'"),
    _resume("a guard of nothing", states(_put("guard", None)), "wrong 'guard'"),
    _resume("seconds in words", states(_put("seconds", {"stage1": "long"})), "wrong 'seconds'"),
    _resume("a number of lines in words", states(_put("logged", "many")), "lacks 'logged'"),
    _resume("more lines than there are", states(_put("logged", 99)), "of 99 lines"),
]
FOLDERS = [
    Typed(
        "a run there already", RESUME.replace("--resume", ""), "already holds files", {"run": copied(lambda run: None)}
    ),
    Typed(
        "somebody's folder",
        RESUME.replace("--resume", "--overwrite"),
        "holds no config.yaml",
        {"run/letter.txt": "Dear"},
    ),
    Typed("a file for a folder", RESUME, "must name a directory", {"run": "text"}),
]
CALLS = REPORTS + EVALUATIONS + RESUMED + FOLDERS
