"""A table as points: which columns are numbers to learn from, which one holds labels, which only number the rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from gedi.data.columns import Column, to_numbers
from gedi.data.delimited import Rows, read_delimited
from gedi.data.labels import number_labels
from gedi.data.parquet import read_parquet
from gedi.data.values import Where, check_columns, listed, precision_of
from gedi.errors import UserError, unknown

SUFFIXES = (".csv", ".tsv", ".parquet")
_LABELS = ("label", "labels", "y", "target", "class")
_IDS = re.compile(r"|id|index|idx|uuid|guid|row|row[ _]?(id|number)|unnamed: 0|__index_level_\d+__|.+[ _]id")
_SURE = ("id", "uuid", "guid")  # names of nothing else
_NONE = "none"
_MISSING = ("", "nan", "na", "n/a", "null", "none", "?")
_ENOUGH = 10  # rows, from which on 0, 1, 2, ... is no accident
_MANY = 100  # and 1000, 1001, 1002, ... neither


@dataclass(frozen=True)
class Table:
    """What a table holds.

    Attributes:
        points: (n, d) float32.
        labels: (n,) int64, or None.
        answers: what a column says of each row's group, None where it says nothing; or None without such a column.
        notes: what was found out, and what was left out, in words.
        names: of the columns of points; none for arrays.
        id: the name of the column that numbers the rows, if there is one.
    """

    points: Tensor
    labels: Tensor | None
    notes: tuple[str, ...]
    names: tuple[str, ...] = ()
    id: str | None = None
    answers: list[Any] | None = None


@dataclass(frozen=True)
class Wishes:
    """What the user says of a table.

    Attributes:
        label: the column of labels; "none": there is none; None: one called label, labels, y, target or class.
        id: the column that numbers the rows; "none": there is none; None: it is found out.
        drop: further columns to leave out.
        delimiter: between values of text; None: it is found out.
        answer: the column that tells what was observed of the row's group; None: there is none.
    """

    label: str | None = None
    id: str | None = None
    drop: tuple[str, ...] = ()
    delimiter: str | None = None
    answer: str | None = None


def read_table(path: Path, wishes: Wishes, rows: Rows | None = None) -> Table:
    """Points and labels of a ``.csv``, ``.tsv`` or ``.parquet`` file; see docs/guide.md for what is understood.

    Args:
        path: the file.
        wishes: which columns are what.
        rows: numbers of the rows to read, in rising order; None reads all.
    """

    def as_text(name: str) -> bool:
        if name == wishes.answer:
            return True
        return name == wishes.label if wishes.label is not None else name.lower() in _LABELS

    if path.suffix.lower() == ".parquet":
        columns, about = read_parquet(path, as_text, rows), "parquet"
        where: Where = "row {}".format
    else:
        table = read_delimited(path, delimiter_of(path, wishes), as_text, rows)
        columns, about, where = table.columns, table.about, table.where
    _check_names(columns, wishes, path.name)
    if not columns or len(columns[0]) == 0:
        raise UserError(f"{path.name} must hold columns and at least one row of values, but holds none")
    notes: list[str] = []
    left = [column for column in columns if column.name not in wishes.drop]
    answers, left = _take_answers(left, wishes)
    label, labels, left = _take_label(left, wishes, path.name, where, notes)
    named, left = left, _leave_out_ids(left, wishes, notes)
    numbering = wishes.id if wishes.id not in (None, _NONE) else _first_left_out(named, left)
    _refuse_text(left, path.name, where)
    if not left:
        raise UserError(f"{path.name} must hold a column of numbers besides labels and numbers of rows, but has none")
    _check_different([column.name for column in left], path.name)
    names = [f"column {column.name!r}" for column in left]
    notes += check_columns([column.numbers for column in left], names, where, path.name)
    if wishes.drop:
        notes.append(f"left out as asked: {listed(wishes.drop)}")
    points = np.empty((len(left[0]), len(left)), precision_of([column.numbers for column in left]))
    for place, column in enumerate(left):
        points[:, place] = column.numbers
    shown = listed([column.name for column in left])
    summary = f"{path.name}: {len(points):,} rows, {len(left)} column{'s' * (len(left) > 1)} ({shown}); {about}"
    summary += f"; labels in {label!r}" if label is not None else "; no labels"
    told = (summary, *(f"{path.name}: {note}" for note in notes))
    kept = tuple(column.name for column in left)
    return Table(torch.from_numpy(points), labels, told, kept, numbering, answers)


def delimiter_of(path: Path, wishes: Wishes) -> str | None:
    """What is between the values of a table of text, as far as its name or the user says."""
    usual = "\t" if path.suffix.lower() == ".tsv" else None
    return usual if wishes.delimiter is None else wishes.delimiter


def _first_left_out(columns: Sequence[Column], left: Sequence[Column]) -> str | None:
    return next((column.name for column in columns if column not in left), None)


def _check_different(names: Sequence[str], file: str) -> None:
    """Refuse two columns of one name: nobody could say later which is which."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(
            f"{file} must have different names for its columns, but {names.count(twice)} are called {twice!r}; "
            "rename them"
        )


