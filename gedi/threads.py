"""How many threads the program computes with: what was asked for, what there is, what is fastest.

Only the program chooses; the library leaves PyTorch's threads as they are.
"""

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from statistics import median

import torch

from gedi.building import build_model
from gedi.claims import THREADS
from gedi.devices import processes_here
from gedi.directory import RunDirectory
from gedi.fitting import Prepared
from gedi.random import Streams

_GAIN = 0.9  # more threads must take at most this much of the time
_ROUNDS, _SECONDS = 8, 2.0  # of measuring, at most
_ASKED = os.environ.get("OMP_NUM_THREADS")  # as the program was started: launching processes sets it too


def begin() -> None:
    """One thread unless another number was asked for: most commands compute too little to share."""
    if not _ASKED:
        torch.set_num_threads(1)


def use_all() -> None:
    """A thread for each core that this process may use, unless another number was asked for."""
    if not _ASKED:
        torch.set_num_threads(available_cores())


def settle(prepared: Prepared, directory: RunDirectory, devices: int = 1) -> int:
    """Set the threads of a run's processes and keep their number with the run.

    What ``OMP_NUM_THREADS`` says counts. Else it is the number that the run began with, since sums that another number
    of threads makes differ in their last bits; else the fastest, measured on a network like the run's, thrown away.

    Args:
        prepared: the run, launched.
        directory: where it goes.
        devices: its processes on this machine, if not torchrun says how many.
    """
    processes = prepared.trainer.processes
    # a toy's second thread costs more in hand-over than it computes
    usual = 1 if prepared.config.model.of_rows else None
    kept = processes.of_first(lambda: _stored(directory)) or usual
    known = processes.of_first(lambda: torch.get_num_threads() if _ASKED else kept)
    if known is None:
        cores = max(1, available_cores() // processes_here(devices))
        known = processes.of_all(_best(prepared, cores))[0]  # all at once, as they will compute
    torch.set_num_threads(known)
    if processes.first and known != kept:
        directory.write(THREADS, json.dumps({"threads": known}) + "\n")
    return known


def available_cores(root: Path = Path("/")) -> int:
    """Cores that this process may use: those of the machine, less what its affinity and its cgroups leave out.

    Args:
        root: of the file system that says so.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, *(math.floor(quota) for quota in _quotas(root)), cores))


def fastest(candidates: Sequence[int], work: Callable[[], object]) -> int:
    """The number of threads with which some work takes the least time; fewer where more gain little.

    They take turns, so that a slow moment of the machine hits them all.
    """
    times: dict[int, list[float]] = {threads: [] for threads in candidates}
    began, rounds = time.perf_counter(), 0
    while rounds < 2 or (rounds < _ROUNDS and time.perf_counter() - began < _SECONDS):
        for threads in candidates:
            torch.set_num_threads(threads)
            start = time.perf_counter()
            work()
            times[threads].append(time.perf_counter() - start)
        rounds += 1
    best, *others = candidates
    for threads in others:
        if median(times[threads][1:]) < _GAIN * median(times[best][1:]):  # the first round warms up
            best = threads
    return best


def _best(prepared: Prepared, cores: int) -> int:
    if cores == 1 or prepared.trainer.fabric.device.type != "cpu":
        return cores
    candidates = [2**k for k in range(cores.bit_length()) if 2**k < cores]
    return fastest([*candidates, cores], _passes(prepared))


def _passes(prepared: Prepared) -> Callable[[], object]:
    """One pass each way of an encoder like the run's, on a batch like the run's; the run is not touched."""
    trainer, shape = prepared.trainer, prepared.data.train.shape[1:]
    encoder = build_model(prepared.method_config, shape, prepared.clusters, Streams(0)).encoder
    rows = min(leg.stage.batch_size for leg in trainer.course.legs) // trainer.processes.size
    x = torch.rand(rows, *shape, generator=torch.Generator().manual_seed(0))

    def work() -> None:
        with trainer.fabric.autocast():
            latent = encoder(x)
        torch.autograd.grad(latent.float().sum(), list(encoder.parameters()))

    return work


def _stored(directory: RunDirectory) -> int | None:
    """The number in the run's file, if it is one that this machine can have."""
    try:
        threads = json.loads((directory.path / THREADS).read_text())["threads"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return threads if type(threads) is int and 1 <= threads <= (os.cpu_count() or 1) else None


def _quotas(root: Path) -> Iterator[float]:
    """Cores that each cgroup of this process, and each one above it, may use on average."""
    for line in _lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        kinds, _, path = rest.partition(":")  # of version 1; version 2 names none
        if kinds and "cpu" not in kinds.split(","):
            continue
        top = root / "sys/fs/cgroup"
        for mounted in (top / kinds, top / "cpu") if kinds else (top, top / "unified"):
            # in a container the path may be the host's, while what is mounted begins at the container's own
            for folder in (PurePosixPath(path), *PurePosixPath(path).parents):
                yield from _quota(mounted / str(folder).lstrip("/"))


def _quota(folder: Path) -> Iterator[float]:
    allowed = [word for line in _lines(folder / "cpu.max")[:1] for word in line.split()]
    allowed = allowed or [*_lines(folder / "cpu.cfs_quota_us")[:1], *_lines(folder / "cpu.cfs_period_us")[:1]]
    if len(allowed) == 2 and all(word.strip().isdecimal() and int(word) > 0 for word in allowed):  # else no limit
        yield int(allowed[0]) / int(allowed[1])


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except (OSError, ValueError):
        return []
