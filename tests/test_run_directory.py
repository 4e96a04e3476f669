"""A run directory: one writes at a time, data are the same or refused, checkpoints fit or are passed over."""

import json
import multiprocessing
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from gedi import cli, report
from gedi.config import override, parse
from gedi.directory import RunDirectory, default_directory
from gedi.errors import UserError
from gedi.fitting import prepare, train
from gedi.presets import PRESETS, preset
from gedi.report import write_report
from gedi.runs import execute
from gedi.training.restoring import refuse_misfit

TINY = [
    *("data.n_train=60", "data.n_test=20", "stage1.iterations=6", "stage2.iterations=6", "walk.steps=1"),
    *("stage1.batch_size=20", "stage2.batch_size=20", "density.buffer=20", "density.chains=10"),
    *("density.steps=1", "log_every=1", "n_init=2", "good_enough=0", "model.hidden=[8]"),
]
OPTIONS = [word for setting in TINY for word in ("--set", setting)]


def tiny(*more):
    return prepare(parse(override(preset("circles"), [*TINY, *more])))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run with two checkpoints."""
    directory = RunDirectory.create(tmp_path_factory.mktemp("run") / "run")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("gedi.fitting.CHECKPOINT_EVERY", 5)
        execute(tiny(), directory)
    return directory


@pytest.fixture
def run(finished, tmp_path):
    """A copy of it."""
    return RunDirectory(Path(shutil.copytree(finished.path, tmp_path / "run")))


@pytest.fixture
def gedi(monkeypatch, gedi):
    monkeypatch.setattr("gedi.report.write_report", lambda directory: directory.write("report.html", "drawn"))
    return gedi


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- one writes at a time ---


def program(args, output, begun, go):
    """The program in a process of its own, which waits within its training until it may go on."""
    with open(output, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    append = RunDirectory.append_metrics

    def pause(self, record):
        append(self, record)
        begun.set()
        go.wait(60)

    RunDirectory.append_metrics = pause
    report.write_report = lambda directory: directory.write("report.html", "drawn")
    sys.argv = ["gedi", "run", "circles", *args, *OPTIONS]
    cli.main()


@pytest.fixture
def start(tmp_path):
    """Begins the program in another process and waits until it trains; what it says is in a file beside the run."""
    context, started = multiprocessing.get_context("forkserver"), []
    context.set_forkserver_preload(["gedi.cli"])

    def begin(*args):
        begun, go = context.Event(), context.Event()
        output = tmp_path / f"output{len(started)}"
        process = context.Process(target=program, args=([*map(str, args)], output, begun, go))
        process.start()
        started.append(process)
        while process.is_alive() and not begun.wait(0.05):
            pass
        return process, go, output

    yield begin
    for process in started:
        process.kill()
        process.join(10)


@pytest.mark.parametrize("wish", ["--resume", "--overwrite"])
def test_of_two_processes_in_one_directory_the_second_is_refused_and_touches_nothing(start, tmp_path, wish):
    path = tmp_path / "run"
    first, go, output = start("--out", path, wish)
    assert first.is_alive(), output.read_text()
    before = contents(path)
    second, _, said = start("--out", path, wish)
    second.join(60)
    assert second.exitcode == 2
    assert said.read_text() == (
        f"gedi: {str(path)!r} is in use by another process: wait until it ends, or choose another directory\n"
    )
    assert contents(path) == before
    go.set()
    first.join(60)
    assert first.exitcode == 0, output.read_text()
    iterations = [(line["stage"], line.get("restart"), line["iteration"]) for line in RunDirectory(path).metrics()]
    assert len(iterations) == len(set(iterations)) == 6 + 2 * 6


def test_the_lock_of_a_process_that_was_killed_is_no_obstacle(start, tmp_path):
    path = tmp_path / "run"
    first, _, _ = start("--out", path)
    os.kill(first.pid, signal.SIGKILL)
    first.join(10)
    second, go, output = start("--out", path, "--resume")
    assert second.is_alive(), output.read_text()
    go.set()
    second.join(60)
    assert second.exitcode == 0, output.read_text()


def test_a_directory_in_use_may_be_read_but_not_evaluated_into(run):
    with run.held():
        other = RunDirectory(run.path)
        assert other.results()["metrics"]
        assert other.load_checkpoint() is not None
        other.fitted()
        with pytest.raises(UserError, match="in use by another process"), other.held():
            pass
    with other.held():  # and is free again
        pass


def test_a_failed_run_lets_go_of_the_directory(run, monkeypatch):
    def fail(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("gedi.runs.train", fail)
        with pytest.raises(KeyboardInterrupt):
            execute(tiny(), run)
    with RunDirectory(run.path).held():
        pass


# --- data ---


@pytest.fixture
def table(tmp_path):
    """A file of one's own, and the words that run it."""
    rows = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32)
    np.save(tmp_path / "mine.npy", rows)
    (tmp_path / "mine.yaml").write_text(
        f"data: {{name: file, path: {tmp_path / 'mine.npy'}}}\nmodel: {{clusters: 2}}\n"
    )
    words = [word for setting in TINY if not setting.startswith("data.") for word in ("--set", setting)]
    return rows, tmp_path / "mine.npy", ["run", tmp_path / "mine.yaml", "--out", tmp_path / "run", *words]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda x: x[:-20], "64 training points instead of 80; 16 test points instead of 20"),
        (lambda x: np.c_[x, x[:, :1]], "training points of shape (3,) instead of (2,)"),
        (lambda x: x[::-1], "other training points of the same number and shape"),
        (lambda x: np.where(np.arange(len(x))[:, None] == 7, 1, x), "points of the same number and shape"),
    ],
    ids=["fewer rows", "another column", "another order", "another row"],
)
def test_data_that_changed_are_told_by_resume_and_never_drawn(gedi, table, tmp_path, monkeypatch, change, says):
    rows, path, words = table
    assert gedi(*words)[0] == 0
    results = RunDirectory(tmp_path / "run").results()
    assert results["fingerprint"] == json.loads((tmp_path / "run" / "data.json").read_text())
    assert gedi(*words, "--resume")[0] == 0  # nothing changed yet
    np.save(path, change(rows))
    before = contents(tmp_path / "run")
    code, out, err = gedi(*words, "--resume")
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1
    assert contents(tmp_path / "run") == before
    kept = load_file(tmp_path / "run" / "model" / "points.safetensors")["test"]
    drawn = []
    monkeypatch.setattr("gedi.report.figures.scatter", lambda ax, points, *rest: drawn.append(points))
    monkeypatch.setattr("gedi.report.write_report", write_report)
    assert gedi("report", tmp_path / "run")[0] == 0
    assert torch.equal(drawn[0], kept)  # a report draws the points of the run, whatever became of the file


