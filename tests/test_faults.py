"""Runs that are killed, whenever that is, and resumed end bit for bit as one that nothing befell.

``benchmarks/faults.py`` does the same with real programs, and as often as one likes.
"""

import multiprocessing
import os
import random
import signal
import sys
import time

import pytest

from gedi.directory import RunDirectory

RUNS = {
    "toy": [
        *("moons", "data.n_train=200", "data.n_test=50", "stage1.iterations=40", "stage2.iterations=40"),
        *("walk.steps=2", "density.buffer=200", "log_every=2", "n_init=2", "good_enough=0"),
    ],
    "images": [
        *("digits-energy", "model.width=4", "model.latent=8", "model.projector=8", "model.embedding=8"),
        *("stage1.iterations=40", "stage1.batch_size=8", "stage2.iterations=40", "stage2.batch_size=32"),
        *("density.buffer=64", "density.chains=8", "density.steps=2", "log_every=2"),
    ],
}


def program(args, output, renames):
    """The program in a process of its own, with frequent checkpoints; it may kill itself before its n-th rename."""
    with open(output, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    from gedi import cli, fitting, report
    from gedi.densities import energy

    fitting.CHECKPOINT_EVERY = 7
    fitting.FIRST_CHECKPOINT_SECONDS = 60.0  # a slow machine must not write more of them
    energy._FRESH_STEPS = 5
    report.write_report = lambda directory: directory.write("report.html", "drawn")
    replace, left = os.replace, [renames]

    def dangerous(source, target):
        left[0] = None if left[0] is None else left[0] - 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    os.replace = dangerous
    sys.argv = ["gedi", "run", *args]
    cli.main()


class Faulty:
    """A run in its folder, in processes that come from one which has imported everything already."""

    def __init__(self, kind, folder):
        name, *settings = RUNS[kind]
        self.path, self.output = folder / "run", folder / "output"
        self.args = [name, "--out", str(self.path), *(word for s in settings for word in ("--set", s))]
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["gedi.cli", "gedi.report"])

    def start(self, renames=None):
        # --resume begins the run if there is none
        process = self.context.Process(target=program, args=([*self.args, "--resume"], self.output, renames))
        process.start()
        return process

    def finish(self, process):
        process.join(60)
        return process.exitcode

    def learnt(self):
        return [(self.path / name).read_bytes() for name in ("model/model.safetensors", "metrics.jsonl")]

    def lines(self):
        path = self.path / "metrics.jsonl"
        return path.read_bytes().count(b"\n") if path.is_file() else 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What the runs learn if nothing befalls them, and their seconds."""

    def run(kind):
        if kind not in done:
            calm = Faulty(kind, tmp_path_factory.mktemp(kind))
            began = time.monotonic()
            process = calm.start()
            while process.is_alive() and not calm.path.is_dir():
                began = time.monotonic()  # of the run, not of the imports before it
                time.sleep(0.005)
            assert calm.finish(process) == 0, calm.output.read_text()
            done[kind] = (calm.learnt(), time.monotonic() - began)
        return done[kind]

    done = {}
    return run


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_killed_at_random_moments_ends_the_same(whole, tmp_path, kind):
    learnt, seconds = whole(kind)
    moments = random.Random(kind)
    run = Faulty(kind, tmp_path)
    for _ in range(3):
        process = run.start()
        time.sleep(moments.uniform(0, seconds))
        process.kill()
        assert run.finish(process) in (-signal.SIGKILL, 0)
    assert run.finish(run.start()) == 0, run.output.read_text()
    assert run.learnt() == learnt
    assert not list(run.path.rglob("*.tmp"))


def test_a_run_killed_between_a_write_and_its_rename_ends_the_same(whole, tmp_path):
    run = Faulty("toy", tmp_path)
    found = []
    # config.yaml, data.json, metrics.jsonl, the third checkpoint, ...: once the first two are there they stay
    for renames in (1, 2, 2, 4, 12, 9, 3):
        assert run.finish(run.start(renames)) == -signal.SIGKILL
        found.append([path.name for path in run.path.rglob("*.tmp")])
    assert found[:4] == [["config.yaml.tmp"], ["data.json.tmp"], ["metrics.jsonl.tmp"], ["000003.pt.tmp"]]
    assert all(found)
    assert run.finish(run.start()) == 0, run.output.read_text()
    assert run.learnt() == whole("toy")[0]
    assert not list(run.path.rglob("*.tmp"))


def test_a_run_killed_after_its_training_ends_the_same(whole, tmp_path):
    run = Faulty("toy", tmp_path)
    renames, left = 3 + 18 + 1, []  # 120 iterations make 18 checkpoints; then come the model and what was measured
    for _ in range(5):
        assert run.finish(run.start(renames)) == -signal.SIGKILL
        left += [path.name for path in run.path.rglob("*.tmp")]
        renames = 2 + len(left)
    assert left[0] == "model.safetensors.tmp"
    assert {"config.json.tmp", "points.safetensors.tmp", "results.json.tmp", "report.html.tmp"} <= set(left)
    assert run.finish(run.start()) == 0, run.output.read_text()
    assert run.learnt() == whole("toy")[0]


def test_signals_write_a_checkpoint_and_say_how_to_go_on(whole, tmp_path):
    run = Faulty("toy", tmp_path)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        before, process = run.lines(), run.start()
        while process.is_alive() and run.lines() < before + 3:
            time.sleep(0.005)
        os.kill(process.pid, number)
        assert run.finish(process) == code
        said = run.output.read_text().splitlines()[-1]
        assert said.startswith(f"stopped; go on with: gedi run moons --out {run.path} ")
        assert said.endswith(" --resume")
        directory = RunDirectory.open(run.path)
        state = directory.load_checkpoint()
        assert (state["course"]["at"], state["state"]["iteration"]) != (0, 0)
        assert state["logged"] == len(directory.metrics())  # not one iteration is lost
    assert run.finish(run.start()) == 0, run.output.read_text()
    assert run.learnt() == whole("toy")[0]
