"""Points from files: arrays and tables."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gedi.data.labels import check_labels, number_labels
from gedi.data.npy import check_file, mapped_array, read_arrays
from gedi.data.streaming import count_rows
from gedi.data.table import SUFFIXES, Table, Wishes, read_table
from gedi.data.values import check_columns, precision_of
from gedi.errors import UserError


def load_arrays(path: str | Path) -> tuple[Tensor, Tensor | None]:
    """Points (n, d) and labels (n,) or None from a file. Nothing in the file can run code.

    ==========================  ==============================================================================
    ``.npy``                    one array (n, d)
    ``.npz``                    ``x`` (n, d), and ``y`` (n,) if there are labels
    ``.csv .tsv .parquet``      a column named label, labels, y, target or class holds labels; see ``load_points``
    ==========================  ==============================================================================
    """
    table = load_points(path)
    return table.points, table.labels


def load_points(
    path: str | Path, wishes: Wishes | None = None, limit: int | None = None, rng: np.random.Generator | None = None
) -> Table:
    """Points, labels and what was found out about them from a file of the kinds that :func:`load_arrays` lists.

    Args:
        path: the file.
        wishes: which columns of a table are what; None: all is found out.
        limit: the most rows of a table or a ``.npy`` file to take, by ``rng``; the others are never in memory together.
        rng: draws them.
    """
    path = Path(path).expanduser()
    check_file(path, (".npy", ".npz", *SUFFIXES))
    if path.suffix.lower() in SUFFIXES:
        wishes = wishes or Wishes()
        if limit is None:
            return read_table(path, wishes)
        n = count_rows(path, wishes)
        table = read_table(path, wishes, _some(n, limit, rng))
        return replace(table, notes=(*table.notes, _drawn(path, len(table.points), n)))
    if wishes not in (None, Wishes()):
        raise UserError(f"data.label, data.id, data.drop and data.delimiter are for tables, got {path.name!r}")
    drawn: tuple[str, ...] = ()
    if limit is not None and path.suffix.lower() == ".npy":
        array = mapped_array(path)
        held = {"x": np.array(array[_some(len(array), limit, rng)])}
        drawn = (_drawn(path, len(held["x"]), len(array)),)
    else:
        held = read_arrays(path, ("x", "y"))
    x, y = held["x"], held.get("y")
    if x.dtype.kind not in "biuf":
        raise UserError(f"{path.name} must hold real numbers, got {x.dtype}; convert it")
    if x.ndim < 2 or 0 in x.shape:
        raise UserError(f"{path.name} must hold points (n, d) with n > 0 and d > 0, got shape {x.shape}")
    flat = x.reshape(len(x), -1)
    names = [f"column {i}" for i in range(flat.shape[1])]
    notes = check_columns(list(flat.T), names, "row {}".format, path.name)
    if y is not None and y.shape == (len(x), 1):
        y = y[:, 0]
    labels = None if y is None else number_labels(check_labels(y, len(x), f"y of {path.name}"))
    points = torch.tensor(np.asarray(x, dtype=precision_of(list(flat.T)) if x.ndim == 2 else np.float32))
    size = f"{path.name}: {len(x):,} rows, {flat.shape[1]} columns" + ("" if y is None else "; labels in y")
    return Table(points, labels, (size, *(f"{path.name}: {note}" for note in notes), *drawn))


def _some(n: int, limit: int, rng: np.random.Generator | None) -> np.ndarray:
    """Numbers of all of n rows, or of ``limit`` of them, in rising order."""
    drawn = (rng or np.random.default_rng(0)).choice(n, min(limit, n), replace=False, shuffle=False)
    return np.sort(drawn)


def _drawn(path: Path, kept: int, n: int) -> str:
    return f"{path.name}: learnt from {kept:,} of {n:,} rows, drawn at random"
