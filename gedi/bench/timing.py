"""Functions timed in turns, in one process: on a shared machine only their ratios mean anything."""

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

_MOST_MORE = 10_000  # calls of a block whose time the processor's clock does not see
_FEWEST = 3  # blocks: below that a median is a guess


class Moment(NamedTuple):
    """A reading of both clocks, in seconds."""

    cpu: float
    wall: float


def now() -> Moment:
    """The processor's time of this process, and the time on the wall."""
    return Moment(time.process_time(), time.perf_counter())


def with_children() -> float:
    """The processor's time of this process and of those that it has started and that have ended, in seconds."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes:
        blocks: turns each function gets.
        seconds: length of a turn: a function is called as often as fits, at least once.
        limit: seconds all turns may take together; slow functions get fewer turns, never fewer than three.
        small: measure smaller work, so that everything ends within two minutes.
    """

    blocks: int = 9
    seconds: float = 0.2
    limit: float = 90.0
    small: bool = False


FULL = Effort()
QUICK = Effort(blocks=5, seconds=0.03, limit=3.0, small=True)

#: One function's time, or a sum of several: name -> how many calls count.
Parts = str | Mapping[str, float]


class Comparison(NamedTuple):
    """One time over another: median and quartiles over the blocks; ``wall`` is the median by the clock on the wall."""

    value: float
    low: float
    high: float
    wall: float
    over_ms: float
    under_ms: float


@dataclass(frozen=True)
class Turns:
    """Seconds a call of each function, one entry a block.

    Example:
        >>> seconds = {"theirs": [4.0, 9.0, 8.0], "ours": [2.0, 3.0, 2.0]}
        >>> Turns(cpu=seconds, wall=seconds).compare("theirs", "ours").value
        3.0
    """

    cpu: Mapping[str, list[float]]
    wall: Mapping[str, list[float]]

    def milliseconds(self, name: str) -> float:
        """The median of one function, by the processor's time."""
        return statistics.median(self.cpu[name]) * 1e3

    def compare(self, over: Parts, under: Parts) -> Comparison:
        """The ratio of two times, block by block: a slow moment of the machine hits both sides of it."""
        above, below = _sums(self.cpu, over), _sums(self.cpu, under)
        ratios = [a / b for a, b in zip(above, below, strict=True)]
        walls = [a / b for a, b in zip(_sums(self.wall, over), _sums(self.wall, under), strict=True)]
        low, median, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        milliseconds = (statistics.median(times) * 1e3 for times in (above, below))
        return Comparison(median, low, high, statistics.median(walls), *milliseconds)


def in_turns(
    functions: Mapping[str, Callable[[], object]], effort: Effort = FULL, clock: Callable[[], Moment] = now
) -> Turns:
    """Time functions in short alternating blocks; every second round goes backwards, so that none is always first.

    Example:
        >>> turns = in_turns({"short": lambda: sum(range(100)), "long": lambda: sum(range(10_000))}, QUICK)
        >>> turns.compare("long", "short").value > 5
        True
    """
    names = list(functions)
    calls = {name: _calls(function, effort, clock) for name, function in functions.items()}
    round_seconds = sum(max(effort.seconds, once) for _, once in calls.values())
    blocks = max(_FEWEST, min(effort.blocks, int(effort.limit / max(round_seconds, 1e-9))))
    cpu: dict[str, list[float]] = {name: [] for name in functions}
    wall: dict[str, list[float]] = {name: [] for name in functions}
    for block in range(blocks):
        for name in names if block % 2 == 0 else reversed(names):
            function, (times, _) = functions[name], calls[name]
            began = clock()
            for _ in range(times):
                function()
            ended, done = clock(), times
            while ended.cpu <= began.cpu and done < times + _MOST_MORE:  # a clock that ticks, on a busy machine
                function()
                ended, done = clock(), done + 1
            cpu[name].append((ended.cpu - began.cpu) / done)
            wall[name].append((ended.wall - began.wall) / done)
    return Turns(cpu, wall)


def _calls(function: Callable[[], object], effort: Effort, clock: Callable[[], Moment]) -> tuple[int, float]:
    """How many calls fill a turn, and the seconds of one; the first call pays for what is made once."""
    once = 0.0
    for _ in range(2):
        began = clock()
        function()
        once = clock().wall - began.wall
        if once > effort.seconds:
            break
    return max(1, round(effort.seconds / max(once, 1e-9))), once


def _sums(times: Mapping[str, list[float]], parts: Parts) -> list[float]:
    weights = {parts: 1.0} if isinstance(parts, str) else parts
    columns = [[weight * seconds for seconds in times[name]] for name, weight in weights.items()]
    return [sum(block) for block in zip(*columns, strict=True)]
