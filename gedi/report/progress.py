"""The progress of a training: a bar in a terminal, else a plain line now and then."""

import io
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from gedi.config import Config
from gedi.methods import with_method

_SHOWN = {
    "generative": "gap",
    "denoising": "score",
    "swapped": "view",
    "swapped_walk": "walk",
    "agreement": "agree",
    "balance": "balance",
    "finer": "finer",
    "barlow": "barlow",
    "contrastive": "contrast",
}
# A plain line is due after LONG seconds, or after SHORT ones once a tenth of the stage is done.
_SHORT, _LONG = 10.0, 30.0


class Progress:
    """Takes the trainer's records and shows them.

    Args:
        config: the run's settings, for the length of each stage.
        stream: where to draw; standard error by default, so that standard output stays clean.
        clock: the seconds.
    """

    def __init__(
        self, config: Config, stream: TextIO | None = None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        config = with_method(config)
        self._lengths = {name: stage.iterations for name, stage in config.stages.items()}
        self._tries = config.n_init
        self._clock = clock
        self._console = Console(file=stream or sys.stderr or io.StringIO())  # there may be no standard error
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=10),
            TextColumn("{task.completed}"),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}
        self._began: dict[str, tuple[float, int]] = {}
        self._interventions: dict[str, int] = {}
        self._told: dict[str, tuple[float, int]] = {}  # when each stage's last plain line was, and at which iteration

    def __enter__(self) -> "Progress":
        self._bar.start()
        if not self._console.is_terminal:
            stages = [f"{name} {n} iterations" for name, n in self._lengths.items() if n]
            tries = f", up to {self._tries} tries" if self._tries > 1 else ""
            self._print(f"training: {', '.join(stages)}{tries}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, record: dict[str, Any]) -> None:
        """Show one record."""
        name = record["stage"] + (f"#{record['restart'] + 1}" if "restart" in record else "")
        now, iteration, total = self._clock(), record["iteration"], self._lengths[record["stage"]]
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(name, total=total, figures="")
            self._began[name] = self._told[name] = (now, iteration)
        if record.get("event") == "guard":
            self._show_intervention(name, record)
        started, first = self._began[name]
        speed = (iteration - first) / (now - started) if now > started else 0.0
        figures = [f"{short} {record[term]:.2f}" for term, short in _SHOWN.items() if term in record]
        if name in self._interventions:
            figures.append(f"guard {self._interventions[name]}")
        if speed > 0:
            figures.append(f"{speed:.0f} it/s" if speed >= 10 else f"{speed:.2g} it/s")
        self._bar.update(self._tasks[name], completed=iteration, figures="  ".join(figures))
        if not self._console.is_terminal and "event" not in record and self._is_due(name, now, iteration, total):
            self._told[name] = (now, iteration)
            left = [f"{_duration((total - iteration) / speed)} left"] if speed > 0 and iteration < total else []
            self._print("  ".join([f"{name}: {iteration} of {total}", *figures, *left]))

    def _is_due(self, name: str, now: float, iteration: int, total: int) -> bool:
        when, last = self._told[name]
        tenth = iteration - last >= total / 10
        return iteration >= total or now - when >= _LONG or (tenth and now - when >= _SHORT)

    def _print(self, line: str) -> None:
        """A line that stays. Where nobody reads any more the training goes on."""
        with suppress(OSError, ValueError):
            if self._console.is_terminal:
                self._console.print(line, highlight=False)
            else:  # rich would break it at the width of a terminal that is not there
                print(line, file=self._console.file, flush=True)

    def _show_intervention(self, name: str, record: dict[str, Any]) -> None:
        """What was wrong, and what is done."""
        self._interventions[name] = self._interventions.get(name, 0) + 1
        value, limit = (f"{x:.3g}" if isinstance(x, float) else x for x in (record["value"], record["limit"]))
        found = f"{name}, iteration {record['iteration']}: {record['cause']} {value}, limit {limit}"
        done = "given up" if record.get("given_up") else f"softer, attempt {record['attempt']} of {record['of']}"
        self._print(f"{found}; back to {record['back_to']}, {done}")


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.0f} h"
