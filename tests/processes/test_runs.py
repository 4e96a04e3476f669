"""Runs of two processes, as the program starts them: one writer, a loss told, exact resume, another number of them."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from gedi.directory import RunDirectory
from gedi.processes import Processes
from gedi.training.tree import own_tree

pytestmark = pytest.mark.slow
# as `gedi`, with frequent checkpoints and without pictures; Fabric starts this very file again for the second process
PROGRAM = """
from gedi import cli, fitting, report
fitting.CHECKPOINT_EVERY = 10
report.write_report = lambda directory: directory.write("report.html", "drawn")
cli.main()
"""
TINY = [
    *("moons", "data.n_train=200", "data.n_test=50", "stage1.iterations=40", "stage2.iterations=40"),
    *("walk.steps=2", "density.buffer=201", "log_every=2", "n_init=2", "good_enough=0", "guard.every=10"),
]


IMAGES = [
    *("digits-energy", "model.width=4", "model.latent=8", "model.projector=8", "model.embedding=8", "guard.every=10"),
    *("stage1.iterations=40", "stage1.batch_size=8", "stage2.iterations=40", "stage2.batch_size=32"),
    *("density.buffer=64", "density.chains=8", "density.steps=2", "log_every=10"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "program.py"
    path.write_text(PROGRAM)

    def start(out, *options, devices=2, launcher=(), settings=TINY, **variables):
        name, *changes = settings
        words = [name, "--out", str(out), *(word for change in changes for word in ("--set", change)), *options]
        number = [] if launcher else ["--devices", str(devices)]
        command = [sys.executable, *launcher, str(path), "run", *words, *number]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    return start


def finish(process):
    try:
        said = process.communicate(timeout=150)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, *said


def learnt(path):
    return [(path / name).read_bytes() for name in ("model/model.safetensors", "metrics.jsonl")]


@pytest.fixture(scope="module")
def whole(program, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    code, _, error = finish(program(path))
    assert code == 0, error
    return path


def chains_saved(directory):
    return len(own_tree(directory.load_checkpoint()["state"]["density"], Processes())["chains"].rows)


def lines(path):
    metrics = path / "metrics.jsonl"
    return metrics.read_bytes().count(b"\n") if metrics.is_file() else 0


def wait_for_lines(process, path, n):
    while process.poll() is None and lines(path) < n:
        time.sleep(0.01)


def children(process):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


@pytest.fixture(scope="module")
def cut(program, tmp_path_factory):
    """A run whose second process was killed on the way, and what the first said."""
    path = tmp_path_factory.mktemp("cut") / "run"
    process = program(path)
    wait_for_lines(process, path, 30)
    (second,) = children(process)
    os.kill(second, signal.SIGKILL)
    return path, finish(process)


def test_one_of_them_writes_and_both_train_one_model(whole):
    directory = RunDirectory.open(whole)
    assert directory.results()["processes"] == 2
    logged = [(r["stage"], r.get("restart"), r["iteration"]) for r in directory.metrics() if "event" not in r]
    assert len(logged) == len(set(logged)) == 3 * 20
    assert chains_saved(directory) == 201


def test_the_loss_of_a_process_is_told_and_the_run_goes_on_to_the_same_bytes(whole, cut, program, tmp_path):
    path, (code, _, error) = cut
    assert code == 4
    assert "gedi: another of the 2 processes is gone" in error
    assert "--resume" in error
    assert "Traceback" not in error
    shutil.copytree(path, tmp_path / "run")
    code, _, error = finish(program(tmp_path / "run", "--resume"))
    assert code == 0, error
    assert learnt(tmp_path / "run") == learnt(whole)


def test_a_run_of_two_goes_on_with_one_and_then_with_two_again(cut, program, tmp_path):
    shutil.copytree(cut[0], tmp_path / "run")
    alone = program(tmp_path / "run", "--resume", devices=1)
    wait_for_lines(alone, tmp_path / "run", 45)
    alone.send_signal(signal.SIGTERM)
    assert finish(alone)[0] == 143
    code, _, error = finish(program(tmp_path / "run", "--resume"))
    assert code == 0, error
    directory = RunDirectory.open(tmp_path / "run")
    assert directory.results()["metrics"]["clusters_used"] == 2
    assert lines(tmp_path / "run") == 3 * 20
    assert chains_saved(directory) == 201


def test_a_signal_to_one_stops_all_with_one_checkpoint_and_one_word(whole, program, tmp_path):
    path = tmp_path / "run"
    process = program(path)
    wait_for_lines(process, path, 15)
    (second,) = children(process)
    os.kill(second, signal.SIGTERM)
    code, _, error = finish(process)
    assert code in (130, 143)
    assert error.count("stopped; go on with:") == 1
    state = RunDirectory.open(path).load_checkpoint()
    assert state["logged"] == lines(path)
    code, _, error = finish(program(path, "--resume"))
    assert code == 0, error
    assert learnt(path) == learnt(whole)


def test_torchrun_starts_the_same_run(whole, program, tmp_path):
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    code, _, error = finish(program(tmp_path / "run", launcher=launcher))
    assert code == 0, error
    assert learnt(tmp_path / "run") == learnt(whole)


def test_two_machines_make_the_same_run(whole, program, tmp_path):
    """Two programs started by hand, as on two machines; only the first one's folder is written to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    paths = [tmp_path / "first", tmp_path / "second"]
    machines = [
        program(path, "--num-nodes", "2", devices=1, NODE_RANK=str(rank), **meeting) for rank, path in enumerate(paths)
    ]
    for code, _, error in map(finish, machines):
        assert code == 0, error
    assert learnt(paths[0]) == learnt(whole)
    assert not paths[1].exists()


def test_weights_spread_over_processes_train_alike(whole, program, tmp_path):
    code, _, error = finish(program(tmp_path / "run", "--strategy", "fsdp"))
    assert code == 0, error
    ours, theirs = ([json.loads(line) for line in learnt(path)[1].splitlines()] for path in (tmp_path / "run", whole))
    assert len(ours) == len(theirs)
    for a, b in zip(ours[:20], theirs[:20], strict=True):  # later on roundings grow
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-3)


def test_weights_spread_over_processes_train_on_images_too(program, tmp_path):
    """Two encoders, the guard's look at the energy, and prototypes that are merged by the first process."""
    code, _, error = finish(program(tmp_path / "run", "--strategy", "fsdp", settings=IMAGES))
    assert code == 0, error
    records = RunDirectory.open(tmp_path / "run").metrics()
    assert next(record["prototypes"] for record in records if record.get("event") == "merge") == "redrawn"
    gaps = [record["generative"] for record in records if "generative" in record]
    assert gaps[-1] < gaps[0]  # the energy learns to tell data from samples
    model = RunDirectory.open(tmp_path / "run").fitted().model
    assert all(x.isfinite().all() for x in model.state_dict().values())


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("stage1.batch_size=33", "a batch must give each of 2 processes as much, got 33 points in no group"),
        ("density.chains=65", "density.chains must give each of 2 processes as many, got 65; use 64"),
    ],
)
def test_what_cannot_be_shared_out_is_refused_and_nothing_is_written(program, tmp_path, setting, message):
    code, _, error = finish(program(tmp_path / "run", settings=[*TINY, setting]))
    assert code == 2
    assert message in error
    assert "Traceback" not in error
    assert not (tmp_path / "run").exists()