def test_a_run_that_kept_no_fingerprint_goes_on_and_says_so(gedi, run, capsys):
    (run.path / "data.json").unlink()
    results = run.results()
    del results["fingerprint"]
    run.write("results.json", json.dumps(results))
    run.data()  # a report of a run of 0.1.0
    code, _, err = gedi("run", "circles", "--out", run.path, "--resume", *OPTIONS)
    assert code == 0
    assert "kept no fingerprint of its data" in err
    assert run.fingerprint() is not None


# --- checkpoints ---


def drop(state, name):
    del state[name]


def weights(state):
    return state["state"]["model"]


def moments(state):
    return state["state"]["optimizer"]["state"]


def streams(state):
    return state["streams"]["shared"]


def moved(state, x):
    """Other chains, in the form that they are kept in."""
    kept = state["state"]["density"]["chains"]
    kept[next(iter(kept))] = x


DAMAGES = {
    "lacks a part": lambda state: drop(state, "batches"),
    "settings of text": lambda state: state.update(config="circles"),
    "other settings": lambda state: state["config"].update(seed=5),
    "weights of another shape": lambda state: weights(state).update({min(weights(state)): torch.zeros(3)}),
    "a weight too few": lambda state: drop(weights(state), min(weights(state))),
    "no chains": lambda state: state["state"].update(density=None),
    "chains of another shape": lambda state: moved(state, torch.zeros(20, 3)),
    "chains of text": lambda state: moved(state, "chains"),
    "an iteration of text": lambda state: state["state"].update(iteration="many"),
    "a leg that is not there": lambda state: state["course"].update(at=50),
    "a leg that may not have begun": lambda state: state["course"].update(begun=None),
    "moments of another shape": lambda state: moments(state)[0].update(exp_avg=torch.zeros(1)),
    "a stream of three bytes": lambda state: streams(state).update(batch=torch.zeros(3, dtype=torch.uint8)),
    "walks of text": lambda state: state.update(walks="walks"),
    "points that are not there": lambda state: state["batches"].update(order=torch.full((60,), 60)),
    "no guard": lambda state: state.update(guard=None),
    "averages of nothing": lambda state: state["state"].update(average=[None]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_checkpoint_that_is_whole_but_does_not_fit_is_passed_over_and_said(gedi, finished, run, damage):
    state = run.load_checkpoint()
    damage(state)
    run.checkpoints.save(state)
    newest = run.checkpoints.files()[-1]
    code, _, err = gedi("run", "circles", "--out", run.path, "--resume", *OPTIONS)
    assert code == 0, err
    assert err.startswith(f"gedi: {str(newest)!r} ")
    assert err.endswith("; the checkpoint before it is used\n")
    assert len(err.splitlines()) == 1
    model = "model/model.safetensors"
    assert (run.path / model).read_bytes() == (finished.path / model).read_bytes()


def test_every_state_of_a_healthy_training_fits(tmp_path, monkeypatch):
    monkeypatch.setattr("gedi.fitting.CHECKPOINT_EVERY", 1)
    states = []
    train(tiny(), lambda state: states.append(state))
    assert len(states) == 6 + 2 * 6
    fresh = tiny()
    for state in states:
        refuse_misfit(fresh.trainer, state)


def test_the_first_checkpoint_comes_early_and_the_next_ones_wait_longer(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("gedi.fitting.time.monotonic", lambda: clock[0])
    prepared, saved = tiny("stage1.iterations=200", "log_every=1000"), []
    step = prepared.trainer.step

    def slow(leg):
        clock[0] += 4.0
        step(leg)

    prepared.trainer.step = slow
    train(prepared, lambda state: saved.append(clock[0]))
    assert saved[0] <= 10
    waits = np.diff([0.0, *saved[:-1]])
    assert waits.tolist() == sorted(waits)
    assert waits[:5].tolist() == [8, 12, 20, 40, 60]
    assert max(waits) == 60


def test_a_step_of_a_minute_is_followed_by_a_checkpoint(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("gedi.fitting.time.monotonic", lambda: clock[0])
    prepared, places = tiny(), []
    step = prepared.trainer.step

    def slow(leg):
        clock[0] += 60.0
        step(leg)

    prepared.trainer.step = slow
    train(prepared, lambda state: places.append((state["course"]["at"], state["state"]["iteration"])))
    assert len(places) == 6 + 2 * 6


@pytest.mark.parametrize("left", [[], ["config.yaml"]], ids=["nothing", "its settings"])
def test_a_resumed_run_that_never_had_a_checkpoint_says_that_it_starts_anew(gedi, finished, tmp_path, left):
    path = tmp_path / "again"
    path.mkdir()
    for name in left:
        shutil.copy(finished.path / name, path)
    code, _, err = gedi("run", "circles", "--out", path, "--resume", *OPTIONS)
    assert code == 0
    assert err == f"gedi: {str(path)!r} {'has no checkpoint yet' if left else 'holds no run yet'}: it starts anew\n"


# --- the model ---


@pytest.mark.parametrize("place", [0.05, 0.3, 0.6, 0.95])
def test_a_flipped_bit_of_the_model_is_found(run, place):
    path = run.path / "model" / "model.safetensors"
    run.fitted()
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match="checksum is not the one kept") as told:
        run.fitted()
    assert "\n" not in str(told.value)


def test_a_model_without_a_checksum_is_loaded_as_it_is(run):
    path = run.path / "model" / "config.json"
    record = json.loads(path.read_text())
    del record["checksum"]
    path.write_text(json.dumps(record))
    weights = load_file(run.path / "model" / "model.safetensors")
    model = run.fitted().model
    assert all(torch.equal(x, weights[name]) for name, x in model.state_dict().items())
    save_file({name: x + 1 for name, x in weights.items()}, run.path / "model" / "model.safetensors")
    run.fitted()  # nothing tells


def test_resume_writes_a_damaged_model_again(gedi, finished, run):
    for name in ("model/model.safetensors", "model/points.safetensors", "results.json"):
        (run.path / name).write_bytes(b"x")
    assert gedi("run", "circles", "--out", run.path, "--resume", *OPTIONS)[0] == 0
    for name in ("model/model.safetensors", "model/points.safetensors"):
        assert (run.path / name).read_bytes() == (finished.path / name).read_bytes()


def test_a_log_that_is_being_written_is_read_up_to_its_last_whole_line(run):
    lines = run.metrics()
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"stage": "sta')
    assert run.metrics() == lines


# --- where it goes ---


def test_the_default_directory_lies_in_runs_whatever_the_preset():
    for name in [*PRESETS, "toy"]:
        path = default_directory(parse({"preset": name, "method": "no NF"}))
        assert path.parent == Path("runs")
        assert path.name == f"{name}-no-nf-seed0"


def test_the_settings_of_a_run_run_again(gedi, finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert gedi("run", finished.path / "config.yaml")[0] == 0
    again = RunDirectory.open(tmp_path / "runs" / "circles-gedi-seed0")
    model = "model/model.safetensors"
    assert (again.path / model).read_bytes() == (finished.path / model).read_bytes()
