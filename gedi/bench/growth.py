"""How the cost of a step grows with T, SGLD moves, batch, clusters and dimensions, and memory with iterations."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch

from gedi.bench.findings import Figure, Finding, LeftOut
from gedi.bench.findings import growth as grown
from gedi.bench.timing import Effort, in_turns
from gedi.bench.workloads import Workload, images, table, toy
from gedi.ending import ctrl_c_held, ended_with_this_one

_WIDTH = 16  # F of the image steps
_STATM = Path("/proc/self/statm")


def growth(effort: Effort) -> Iterator[Finding]:
    """A straight line through each, with its R^2."""
    small = ("stage2.batch_size=16", "sampling.chains=16") if effort.small else ()
    moves = (1, 5, 10) if effort.small else (1, 10, 20, 40)
    image, points = f"image step, F = {_WIDTH}", "toy step, stage 2"
    yield _grows(image, "walk moves T", moves, lambda n: _moving(1, n, *small), effort)
    yield _grows(image, "SGLD moves", moves, lambda n: _moving(n, 1, *small), effort)
    yield _grows(
        image,
        "batch",
        (8, 16, 32) if effort.small else (16, 32, 64, 128),
        lambda n: _moving(1, 1, f"stage2.batch_size={n}", f"sampling.chains={n}"),
        effort,
    )
    yield _grows(points, "clusters", (2, 100, 200, 400), lambda n: toy("stage2", f"model.clusters={n}"), effort)
    yield _grows(points, "dimensions", (2, 100, 200, 400), lambda n: table(n, "walk.steps=1"), effort)
    yield from _memory(200 if effort.small else 2000)


def _moving(sgld: int, walk: int, *settings: str) -> Workload:
    """An image training with a given number of moves of each kind a step."""
    return images(_WIDTH, f"sampling.steps={sgld}", f"walk.steps={walk}", *settings)


def _grows(name: str, variable: str, values: Sequence[int], make: Callable[[int], Workload], effort: Effort) -> Finding:
    works = {value: make(value) for value in values}
    turns = in_turns({str(value): work.step for value, work in works.items()}, effort)
    return grown(name, variable, "ms", values, [turns.milliseconds(str(value)) for value in values])


def _memory(iterations: int) -> Iterator[Finding]:
    """In a process of its own, where nothing else comes and goes."""
    name = "toy step, stage 2: resident memory"
    if not _STATM.is_file():
        yield LeftOut(name, "only Linux says how much there is at the moment")
        return
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool, ended_with_this_one():
        with ctrl_c_held():
            measured = pool.submit(resident_memory, iterations)
        at, held = measured.result()
    yield grown(name, "iterations", "MiB", at, held)
    yield Figure(f"{name} after {at[-1]} iterations over that after {at[0]}", held[-1] / held[0], "times")


def resident_memory(iterations: int) -> tuple[list[int], list[float]]:
    """What this process holds (MiB) after each tenth of some toy steps."""
    torch.set_num_threads(1)
    trainer = toy("stage2", "walk.steps=1").prepared.trainer
    at, held = [], []
    for _ in range(10):
        trainer.fit(stop_after=iterations // 10)
        at.append(trainer.state.iteration)
        held.append(int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20)
    return at, held
