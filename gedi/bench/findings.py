"""What a subject of the benchmark can find: a ratio, a figure, a growth, or that it was left out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gedi.bench.timing import Effort, Parts, Turns

#: ``speedup``: how many times as long another form takes as ours; ``cost``: how many times as long ours takes as its
#: floor.
Kind = Literal["speedup", "cost"]


@dataclass(frozen=True)
class Ratio:
    """Time of ``over`` divided by time of ``under``, with quartiles over the blocks.

    Attributes:
        name: what was done.
        over, under: who did it.
        kind: which way is good.
        value, low, high: median and quartiles, by the processor's time.
        wall: the median by the clock on the wall.
        over_ms, under_ms: milliseconds of both.
        at_least, at_most: the target, if there is one.
    """

    name: str
    over: str
    under: str
    kind: Kind
    value: float
    low: float
    high: float
    wall: float
    over_ms: float
    under_ms: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def reached(self) -> bool | None:
        """Whether the target was reached; None without one."""
        if self.at_least is None and self.at_most is None:
            return None
        return self.value >= (self.at_least or 0.0) and self.value <= (self.at_most or np.inf)


@dataclass(frozen=True)
class Figure:
    """One number with its unit."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True)
class Growth:
    """A measured quantity against what it should depend on, with the straight line through it."""

    name: str
    variable: str
    unit: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    slope: float
    intercept: float
    r_squared: float


@dataclass(frozen=True)
class LeftOut:
    """What was not measured, and why."""

    name: str
    why: str


Finding = Ratio | Figure | Growth | LeftOut
Subject = Callable[[Effort], Iterator[Finding]]


def speedup(turns: Turns, name: str, over: tuple[str, Parts], ours: Parts, at_least: float | None = None) -> Ratio:
    """Another form's time over ours: above 1 we are faster."""
    label, parts = over
    return Ratio(name, label, "ours", "speedup", *turns.compare(parts, ours), at_least=at_least)


def cost(
    turns: Turns, name: str, over: tuple[str, Parts], under: tuple[str, Parts], at_most: float | None = None
) -> Ratio:
    """Our time over the time of something that it cannot do without."""
    (label, parts), (floor, floor_parts) = over, under
    return Ratio(name, label, floor, "cost", *turns.compare(parts, floor_parts), at_most=at_most)


def growth(name: str, variable: str, unit: str, x: Sequence[float], y: Sequence[float]) -> Growth:
    """Measured points and the least-squares line through them.

    Example:
        >>> line = growth("step", "T", "ms", [5, 10, 20], [6.0, 11.0, 21.0])
        >>> round(line.slope, 6), round(line.intercept, 6), round(line.r_squared, 6)
        (1.0, 1.0, 1.0)
    """
    slope, intercept = np.polyfit(x, y, 1)
    scatter = float(np.sum((np.asarray(y) - slope * np.asarray(x) - intercept) ** 2))
    spread = float(np.sum((np.asarray(y) - np.mean(y)) ** 2))
    r_squared = 1 - scatter / spread if spread > 0 else 1.0
    return Growth(name, variable, unit, tuple(x), tuple(y), float(slope), float(intercept), r_squared)
