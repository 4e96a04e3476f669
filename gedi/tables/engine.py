"""How a table is made: its cells are runs, finished ones are not run again.

A cell is a finished run directory below ``--out``; a table that was stopped goes on where it was.
"""

import csv
import io
import json
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from gedi.config import override, parse
from gedi.errors import DivergenceError, UserError, unknown
from gedi.examine import evaluate_run
from gedi.presets import preset
from gedi.runs import RunDirectory, execute, prepare
from gedi.threads import available_cores


@dataclass(frozen=True)
class Cell:
    """One run of a table."""

    row: str  # the data set
    column: str  # the method, as the table calls it
    seed: int
    steps: int | None = None  # T, where it varies
    settings: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """A name that no other cell has."""
        column = "".join(c if c.isalnum() else "-" for c in self.column.lower())
        return f"{self.row}_{column}_T{'' if self.steps is None else self.steps}_seed{self.seed}"


#: The arguments of :func:`gedi.examine.evaluate_run` for a cell at a profile.
Measure = Callable[[Cell, str], dict[str, Any]]


@dataclass(frozen=True)
class TableSpec:
    """A table: its cells, what a line says of them, and how to draw it once they are done."""

    cells: Callable[[range, str], list[Cell]]  # of the seeds, at a profile
    line: Callable[[str, str, int | None, "Group"], dict[str, str]]
    draw: Callable[[Path, Mapping[Cell, RunDirectory]], list[Path]]
    notes: tuple[str, ...] = field(default=())
    folder: str | None = None  # tables of one folder share their runs; None has its own
    measure: Measure | None = None  # what is measured of each finished run besides


class Group:
    """The results of one line's cells: those that finished, and how many there were."""

    def __init__(self, results: Sequence[dict[str, Any]]) -> None:
        self.runs = len(results)
        self.finished = [result for result in results if "metrics" in result]

    def figure(self, name: str) -> str:
        """Mean and standard deviation over the seeds; one run has no deviation."""
        return _spread([r["metrics"][name] for r in self.finished if name in r["metrics"]])

    def measured(self, *path: str) -> str:
        """Mean and standard deviation over the seeds of a figure of the evaluation."""
        values = []
        for result in self.finished:
            found: Any = result.get("evaluation", {})
            for key in path:
                found = found.get(key) if isinstance(found, dict) else None
            if isinstance(found, int | float):
                values.append(float(found))
        return _spread(values)

    def share(self, holds: Callable[[dict[str, Any]], bool | None]) -> str:
        """In how many of the runs something holds; None leaves a run out."""
        known = [flag for flag in map(holds, self.finished) if flag is not None]
        return f"{sum(known)}/{len(known)}" if known else ""

    def seconds(self) -> str:
        """Mean time of a run."""
        return f"{np.mean([r['seconds']['total'] for r in self.finished]):.0f}" if self.finished else ""

    def count(self) -> str:
        """Runs, and how many of them diverged."""
        lost = self.runs - len(self.finished)
        return f"{self.runs}" + (f", {lost} diverged" if lost else "")


def _spread(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}" if values else ""


def write_table(
    spec: TableSpec,
    name: str,
    *,
    profile: str,
    seeds: range,
    out: Path,
    jobs: int | None = None,
    data_dir: Path | None = None,
    only: Sequence[str] = (),
) -> str:
    """Run what is missing; the table is written as it goes, as CSV and Markdown. Returns the Markdown.

    ``only`` names rows, methods or both: other cells are left out.
    """
    out.mkdir(parents=True, exist_ok=True)
    _check_same_profile(out, profile)
    cells = _chosen(spec.cells(seeds, profile), only)
    _run_missing(
        spec, cells, profile, out, jobs or available_cores(), data_dir,
        lambda: _write(spec, name, profile, cells, out),
    )  # fmt: skip
    return _write(spec, name, profile, cells, out, figures=True)


def _chosen(cells: list[Cell], only: Sequence[str]) -> list[Cell]:
    """The cells whose row or method was asked for; with names of both kinds, those that match both."""
    rows, columns = ({getattr(cell, kind) for cell in cells} for kind in ("row", "column"))
    for name in only:
        if name not in rows | columns:
            raise unknown("row or method of this table", name, rows | columns)
    asked_rows, asked_columns = rows & set(only) or rows, columns & set(only) or columns
    return [cell for cell in cells if cell.row in asked_rows and cell.column in asked_columns]


def _write(spec: TableSpec, name: str, profile: str, cells: list[Cell], out: Path, figures: bool = False) -> str:
    """The table of the cells that are done."""
    done = {cell: RunDirectory(out / "cells" / cell.folder) for cell in cells}
    done = {cell: directory for cell, directory in done.items() if _finished(directory, _needs(spec, cell, profile))}
    results = {cell: _result(directory) for cell, directory in done.items()}
    rows = _rows(spec, results)
    if not rows:
        return ""
    stem = "table" if spec.folder is None else name
    (out / f"{stem}.csv").write_text(_as_csv(rows))
    finished = {cell: directory for cell, directory in done.items() if "metrics" in results[cell]}
    pictures = spec.draw(out, finished) if figures else []
    text = _as_markdown(name, profile, rows, spec.notes, [path.relative_to(out) for path in pictures])
    (out / f"{stem}.md").write_text(text)
    return text


