"""How a table is made: its cells are runs, finished ones are not run again.

A cell is a finished run directory below ``--out``; a table that was stopped goes on where it was.
"""

import csv
import io
import json
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from gedi.config import Config, override, parse
from gedi.devices import make_fabric
from gedi.directory import RunDirectory
from gedi.ending import ctrl_c_held, ended_with_this_one
from gedi.errors import DivergenceError, UserError, unknown
from gedi.evaluating import evaluate_run
from gedi.fitting import prepare
from gedi.presets import check_profile, preset
from gedi.runs import execute
from gedi.tables.spec import Cell, Group, TableSpec
from gedi.threads import available_cores
from gedi.trained import training_of

FULL = "32-true"  # the precision of tables, unless another is asked for
_MANY = 1000  # seeds or jobs, beyond which a number was mistyped


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
    done: bool = False,
    precision: str = FULL,
) -> str:
    """Run what is missing; the table is written as it goes, as CSV and Markdown. Returns the Markdown.

    ``done`` runs nothing and writes what there is.

    ``only`` names rows, methods or both: other cells are left out. So are lines that would train the same as another;
    the table says which.
    """
    check_profile(profile)
    _check_numbers(seeds, jobs)
    everything = spec.cells(seeds, profile)
    _check_has_profile(everything, name, profile)
    asked, twins = _chosen(everything, only), _twins(everything, profile)
    cells = [cell for cell in asked if cell not in twins]
    twins = {cell: twin for cell, twin in twins.items() if cell in asked}
    if not cells:
        raise UserError(f"nothing is left of table {name}: {'; '.join(_same(twins))}")
    _check_same_kind(out, profile if precision == FULL else f"{profile} {precision}")
    if not done:
        _run_missing(
            spec, cells, profile, out, jobs or available_cores(), data_dir,
            lambda: _write(spec, name, profile, cells, out, twins), precision,
        )  # fmt: skip
    return _write(spec, name, profile, cells, out, twins, figures=True)


def _check_has_profile(cells: Sequence[Cell], name: str, profile: str) -> None:
    """Refuse a profile that no preset of the table has: every one of its cells would."""
    for named in {cell.preset or cell.row for cell in cells}:
        try:
            preset(named, profile)
        except UserError:
            continue
        return
    raise UserError(
        f"no preset of table {name} has a {profile} profile: the paper does not have this table; leave it out"
    )


def _check_numbers(seeds: range, jobs: int | None) -> None:
    if not 1 <= len(seeds) <= _MANY:
        raise UserError(f"--seeds must be 1 to {_MANY}, got {len(seeds)}")
    if not 0 <= seeds[0] <= seeds[-1] < 2**63:
        raise UserError(f"--first-seed must be 0 to 2^63 - 1, got {seeds[0]}")
    if jobs is not None and not 1 <= jobs <= _MANY:
        raise UserError(f"--jobs must be 1 to {_MANY}, got {jobs}")


def _twins(cells: Sequence[Cell], profile: str) -> dict[Cell, str]:
    """The cells that would train the same as another line of their row, each with that line's name."""
    first: dict[tuple[str, str], str] = {}
    twin: dict[Cell, str] = {}  # by the cell of seed 0: the seed plays no part in it
    for cell in dict.fromkeys(replace(cell, seed=0) for cell in cells):
        try:
            training = training_of(_config(cell, profile))
        except UserError:  # a cell that cannot be run is told when its turn comes
            continue
        named = first.setdefault((cell.row, repr(training)), cell.column)
        if named != cell.column:
            twin[cell] = named
    return {cell: twin[replace(cell, seed=0)] for cell in cells if replace(cell, seed=0) in twin}


def _same(twins: Mapping[Cell, str]) -> Iterator[str]:
    """Which lines are left out, and why."""
    rows: dict[tuple[str, str], dict[str, None]] = {}
    for cell, twin in twins.items():
        rows.setdefault((cell.column, twin), {})[cell.row] = None
    for (column, twin), of in rows.items():
        yield f"{column} is the same training as {twin} here ({', '.join(of)}), so it has no line of its own"


def _chosen(cells: list[Cell], only: Sequence[str]) -> list[Cell]:
    """The cells whose row or method was asked for; with names of both kinds, those that match both."""
    rows, columns = ({getattr(cell, kind) for cell in cells} for kind in ("row", "column"))
    for name in only:
        if name not in rows | columns:
            raise unknown("row or method of this table", name, rows | columns)
    asked_rows, asked_columns = rows & set(only) or rows, columns & set(only) or columns
    return [cell for cell in cells if cell.row in asked_rows and cell.column in asked_columns]


