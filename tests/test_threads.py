"""How many threads a run gets: what was asked for, what the machine leaves it, what is fastest."""

import json
import os
import subprocess
import sys
import time

import pytest
import torch

from gedi import claims, threads
from gedi.config import override, parse
from gedi.directory import RunDirectory
from gedi.errors import UserError
from gedi.fitting import prepare
from gedi.presets import preset
from gedi.processes import Processes

IMAGES = (
    "stage1.iterations=2", "stage2.iterations=4", "model.width=2", "density.buffer=64", "density.chains=8",
    "density.steps=2",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _as_they_were():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def unasked(monkeypatch):
    monkeypatch.setattr(threads, "_ASKED", None)


@pytest.fixture
def eight_cores(unasked, monkeypatch):
    monkeypatch.setattr(threads, "available_cores", lambda: 8)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)


@pytest.fixture(scope="module")
def images():
    return prepare(parse(override(preset("digits-energy"), IMAGES)))


@pytest.fixture(scope="module")
def toy():
    return prepare(parse(override(preset("moons"), ["data.n_train=200", "density.buffer=200"])))


@pytest.fixture
def directory(tmp_path):
    return RunDirectory.create(tmp_path / "run")


def machine(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V2 = {"proc/self/cgroup": "0::/user/job\n"}
V1 = {"proc/self/cgroup": "5:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n1:cpuset:/docker/ab\n"}


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 6),
        (V2 | {"sys/fs/cgroup/user/job/cpu.max": "max 100000\n"}, 6),
        (V2 | {"sys/fs/cgroup/user/job/cpu.max": "300000 100000\n"}, 3),
        (V2 | {"sys/fs/cgroup/user/job/cpu.max": "250000 100000\n"}, 2),  # half a core is none to count on
        (V2 | {"sys/fs/cgroup/user/job/cpu.max": "50000 100000\n"}, 1),
        (V2 | {"sys/fs/cgroup/user/job/cpu.max": "900000 100000\n"}, 6),
        (V2 | {"sys/fs/cgroup/user/cpu.max": "200000 100000\n", "sys/fs/cgroup/user/job/cpu.max": "max 100000"}, 2),
        (V2 | {"sys/fs/cgroup/cpu.max": "400000 100000\n"}, 4),  # a container's own, under the host's name
        (V2 | {"sys/fs/cgroup/user/job/cpu.max": "nonsense\n"}, 6),
        (V2 | {"sys/fs/cgroup/user/job/cpu.max": "100000 0\n"}, 6),
        (V2 | {"sys/fs/cgroup/other/cpu.max": "100000 100000\n"}, 6),
        (
            V1
            | {
                "sys/fs/cgroup/cpu,cpuacct/docker/ab/cpu.cfs_quota_us": "400000\n",
                "sys/fs/cgroup/cpu,cpuacct/docker/ab/cpu.cfs_period_us": "200000\n",
            },
            2,
        ),
        (V1 | {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 3),
        (V1 | {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, 6),
        (V1 | {"sys/fs/cgroup/memory/docker/ab/cpu.cfs_quota_us": "100000"}, 6),
    ],
)
def test_cores_are_those_that_affinity_and_cgroups_leave(files, cores, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(6)), raising=False)
    assert threads.available_cores(machine(tmp_path, files)) == cores


def test_where_there_is_no_affinity_the_machine_counts(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert threads.available_cores(tmp_path) == 5


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux pins processes")
def test_a_process_pinned_to_one_core_has_one():
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert threads.available_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


def taking(seconds):
    """Work that takes as long as is told for each number of threads."""
    return lambda: time.sleep(seconds[torch.get_num_threads()])


@pytest.mark.parametrize(
    ("seconds", "best"),
    [
        ({1: 0.02, 2: 0.011, 4: 0.006}, 4),
        ({1: 0.005, 2: 0.02, 4: 0.02}, 1),  # a machine that is busy
        ({1: 0.02, 2: 0.01, 4: 0.02}, 2),
        ({1: 0.0200, 2: 0.0198, 4: 0.0199}, 1),  # hardly a gain: the others may have the cores
    ],
)
def test_the_fastest_number_is_taken_and_the_fewest_of_equals(seconds, best):
    assert threads.fastest(list(seconds), taking(seconds)) == best


def test_a_slow_moment_of_the_machine_decides_nothing():
    calls = iter(range(1000))

    def work():
        time.sleep(0.1 if next(calls) in (1, 3) else 0.02 / torch.get_num_threads())  # two threads hit it twice

    assert threads.fastest([1, 2], work) == 2


def test_measuring_ends_although_the_work_is_long(monkeypatch):
    monkeypatch.setattr(threads, "_SECONDS", 0.1)
    calls = []

    def work():
        calls.append(torch.get_num_threads())
        time.sleep(0.06)

    threads.fastest([1, 2], work)
    assert calls == [1, 2, 1, 2]


def test_candidates_go_up_to_the_cores(images, directory, eight_cores, monkeypatch):
    asked = []
    monkeypatch.setattr(threads, "fastest", lambda candidates, work: asked.append(candidates) or 4)
    assert threads.settle(images, directory) == torch.get_num_threads() == 4
    for devices in (2, 3, 8):
        (directory.path / claims.THREADS).unlink()
        threads.settle(images, directory, devices)
    assert asked == [[1, 2, 4, 8], [1, 2, 4], [1, 2]]
    assert torch.get_num_threads() == 1  # eight processes: a core each, nothing to measure


def test_the_number_is_kept_with_the_run_and_measured_once(images, directory, eight_cores, monkeypatch):
    monkeypatch.setattr(threads, "fastest", lambda candidates, work: 2)
    threads.settle(images, directory)
    assert json.loads((directory.path / claims.THREADS).read_text()) == {"threads": 2}
    monkeypatch.setattr(threads, "fastest", lambda candidates, work: 8)  # a resumed run meets another machine's mood
    torch.set_num_threads(1)
    assert threads.settle(images, directory) == torch.get_num_threads() == 2


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"threads": 0}', '{"threads": "2"}', '{"threads": 99}', "\xff"])
def test_a_number_that_cannot_be_is_measured_again(images, directory, eight_cores, monkeypatch, text):
    (directory.path / claims.THREADS).write_bytes(text.encode("latin-1"))
    monkeypatch.setattr(threads, "fastest", lambda candidates, work: 4)
    assert threads.settle(images, directory) == 4


