"""Rows of a table or an array a part at a time, with their numbers or names: files may be larger than memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gedi.data.columns import to_numbers
from gedi.data.delimited import layout_of_text, text_batches
from gedi.data.npy import mapped_array, read_arrays
from gedi.data.parquet import opened_parquet, plain_cells
from gedi.data.table import SUFFIXES, Wishes, delimiter_of
from gedi.errors import UserError, unknown

ROW = "row"  # what numbers of rows are called
_ROWS = 2**14


class Part(NamedTuple):
    """Some points one after the other, (n, *shape), and what each is called: its number from 0, or its id."""

    ids: Sequence[int] | Sequence[str]
    points: np.ndarray


@dataclass(frozen=True)
class Stream:
    """Points that come in parts.

    Attributes:
        parts: of points.
        total: how many points there are; None where nobody knows before the end.
        id: what the ids are called.
        notes: what was found out, in words.
    """

    parts: Iterator[Part]
    total: int | None
    id: str = ROW
    notes: tuple[str, ...] = ()


def stream_rows(path: Path, names: Sequence[str], wishes: Wishes, id: str | None = None) -> Stream:
    """The rows of a file.

    Args:
        path: ``.csv``, ``.tsv``, ``.parquet``, ``.npy`` or ``.npz``.
        names: of the columns to read from a table, in this order; others are passed over. None: all columns, for a
            model that knows no names.
        wishes: what the user says of the table.
        id: the column that named the rows when the model was trained; one that is not there is no fault.
    """
    if path.suffix.lower() not in SUFFIXES:
        array = mapped_array(path) if path.suffix.lower() == ".npy" else read_arrays(path, ("x",))["x"]
        return Stream(_of_array(array, path.name), len(array))
    there, total, about = _described(path, wishes)
    wanted = list(names) or [name for name in there if name not in (wishes.id, wishes.label, *wishes.drop, id)]
    for name in wanted:
        if there.count(name) != 1:
            raise unknown(f"column for {path.name}, which the model was trained on,", name, there[:50])
    if wishes.id is not None and wishes.id != "none" and wishes.id not in there:
        raise unknown(f"column in --id for {path.name}", wishes.id, there[:50])
    numbering = wishes.id if wishes.id is not None else id
    numbering = numbering if numbering in there and numbering not in wanted else None
    over, no_name = [name for name in there if name not in (*wanted, numbering)], "a column without a name"
    notes = (
        f"{path.name}: {about}",
        *([f"{path.name}: not looked at: {', '.join(name or no_name for name in over[:10])}"] if over else []),
    )
    return Stream(_of_table(path, wishes, wanted, numbering), total, numbering or ROW, notes)


def count_rows(path: Path, wishes: Wishes) -> int:
    """How many rows a table has."""
    total = _described(path, wishes)[1]
    return (
        sum(map(len, text_batches(path, layout_of_text(path, delimiter_of(path, wishes))))) if total is None else total
    )


def _described(path: Path, wishes: Wishes) -> tuple[list[str], int | None, str]:
    """Names of the columns, the number of rows if the file says it, and what was found out."""
    if path.suffix.lower() == ".parquet":
        with opened_parquet(path) as file:
            return list(file.schema_arrow.names), int(file.metadata.num_rows), "parquet"
    layout = layout_of_text(path, delimiter_of(path, wishes))
    return layout.names, None, layout.about


def _of_array(array: np.ndarray, name: str) -> Iterator[Part]:
    if array.dtype.kind not in "biuf" or array.ndim < 2:
        raise UserError(f"{name} must hold points (n, d) of real numbers, got {array.dtype} of shape {array.shape}")
    for at in range(0, len(array), _ROWS):
        part = np.array(array[at : at + _ROWS])
        yield Part(range(at, at + len(part)), part if part.ndim != 3 else part[:, None])


def _of_table(path: Path, wishes: Wishes, names: Sequence[str], id: str | None) -> Iterator[Part]:
    at = 0
    for there, decimal, first, batch in _batches(path, wishes):
        columns = [batch.column(there.index(name)) for name in names]
        rows = np.empty((len(batch), len(names)))
        for place, (name, cells) in enumerate(zip(names, columns, strict=True)):
            plain = cells if pa.types.is_string(cells.type) else plain_cells(cells, False, name, path.name)
            values, bad = to_numbers(plain, decimal)
            if bad is None and (lacking := np.flatnonzero(~np.isfinite(values))).size:
                bad = int(lacking[0])
            if bad is not None:
                raise UserError(
                    f"{path.name} must hold a number in every row: column {name!r} holds {str(cells[bad])[:40]!r} in "
                    f"{first.format(at + bad)}; mend it, or leave the row out"
                )
            rows[:, place] = values
        for cut in range(0, len(rows), _ROWS):
            own = slice(cut, cut + _ROWS)
            ids = None if id is None else batch.column(there.index(id))[own].cast(pa.string()).to_pylist()
            part = rows[own]
            yield Part(range(at + cut, at + cut + len(part)) if ids is None else ids, part)
        at += len(rows)


def _batches(path: Path, wishes: Wishes) -> Iterator[tuple[list[str], str, str, pa.RecordBatch]]:
    """Batches of a table, with the names of their columns, the decimal point and words for a row."""
    if path.suffix.lower() == ".parquet":
        with opened_parquet(path) as file:
            for batch in file.iter_batches():
                yield list(file.schema_arrow.names), ".", "row {}", batch
        return
    layout = layout_of_text(path, delimiter_of(path, wishes))
    for batch in text_batches(path, layout):
        yield layout.names, layout.decimal, "row {}", batch