def _write(
    spec: TableSpec,
    name: str,
    profile: str,
    cells: list[Cell],
    out: Path,
    twins: Mapping[Cell, str],
    figures: bool = False,
) -> str:
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
    notes = [*spec.notes, *_notes(rows, twins)]
    text = _as_markdown(name, profile, rows, notes, [path.relative_to(out) for path in pictures])
    (out / f"{stem}.md").write_text(text)
    return text


def _notes(rows: list[dict[str, str]], twins: Mapping[Cell, str]) -> Iterator[str]:
    """What is to be said of any table."""
    ours = (value for row in rows for name, value in row.items() if "published" not in name)
    if any("±" in value for value in ours):
        yield "± is the sample standard deviation (n - 1) over the runs of a line; published ± as published."
    yield from (f"{line}." for line in _same(twins))


def _run_missing(
    spec: TableSpec,
    cells: list[Cell],
    profile: str,
    out: Path,
    jobs: int,
    data_dir: Path | None,
    written: Callable[[], object],
    precision: str = FULL,
) -> None:
    missing = [
        cell for cell in cells if not _finished(RunDirectory(out / "cells" / cell.folder), _needs(spec, cell, profile))
    ]
    console = Console(stderr=True)
    console.print(f"{len(cells) - len(missing)} of {len(cells)} cells are done, {len(missing)} to run")
    if not missing:
        return
    context = multiprocessing.get_context("spawn")  # forked torch threads may hang
    with ProcessPoolExecutor(min(jobs, len(missing)), mp_context=context) as pool, ended_with_this_one():
        with ctrl_c_held():
            running = {
                pool.submit(run_cell, cell, profile, out, data_dir, _needs(spec, cell, profile), precision): cell
                for cell in missing
            }
        try:
            for number, future in enumerate(as_completed(running), start=1):
                console.print(f"[{number}/{len(missing)}] {running[future].folder}: {future.result()}")
                written()
        except BrokenProcessPool as error:
            raise UserError(
                f"a process of the table was ended from outside, most often for lack of memory: try --jobs "
                f"{max(1, jobs // 2)}; finished cells are kept"
            ) from error


def run_cell(
    cell: Cell,
    profile: str,
    out: Path,
    data_dir: Path | None = None,
    needs: dict[str, Any] | None = None,
    precision: str = FULL,
) -> str:
    """Run one cell into its directory, and measure what the table needs; what came of it, in a few words."""
    torch.set_num_threads(1)
    directory = RunDirectory(out / "cells" / cell.folder)
    if not _finished(directory):
        said = _train_cell(cell, profile, directory.path, data_dir, precision)
        if said is not None:
            return said
    results = _result(directory)
    if needs and not _finished(directory, needs):
        try:
            evaluate_run(directory, data_dir=data_dir, **needs)
        except UserError as error:  # another data set that is not on this machine
            return f"not measured: {error}"
    return f"NMI {results['metrics']['nmi']:.3f}"


def _config(cell: Cell, profile: str) -> Config:
    settings = [*cell.settings, f"seed={cell.seed}"]
    if cell.steps is not None:
        settings.append(f"walk.steps={cell.steps}")
    return parse(override(preset(cell.preset or cell.row, profile), settings))


def _train_cell(cell: Cell, profile: str, path: Path, data_dir: Path | None, precision: str) -> str | None:
    """Train a cell; why there is no result, if there is none."""
    try:
        prepared = prepare(_config(cell, profile), data_dir=data_dir, fabric=make_fabric(precision=precision))
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


def _check_same_kind(out: Path, kind: str) -> None:
    """Cells of two profiles, or of two precisions, must not mix in one table."""
    if out.exists() and not out.is_dir():
        raise UserError(f"--out must name a directory, but {str(out)!r} is a file")
    mark = out / "profile.txt"
    held = mark.read_text(errors="replace").strip() if mark.is_file() else kind
    if held != kind:
        raise UserError(f"--out {str(out)!r} holds the {held!r} profile, as {mark.name} says: choose another directory")
    out.mkdir(parents=True, exist_ok=True)
    mark.write_text(kind + "\n")


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
    name: str, profile: str, rows: list[dict[str, str]], notes: Sequence[str], pictures: list[Path]
) -> str:
    names = list(rows[0])
    lines = [f"# {name} ({profile} profile)", "", "| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(row[n] for n in names) + " |" for row in rows]
    lines += ["", *notes, ""]
    lines += [f"![{path.stem}]({path})" for path in pictures]
    return "\n".join(lines) + "\n"