def _run_missing(
    spec: TableSpec,
    cells: list[Cell],
    profile: str,
    out: Path,
    jobs: int,
    data_dir: Path | None,
    written: Callable[[], object],
) -> None:
    missing = [
        cell for cell in cells if not _finished(RunDirectory(out / "cells" / cell.folder), _needs(spec, cell, profile))
    ]
    console = Console(stderr=True)
    console.print(f"{len(cells) - len(missing)} of {len(cells)} cells are done, {len(missing)} to run")
    if not missing:
        return
    context = multiprocessing.get_context("spawn")  # forked torch threads may hang
    with ProcessPoolExecutor(min(jobs, len(missing)), mp_context=context) as pool:
        running = {
            pool.submit(run_cell, cell, profile, out, data_dir, _needs(spec, cell, profile)): cell for cell in missing
        }
        for number, future in enumerate(as_completed(running), start=1):
            console.print(f"[{number}/{len(missing)}] {running[future].folder}: {future.result()}")
            written()


def run_cell(
    cell: Cell, profile: str, out: Path, data_dir: Path | None = None, needs: dict[str, Any] | None = None
) -> str:
    """Run one cell into its directory, and measure what the table needs; what came of it, in a few words."""
    torch.set_num_threads(1)
    directory = RunDirectory(out / "cells" / cell.folder)
    if not _finished(directory):
        said = _train_cell(cell, profile, directory.path, data_dir)
        if said is not None:
            return said
    results = _result(directory)
    if needs and not _finished(directory, needs):
        try:
            evaluate_run(directory, data_dir=data_dir, **needs)
        except UserError as error:  # another data set that is not on this machine
            return f"not measured: {error}"
    return f"NMI {results['metrics']['nmi']:.3f}"


def _train_cell(cell: Cell, profile: str, path: Path, data_dir: Path | None) -> str | None:
    """Train a cell; why there is no result, if there is none."""
    settings = [*cell.settings, f"seed={cell.seed}"]
    if cell.steps is not None:
        settings.append(f"walk.steps={cell.steps}")
    try:
        prepared = prepare(parse(override(preset(cell.row, profile), settings)), data_dir=data_dir)
    except UserError as error:  # data that are not on this machine must not stop the others
        return f"not run: {error}"
    directory = RunDirectory(path) if path.is_dir() else RunDirectory.create(path)
    try:
        execute(prepared, directory)
    except DivergenceError as error:
        directory.write("diverged.json", json.dumps({"diverged": str(error)}))
        return "diverged"
    return None


def _needs(spec: TableSpec, cell: Cell, profile: str) -> dict[str, Any]:
    return {} if spec.measure is None else spec.measure(cell, profile)


def _finished(directory: RunDirectory, needs: Mapping[str, Any] | None = None) -> bool:
    """Whether a cell has run, and has been measured as a table needs it."""
    if (directory.path / "diverged.json").is_file():
        return True
    if not (directory.path / "results.json").is_file():
        return False
    found = directory.evaluation()
    asked = needs or {}
    return all(part in found for part in asked.get("parts", ())) and all(
        name in found.get("ood", {}) for name in asked.get("against", ())
    )


def _result(directory: RunDirectory) -> dict[str, Any]:
    diverged = directory.path / "diverged.json"
    if diverged.is_file():
        result: dict[str, Any] = json.loads(diverged.read_text())
        return result
    return {**directory.results(), "evaluation": directory.evaluation()}


def _check_same_profile(out: Path, profile: str) -> None:
    """Cells of two profiles must not mix in one table."""
    mark = out / "profile.txt"
    if mark.is_file() and mark.read_text().strip() != profile:
        raise UserError(f"--out {str(out)!r} holds the {mark.read_text().strip()} profile: choose another directory")
    mark.write_text(profile + "\n")


def _rows(spec: TableSpec, results: Mapping[Cell, dict[str, Any]]) -> list[dict[str, str]]:
    groups: dict[tuple[str, str, int | None], list[dict[str, Any]]] = {}
    for cell, result in results.items():
        groups.setdefault((cell.row, cell.column, cell.steps), []).append(result)
    rows = [spec.line(*key, Group(group)) for key, group in groups.items()]
    names = dict.fromkeys(name for row in rows for name in row)  # a line may lack some: of runs that all diverged
    used = [name for name in names if any(row.get(name) for row in rows)]
    return [{name: row.get(name, "") for name in used} for row in rows]


def _as_csv(rows: list[dict[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _as_markdown(
    name: str, profile: str, rows: list[dict[str, str]], notes: tuple[str, ...], pictures: list[Path]
) -> str:
    names = list(rows[0])
    lines = [f"# {name} ({profile} profile)", "", "| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(row[n] for n in names) + " |" for row in rows]
    lines += ["", *notes, ""]
    lines += [f"![{path.stem}]({path})" for path in pictures]
    return "\n".join(lines) + "\n"


def first_seed(done: Mapping[Cell, RunDirectory]) -> dict[tuple[str, str], RunDirectory]:
    """The runs of the lowest seed, by row and column."""
    lowest = min((cell.seed for cell in done), default=0)
    return {(cell.row, cell.column): run for cell, run in done.items() if cell.seed == lowest}
