"""The paper's tables and figures, published figures beside ours.

A cell is a finished run directory below ``--out``; a table that was stopped goes on where it was.
"""

import csv
import io
import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from gedi.config import override, parse
from gedi.data import SHAPES
from gedi.errors import DivergenceError, UserError, unknown
from gedi.presets import preset
from gedi.report import table_figures
from gedi.runs import RunDirectory, execute, prepare

DATA = ("moons", "circles")
T_VALUES = (1, 2, 5, 8, 10)
VARIANTS = {
    "GEDI": "gedi",
    "no NF": "no-nf",
    "no NF, no train. 1": "no-nf-no-train-1",
    "no NF, 2 enc.": "no-nf-2-enc",
}
#: NMI, mean and standard deviation over 5 runs (the paper's toy table).
PUBLISHED: dict[tuple[str, str], tuple[float, float]] = {
    ("moons", "JEM"): (0.0, 0.0),
    ("moons", "SwAV"): (0.8, 0.1),
    ("moons", "GEDI"): (0.98, 0.02),
    ("circles", "JEM"): (0.0, 0.0),
    ("circles", "SwAV"): (0.0, 0.0),
    ("circles", "GEDI"): (1.00, 0.01),
}


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


@dataclass(frozen=True)
class TableSpec:
    """A table: its cells, and how to draw it once they are done."""

    cells: Callable[[range], list[Cell]]
    draw: Callable[[Path, Mapping[Cell, RunDirectory]], list[Path]]
    notes: tuple[str, ...] = field(default=())


def write_table(name: str, *, profile: str, seeds: range, out: Path, jobs: int | None = None) -> str:
    """Run what is missing, then write ``table.csv``, ``table.md`` and the figures; returns the Markdown."""
    if name not in TABLES:
        raise unknown("table", name, TABLES)
    spec = TABLES[name]
    out.mkdir(parents=True, exist_ok=True)
    _check_same_profile(out, profile)
    cells = spec.cells(seeds)
    _run_missing(cells, profile, out, jobs or os.cpu_count() or 1)
    done = {cell: RunDirectory(out / "cells" / cell.folder) for cell in cells}
    results = {cell: _result(directory) for cell, directory in done.items()}
    rows = _rows(results)
    (out / "table.csv").write_text(_as_csv(rows))
    finished = {cell: directory for cell, directory in done.items() if "metrics" in results[cell]}
    pictures = spec.draw(out, finished)
    text = _as_markdown(name, profile, rows, spec.notes, pictures)
    (out / "table.md").write_text(text)
    return text


def _run_missing(cells: list[Cell], profile: str, out: Path, jobs: int) -> None:
    missing = [cell for cell in cells if not _finished(out / "cells" / cell.folder)]
    console = Console(stderr=True)
    console.print(f"{len(cells) - len(missing)} of {len(cells)} cells are done, {len(missing)} to run")
    if not missing:
        return
    context = multiprocessing.get_context("spawn")  # forked torch threads may hang
    with ProcessPoolExecutor(min(jobs, len(missing)), mp_context=context) as pool:
        running = {pool.submit(run_cell, cell, profile, out): cell for cell in missing}
        for number, future in enumerate(as_completed(running), start=1):
            console.print(f"[{number}/{len(missing)}] {running[future].folder}: {future.result()}")


def run_cell(cell: Cell, profile: str, out: Path) -> str:
    """Run one cell into its directory; what came of it, in a few words."""
    torch.set_num_threads(1)
    settings = [*cell.settings, f"seed={cell.seed}"]
    if cell.steps is not None:
        settings.append(f"walk.steps={cell.steps}")
    prepared = prepare(parse(override(preset(cell.row, profile), settings)))
    path = out / "cells" / cell.folder
    directory = RunDirectory(path) if path.is_dir() else RunDirectory.create(path)
    try:
        results = execute(prepared, directory)
    except DivergenceError as error:
        directory.write("diverged.json", json.dumps({"diverged": str(error)}))
        return "diverged"
    return f"NMI {results['metrics']['nmi']:.3f}"


def _finished(path: Path) -> bool:
    return (path / "results.json").is_file() or (path / "diverged.json").is_file()


def _result(directory: RunDirectory) -> dict[str, Any]:
    diverged = directory.path / "diverged.json"
    result: dict[str, Any] = json.loads(diverged.read_text()) if diverged.is_file() else directory.results()
    return result


def _check_same_profile(out: Path, profile: str) -> None:
    """Cells of two profiles must not mix in one table."""
    mark = out / "profile.txt"
    if mark.is_file() and mark.read_text().strip() != profile:
        raise UserError(f"--out {str(out)!r} holds the {mark.read_text().strip()} profile: choose another directory")
    mark.write_text(profile + "\n")


def _rows(results: Mapping[Cell, dict[str, Any]]) -> list[dict[str, str]]:
    groups: dict[tuple[str, str, int | None], list[dict[str, Any]]] = {}
    for cell, result in results.items():
        groups.setdefault((cell.row, cell.column, cell.steps), []).append(result)
    rows = [_row(key, group) for key, group in groups.items()]
    if all(row["T"] == "" for row in rows):
        rows = [{name: value for name, value in row.items() if name != "T"} for row in rows]
    return rows