def test_what_was_asked_for_counts_and_is_kept(images, directory, eight_cores, monkeypatch):
    directory.write(claims.THREADS, '{"threads": 4}')
    monkeypatch.setattr(threads, "_ASKED", "3")
    torch.set_num_threads(3)  # as PyTorch begins with OMP_NUM_THREADS=3
    threads.begin()
    threads.use_all()
    assert threads.settle(images, directory) == torch.get_num_threads() == 3
    assert json.loads((directory.path / claims.THREADS).read_text()) == {"threads": 3}


def test_points_in_the_plane_take_one_thread_unmeasured(toy, directory, eight_cores, monkeypatch):
    monkeypatch.setattr(threads, "fastest", pytest.fail)
    assert threads.settle(toy, directory) == torch.get_num_threads() == 1
    assert not (directory.path / claims.THREADS).exists()  # nothing to remember
    torch.set_num_threads(2)
    monkeypatch.setattr(threads, "_ASKED", "2")
    threads.settle(toy, directory)
    monkeypatch.setattr(threads, "_ASKED", None)
    assert threads.settle(toy, directory) == 2  # a run that began with two goes on with two


@pytest.mark.parametrize("left", [claims.THREADS, f"{claims.THREADS}.tmp"])
def test_a_run_killed_once_its_threads_are_known_can_begin_again(directory, left):
    directory.write(left, '{"threads": 1}')
    RunDirectory.create(directory.path)
    directory.write("report.html", "")
    with pytest.raises(UserError, match="already holds files"):
        RunDirectory.create(directory.path)


def test_evaluating_takes_the_cores_there_are_and_other_commands_one(eight_cores):
    threads.use_all()
    assert torch.get_num_threads() == 8
    threads.begin()
    assert torch.get_num_threads() == 1


def test_measuring_leaves_the_run_as_it_was(directory, eight_cores):
    measured, other = (prepare(parse(override(preset("digits-energy"), IMAGES))) for _ in range(2))
    threads.settle(measured, directory)
    torch.set_num_threads(1)
    for run in (measured, other):
        run.trainer.fit()
    ours, theirs = measured.trainer.model.state_dict(), other.trainer.model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_the_first_process_chooses_for_all(images, directory, eight_cores, monkeypatch):
    class Second(Processes):
        def of_first(self, make):
            return None  # it has no number yet

        def of_all(self, thing):
            return [2, thing]

    monkeypatch.setattr(threads, "fastest", lambda candidates, work: 4)
    monkeypatch.setattr(images.trainer, "processes", Second())
    assert threads.settle(images, directory, devices=2) == torch.get_num_threads() == 2


PROGRAM = """
import sys
from gedi import runs
runs.execute = lambda *given, **named: sys.exit()  # everything but the training itself
from gedi.cli import main
main()
"""


@pytest.mark.parametrize(("asked", "expected"), [("2", 2), (None, 1)])
def test_the_program_takes_what_the_environment_asks_for(asked, expected, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment |= {"OMP_NUM_THREADS": asked} if asked else {}
    command = [sys.executable, "-c", PROGRAM, "run", "circles", "--out", tmp_path / "run"]
    subprocess.run(command, env=environment, check=True)
    kept = tmp_path / "run" / claims.THREADS
    assert (json.loads(kept.read_text()) if kept.exists() else {"threads": 1}) == {"threads": expected}


def test_the_library_leaves_the_threads_as_they_are(tmp_path):
    before = 3
    torch.set_num_threads(before)
    prepare(parse(override(preset("digits-energy"), IMAGES))).trainer.fit(stop_after=1)
    assert torch.get_num_threads() == before
