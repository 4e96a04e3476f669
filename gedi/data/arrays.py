"""Tables from files: .npy, .npz, .csv."""

import csv
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gedi.errors import UserError

_LABEL_NAMES = ("label", "labels", "y", "target", "class")


def load_arrays(path: str | Path) -> tuple[Tensor, Tensor | None]:
    """Points (n, d) and labels (n,) or None from a file. Nothing in the file can run code.

    ============  =====================================================================
    ``.npy``      one array (n, d)
    ``.npz``      ``x`` (n, d), and ``y`` (n,) if there are labels
    ``.csv``      a header line; a column named label, y, target or class holds labels
    ============  =====================================================================
    """
    path = Path(path)
    check_file(path, (".npy", ".npz", ".csv"))
    if path.suffix == ".csv":
        x, y = _csv(path)
    else:
        held = read_arrays(path, ("x", "y"))
        x, y = held["x"], held.get("y")
    points = torch.tensor(np.asarray(x, dtype=np.float32))
    if y is None:
        return points, None
    if len(y) != len(x):
        raise UserError(f"{path.name} must hold one label a row, got {len(x)} rows and {len(y)} labels")
    return points, torch.tensor(np.unique(y, return_inverse=True)[1].reshape(-1))


def check_file(path: Path, suffixes: Sequence[str]) -> None:
    """Refuse what is not a file of one of these kinds."""
    if not path.is_file():
        raise UserError(f"data.path must name a file, but {str(path)!r} is not there")
    if path.suffix not in suffixes:
        raise UserError(f"data.path must end in {', '.join(suffixes[:-1])} or {suffixes[-1]}, got {path.name!r}")


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Those of the names that a ``.npz`` file holds, the first for sure; the array of a ``.npy`` file as the first."""
    try:
        with path.open("rb") as file:  # NumPy itself leaves a damaged file open
            held = np.load(file, allow_pickle=False)
            if isinstance(held, np.ndarray):
                return {names[0]: held}
            if names[0] not in held:
                raise UserError(f"{path.name} must hold an array named {names[0]!r}, got {', '.join(held.files)}")
            return {name: held[name] for name in names if name in held}
    except UserError:
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{path.name} cannot be read as {path.suffix}: {error}") from None


def _csv(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    with path.open(newline="") as lines:
        rows = list(csv.reader(lines))
    if len(rows) < 2:
        raise UserError(f"{path.name} must hold a header line and at least one row")
    names = [name.strip() for name in rows[0]]
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(names):
            raise UserError(f"{path.name} line {number} must hold {len(names)} values like the header, got {len(row)}")
    columns = [i for i, name in enumerate(names) if name.lower() not in _LABEL_NAMES]
    labels = [i for i in range(len(names)) if i not in columns]
    try:
        x = np.array([[float(row[i] or "nan") for i in columns] for row in rows[1:]])
    except ValueError as error:
        raise UserError(f"{path.name} must hold numbers: {error}") from None
    return x, np.array([row[labels[0]] for row in rows[1:]]) if labels else None