def _check_names(columns: Sequence[Column], wishes: Wishes, file: str) -> None:
    """Refuse wishes for columns that are not there, or there twice."""
    names = [column.name for column in columns]
    single = {"label": wishes.label, "id": wishes.id, "answer": wishes.answer}
    for key, name in (*single.items(), *(("drop", name) for name in wishes.drop)):
        if name is None or (name == _NONE and key != "drop" and name not in names):
            continue
        if name not in names:
            raise unknown(f"column in data.{key} for {file}", name, [n for n in names if n][:50])
        if names.count(name) > 1:
            raise UserError(f"data.{key} must name one column, but {file} has {names.count(name)} called {name!r}")


def _take_answers(columns: list[Column], wishes: Wishes) -> tuple[list[Any] | None, list[Column]]:
    """What the column of answers says of each row, whole numbers as such, and the other columns."""
    found = [column for column in columns if column.name == wishes.answer]
    if wishes.answer is None or not found:
        return None, columns
    text = found[0].text.to_pylist()
    known = [None if cell.lower() in _MISSING else cell for cell in text]
    whole = all(cell is None or re.fullmatch(r"-?\d{1,15}(\.0*)?", cell) for cell in known)
    answers = [int(float(cell)) if whole and cell is not None else cell for cell in known]
    return answers, [column for column in columns if column is not found[0]]


def _take_label(
    columns: list[Column], wishes: Wishes, file: str, where: Where, notes: list[str]
) -> tuple[str | None, Tensor | None, list[Column]]:
    """The name of the label column, the labels, and the other columns."""
    found = [column for column in columns if column.as_text]
    if not found:
        return None, None, columns
    first, others = found[0], found[1:]
    text = first.text
    numbers, odd = to_numbers(text.combine_chunks(), first.decimal)
    fractions = np.flatnonzero(np.isfinite(numbers) & (numbers != np.round(numbers)))
    if odd is None and wishes.label is None and len(fractions):
        column = Column(first.name, first.decimal)
        column.add(text.combine_chunks())
        notes.append(f"{first.name!r} holds fractions, so it is taken for a value and not for labels")
        return None, None, [column if each is first else each for each in columns if each not in others]
    if others:
        notes.append(f"left out, since labels are in {first.name!r} already: {listed([c.name for c in others])}")
    missing = pc.is_in(pc.utf8_lower(text), value_set=pa.array(["", "nan", "na", "n/a", "null"]))
    if count := pc.sum(missing).as_py():
        row = pc.index(missing, True).as_py()
        raise UserError(
            f"{file} must hold a label for every row, but {count:,} of {len(text):,} are missing in {first.name!r} "
            f"(the first in {where(row)}); fill them, or set data.label=none"
        )
    if odd is None and len(fractions):
        row = int(fractions[0])
        raise UserError(
            f"{file} must hold labels that are whole numbers or words, got {numbers[row]:g} in {where(row)}, "
            f"{first.name!r}; choose another data.label, or none"
        )
    labels = number_labels(np.array(text.to_pylist()) if odd is not None else numbers)
    return first.name, labels, [column for column in columns if column not in found]


def _leave_out_ids(columns: list[Column], wishes: Wishes, notes: list[str]) -> list[Column]:
    """The columns that say more of a row than which one it is."""
    if wishes.id is not None:
        return [column for column in columns if column.name != wishes.id]
    kept = []
    for column in columns:
        why = _why_id(column)
        alone = len(columns) == 1 and not _IDS.fullmatch(column.name.lower())
        if why is None or (column.is_numeric and alone):
            kept.append(column)
        else:
            notes.append(f"{column.name!r} left out: {why} (data.id=none or --id none keeps it)")
    return kept


def _why_id(column: Column) -> str | None:
    """Why a column only says which row it is; None if it may say more."""
    name = column.name.lower()
    named = _IDS.fullmatch(name) is not None
    if column.is_numeric:
        values = column.numbers
        if (
            len(values) >= _ENOUGH
            and (values[0] in (0, 1) or (values[0] == np.round(values[0]) and len(values) >= _MANY))
            and np.array_equal(values, values[0] + np.arange(len(values)))
        ):
            return f"it counts the rows from {values[0]:.0f}"
        whole = bool(np.all(values == np.round(values)))  # false where there is NaN
        if named and whole and (name in _SURE or len(np.unique(values)) == len(values) > 1):
            return "by its name and values it is the number of the row"
        return None
    if not column.is_text:
        return None
    text = column.text
    if named and (name in _SURE or len(pc.unique(text)) == len(text)):
        return "by its name and values it is the name of the row"
    letters = pc.sum(pc.match_substring_regex(text, "[A-Za-z]")).as_py()
    is_name = letters > 0.9 * len(text) and len(pc.unique(text)) == len(text) >= _ENOUGH
    return "it is text that differs in every row" if is_name else None


def _refuse_text(columns: Sequence[Column], file: str, where: Where) -> None:
    for column in columns:
        if column.bad is not None:
            row, cell = column.bad
            raise UserError(
                f"{file} must hold numbers: column {column.name!r} holds {cell[:40]!r} in {where(row)}; convert it, "
                f"leave it out with data.drop=['{column.name}'] (--drop of gedi fit), or take it for labels with "
                f"data.label='{column.name}' (--label)"
            )