def _row(key: tuple[str, str, int | None], group: list[dict[str, Any]]) -> dict[str, str]:
    row, column, steps = key
    finished = [result for result in group if "metrics" in result]

    def figure(name: str) -> str:
        values = [r["metrics"][name] for r in finished if name in r["metrics"]]
        return f"{np.mean(values):.3f} ± {np.std(values):.3f}" if values else ""

    published = PUBLISHED.get((row, column)) if steps is None else None
    cells = {"data": row, "method": column, "T": "" if steps is None else str(steps)}
    cells["published NMI"] = "" if published is None else f"{published[0]:.2f} ± {published[1]:.2f}"
    cells["NMI"] = figure("nmi") or "diverged"
    cells |= {name: figure(metric) for name, metric in (("AMI", "ami"), ("ARI", "ari"), ("accuracy", "accuracy"))}
    cells |= {"KL to truth": figure("kl"), "walks that cross": figure("walk_crossing")}
    cells["NMI >= 0.97"] = _count(r["metrics"]["nmi"] >= 0.97 for r in finished)
    cells["NMI >= 0.9"] = _count(r["metrics"]["nmi"] >= 0.9 for r in finished)
    cells["genuine density"] = _count(r["density"]["genuine"] for r in finished if r["density"])
    cells["seconds"] = f"{np.mean([r['seconds']['total'] for r in finished]):.0f}" if finished else ""
    cells["runs"] = f"{len(group)}" + (f", {len(group) - len(finished)} diverged" if len(finished) < len(group) else "")
    return cells


def _count(flags: Iterable[bool]) -> str:
    known = list(flags)
    return f"{sum(known)}/{len(known)}" if known else ""


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
    lines += [f"![{path.stem}]({path.name})" for path in pictures]
    return "\n".join(lines) + "\n"


def _toy_cells(seeds: range) -> list[Cell]:
    columns = {
        "JEM": ("method=jem",),
        "SwAV": ("method=swav",),
        "GEDI": ("method=gedi",),
        "control: radial walk": ("method=gedi", "walk=radial", "walk.corrector=0"),  # round and round, exactly
    }
    return [Cell(row, c, seed, None, s) for row in DATA for c, s in columns.items() for seed in seeds]


def _shape_cells(seeds: range) -> list[Cell]:
    columns = {"GEDI": (), "SwAV": ("method=swav",)}
    return [Cell(row, c, seed, None, s) for row in SHAPES for c, s in columns.items() for seed in seeds]


def _ablation_cells(seeds: range) -> list[Cell]:
    """One try each, as in the paper: restarts would hide what a variant does."""
    walks = [
        Cell(row, column, seed, steps, (f"method={method}", "n_init=1"))
        for row in DATA
        for column, method in VARIANTS.items()
        for steps in T_VALUES
        for seed in seeds
    ]
    flat = [
        Cell(row, column, seed, None, (f"method={column.lower()}", "n_init=1"))
        for row in DATA
        for column in ("JEM", "SwAV")
        for seed in seeds
    ]
    return walks + flat


def _draw_toy(out: Path, done: Mapping[Cell, RunDirectory]) -> list[Path]:
    first = _first_seed(done)
    return [
        table_figures.labels(first, DATA, ("SwAV", "GEDI"), out / "labels.png"),
        table_figures.gallery(first, DATA, "GEDI", out / "landscape.png"),
    ]


def _draw_shapes(out: Path, done: Mapping[Cell, RunDirectory]) -> list[Path]:
    return [table_figures.gallery(_first_seed(done), tuple(SHAPES), "GEDI", out / "shapes.png")]


def _first_seed(done: Mapping[Cell, RunDirectory]) -> dict[tuple[str, str], RunDirectory]:
    lowest = min((cell.seed for cell in done), default=0)
    return {(cell.row, cell.column): run for cell, run in done.items() if cell.seed == lowest}


def _draw_ablation(out: Path, done: Mapping[Cell, RunDirectory]) -> list[Path]:
    scores: dict[tuple[str, str, int | None], list[float]] = {}
    for cell, run in done.items():
        scores.setdefault((cell.row, cell.column, cell.steps), []).append(run.results()["metrics"]["nmi"])
    return [
        table_figures.against_steps(scores, DATA, ("GEDI",), ("JEM", "SwAV"), T_VALUES, out / "nmi_against_T.png"),
        table_figures.against_steps(scores, DATA, tuple(VARIANTS), (), T_VALUES, out / "ablation.png"),
    ]


TABLES: dict[str, TableSpec] = {
    "toy": TableSpec(
        _toy_cells,
        _draw_toy,
        (
            "Mean and standard deviation over the seeds, on the whole test set. JEM has no cluster head and "
            "says one symbol of everything, so its NMI is 0 by definition. The control walks on the score -x, "
            "with no model: where it succeeds, clustering proves nothing about the density.",
        ),
    ),
    "toy-shapes": TableSpec(
        _shape_cells,
        _draw_shapes,
        ("One preset for every shape. A density is genuine when it keeps every bound of docs/density.md.",),
    ),
    "toy-ablation": TableSpec(
        _ablation_cells,
        _draw_ablation,
        ("One try a run (n_init=1): restarts would hide what a variant does.",),
    ),
}
