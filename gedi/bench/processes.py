"""Two processes against one on the same batch: what a second core gains, and what joining costs.

    python -m gedi.bench.processes WORKLOAD THREADS

is one of the processes: it takes steps, and the first prints how long they took. The processes of a pair find each
other as those of torchrun do.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import torch

from gedi.bench.findings import Finding, LeftOut, speedup
from gedi.bench.timing import Effort, Turns
from gedi.bench.workloads import Workload, addition, images, toy
from gedi.ending import end_with, end_without_taking_apart, run_to_its_end

_ROUNDS = 3
_BETWEEN = 2  # steps from one look at the clock to the next
_WORKLOADS: dict[str, Callable[[], Workload]] = {
    "image step, F = 32, batch 32": lambda: images(32, "stage2.batch_size=32", "sampling.chains=32"),
    "addition step, 60 triplets": addition,
    "toy step, stage 2, batch 128": lambda: toy("stage2"),
}


def processes(effort: Effort) -> Iterator[Finding]:
    """Seconds a step, by the clock on the wall: what counts is when both are done."""
    name = "two processes against one"
    if effort.small:
        yield LeftOut(name, "starts programs for minutes: run without --quick")
        return
    if (os.cpu_count() or 1) < 2:
        yield LeftOut(name, "needs two cores")
        return
    for work in _WORKLOADS:
        seconds: dict[str, list[float]] = {"one": [], "two threads": [], "two": []}
        for _ in range(_ROUNDS):
            seconds["one"].append(_steps(work, 1, 1))
            seconds["two threads"].append(_steps(work, 1, 2))
            seconds["two"].append(_steps(work, 2, 1))
        turns = Turns(cpu=seconds, wall=seconds)
        yield speedup(turns, f"{work}, two processes of one thread", ("one process of one thread", "one"), "two")
        yield speedup(
            turns, f"{work}, two processes of one thread", ("one process of two threads", "two threads"), "two"
        )


def _steps(work: str, size: int, threads: int) -> float:
    """Seconds of a step in a number of processes."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    if size > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        group = {"WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        group |= {"TORCHELASTIC_RUN_ID": "bench", "GROUP_RANK": 0}
        environment |= {name: str(value) for name, value in group.items()}
    command = [sys.executable, "-m", "gedi.bench.processes", work, str(threads)]
    started = [
        subprocess.Popen(
            command,
            env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)} if size > 1 else environment,
            stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for rank in range(size)
    ]
    said = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise RuntimeError(f"a process of {work!r} ended with {[process.returncode for process in started]}")
    found: float = json.loads(said[0])["seconds"]
    return found


def _work(work: str, threads: int, turn: float = 3.0) -> None:
    """Take steps for a while; every process must take as many, so the first one's clock decides."""
    torch.set_num_threads(threads)
    load = _WORKLOADS[work]()
    torch.set_num_threads(threads)  # launching sets its own
    group = load.prepared.trainer.processes
    if group.size > 1:
        end_without_taking_apart(load)
    load.step()
    began, taken, going = time.perf_counter(), 0, True
    while going:
        for _ in range(_BETWEEN):
            load.step()
        taken += _BETWEEN
        going = group.of_all(time.perf_counter() - began < turn)[0]
    if group.first:
        print(json.dumps({"seconds": (time.perf_counter() - began) / taken}))


if __name__ == "__main__":
    end_with(run_to_its_end(lambda: _work(sys.argv[1], int(sys.argv[2]))))
