"""What a table is: its cells, and what a line says of those that are done. Making it is :mod:`gedi.tables.engine`'s."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gedi.directory import RunDirectory


@dataclass(frozen=True)
class Cell:
    """One run of a table."""

    row: str  # the data set
    column: str  # the method, as the table calls it
    seed: int
    steps: int | None = None  # T, where it varies
    settings: tuple[str, ...] = ()
    preset: str = ""  # where it is not the row's

    @property
    def folder(self) -> str:
        """A name that no other cell has."""
        column = "".join(c if c.isalnum() else "-" for c in self.column.lower())
        return f"{self.row}_{column}_T{'' if self.steps is None else self.steps}_seed{self.seed}"


#: The arguments of :func:`gedi.evaluating.evaluate_run` for a cell at a profile.
Measure = Callable[[Cell, str], dict[str, Any]]


@dataclass(frozen=True)
class TableSpec:
    """A table: its cells, what a line says of them, and how to draw it once they are done."""

    cells: Callable[[range, str], list[Cell]]  # of the seeds, at a profile
    line: Callable[[str, str, int | None, "Group"], dict[str, str]]
    draw: Callable[[Path, Mapping[Cell, "RunDirectory"]], list[Path]]
    notes: tuple[str, ...] = field(default=())
    folder: str | None = None  # tables of one folder share their runs; None has its own
    measure: Measure | None = None  # what is measured of each finished run besides


class Group:
    """The results of one line's cells: those that finished, and how many there were."""

    def __init__(self, results: Sequence[dict[str, Any]]) -> None:
        self.runs = len(results)
        self.finished = [result for result in results if "metrics" in result]

    def figure(self, name: str) -> str:
        """Mean and sample standard deviation over the runs; one run has no deviation."""
        return self._spread([r["metrics"][name] for r in self.finished if name in r["metrics"]])

    def measured(self, *path: str) -> str:
        """Mean and sample standard deviation over the runs of a figure of the evaluation."""
        values = []
        for result in self.finished:
            found: Any = result.get("evaluation", {})
            for key in path:
                found = found.get(key) if isinstance(found, dict) else None
            if isinstance(found, int | float):
                values.append(float(found))
        return self._spread(values)

    def share(self, holds: Callable[[dict[str, Any]], bool | None]) -> str:
        """In how many of the runs something holds; None leaves a run out."""
        known = [flag for flag in map(holds, self.finished) if flag is not None]
        return f"{sum(known)}/{len(known)}" if known else ""

    def seconds(self) -> str:
        """Mean time of a run."""
        return f"{np.mean([r['seconds']['total'] for r in self.finished]):.0f}" if self.finished else ""

    def processor_seconds(self) -> str:
        """Mean time of the processor, which other work on the machine hardly lengthens; runs of long ago lack it."""
        times = [r["seconds"]["processor"] for r in self.finished if "processor" in r["seconds"]]
        return f"{np.mean(times):.0f}" if times else ""

    def count(self) -> str:
        """Runs, and how many of them diverged."""
        lost = self.runs - len(self.finished)
        return f"{self.runs}" + (f", {lost} diverged" if lost else "")

    def _spread(self, values: Sequence[float]) -> str:
        """What :meth:`count` does not say, of how many runs a figure is, stands beside it."""
        if not values:
            return ""
        deviation = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
        few = f" ({len(values)} of {len(self.finished)} runs)" if len(values) < len(self.finished) else ""
        return f"{np.mean(values):.3f}{deviation}{few}"


def first_seed(done: Mapping[Cell, "RunDirectory"]) -> dict[tuple[str, str], "RunDirectory"]:
    """The runs of the lowest seed, by row and column."""
    lowest = min((cell.seed for cell in done), default=0)
    return {(cell.row, cell.column): run for cell, run in done.items() if cell.seed == lowest}
