"""What the program does around a training: it may be stopped, and says at the end what came out."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from gedi.ending import go_on
from gedi.fitting import Prepared, Stopped
from gedi.report import closing


@contextmanager
def stoppable(prepared: Prepared) -> Iterator[list[int]]:
    """Notes Ctrl-C and SIGTERM for the training to see; the second one, or one after the training, ends at once.

    Either way the program says how to go on and ends with code 130 or 143.
    """
    asked: list[int] = []
    trainer = prepared.trainer

    def note(number: int, frame: object) -> None:
        asked.append(number)
        if len(asked) > 1 or trainer.course.over:
            raise Stopped

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    except KeyboardInterrupt:
        if trainer.processes.first:
            print(f"stopped; go on with: {go_on()}", file=sys.stderr)
        raise typer.Exit(128 + (asked or [signal.SIGINT])[-1]) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def say_results(results: dict[str, Any], path: Path, report: Path) -> None:
    """The verdict, the figures that matter, and where the rest is."""
    Console().print(closing(results["verdict"]), soft_wrap=True, highlight=False)
    shown = {name: value for name, value in results["metrics"].items() if isinstance(value, int | float)}
    first = ("nmi", "ami", "ari", "accuracy", "clusters_used", "kl", "walk_crossing")
    print("  ".join(f"{name} {shown[name]:.4g}" for name in first if name in shown))
    if results["interventions"]:
        print(f"the guard stepped in {results['interventions']} times: see docs/guard.md and {path / 'metrics.jsonl'}")
    print(f"{results['seconds']['total']:.0f} s; report: {report}")
