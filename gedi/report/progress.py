"""The progress line of a training: terms, energy gap, speed, time left. Quiet when not on a terminal."""

import sys
import time
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


class Progress:
    """Takes the trainer's records and shows them.

    Args:
        config: the run's settings, for the length of each stage.
        stream: where to draw; standard error by default, so that standard output stays clean.
    """

    def __init__(self, config: Config, stream: TextIO | None = None) -> None:
        config = with_method(config)
        self._lengths = {name: stage.iterations for name, stage in config.stages.items()}
        self._console = Console(file=stream or sys.stderr)
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

    def __enter__(self) -> "Progress":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, record: dict[str, Any]) -> None:
        """Show one record."""
        name = record["stage"] + (f"#{record['restart'] + 1}" if "restart" in record else "")
        now = time.perf_counter()
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(name, total=self._lengths[record["stage"]], figures="")
            self._began[name] = (now, record["iteration"])
        if record.get("event") == "guard":
            self._show_intervention(name, record)
        started, first = self._began[name]
        speed = (record["iteration"] - first) / (now - started) if now > started else 0.0
        figures = [f"{short} {record[term]:.2f}" for term, short in _SHOWN.items() if term in record]
        if name in self._interventions:
            figures.append(f"guard {self._interventions[name]}")
        if speed > 0:
            figures.append(f"{speed:.0f} it/s")
        self._bar.update(self._tasks[name], completed=record["iteration"], figures="  ".join(figures))

    def _show_intervention(self, name: str, record: dict[str, Any]) -> None:
        """A line that stays above the bar: what was wrong, and what is done."""
        self._interventions[name] = self._interventions.get(name, 0) + 1
        if not self._console.is_terminal:
            return
        value, limit = (f"{x:.3g}" if isinstance(x, float) else x for x in (record["value"], record["limit"]))
        found = f"{name}, iteration {record['iteration']}: {record['cause']} {value}, limit {limit}"
        done = "given up" if record.get("given_up") else f"softer, attempt {record['attempt']} of {record['of']}"
        self._console.print(f"{found}; back to {record['back_to']}, {done}", highlight=False)
