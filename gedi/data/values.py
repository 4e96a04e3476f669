"""Which numbers can be learnt from: real, finite, and of a size that float32 can square."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gedi.errors import UserError

#: The largest number that is taken: squares of more overflow float32.
MOST = 1e18
_APART = 1e6  # times farther off than nearly all others: beside it they are one point
_TAIL = 8.0  # standard deviations that a value this far off has at least
_DIGITS = 1e-6  # of a column's size: a spread below it is lost in float32

#: Where a row is, in words: "line 7".
Where = Callable[[int], str]


def check_columns(columns: Sequence[np.ndarray], names: Sequence[str], where: Where, file: str) -> list[str]:
    """Refuse numbers that cannot be learnt from, by row and column; what is strange but can be used is told in notes.

    Args:
        columns: numbers (n,) each.
        names: of the columns.
        where: words for a row.
        file: what the errors call them all.
    """
    bad = np.logical_or.reduce([~np.isfinite(column) for column in columns])
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        name = next(name for name, column in zip(names, columns, strict=True) if not np.isfinite(column[first]))
        raise UserError(
            f"{file} must be finite: {int(bad.sum())} of {len(bad)} rows hold NaN or infinity, or nothing "
            f"(the first is {where(first)}, {name}); drop or fill those rows"
        )
    constant = []
    notes = []
    for name, column in zip(names, columns, strict=True):
        low, high = float(column.min()), float(column.max())
        if low == high:
            constant.append(name)
        _check_scale(column, low, high, name, where, file)
    if constant:
        notes.append(f"constant, so without effect: {listed(constant)}")
    return notes


def precision_of(columns: Sequence[np.ndarray]) -> type[np.floating[Any]]:
    """``float32``; ``float64`` until they are centred for columns that float32 would drown, as seconds since 1970.

    Example:
        >>> precision_of([np.array([1.0, 2.0])]).__name__, precision_of([np.array([1.7e9, 1.7e9 + 1])]).__name__
        ('float32', 'float64')
    """
    for column in columns:
        low, high = float(column.min()), float(column.max())
        if 0 < high - low < _DIGITS * max(abs(low), abs(high)):
            return np.float64
    return np.float32


def _check_scale(column: np.ndarray, low: float, high: float, name: str, where: Where, file: str) -> None:
    size = max(abs(low), abs(high))
    if size > MOST:
        row = int(np.abs(column).argmax())
        raise UserError(
            f"{file} must hold numbers up to {MOST:g}, which float32 can square, got {column[row]:g} in {where(row)}, "
            f"{name}; mend it, drop the row or rescale the column"
        )
    spread = float(column.std())
    centre = float(column.mean())
    if max(high - centre, centre - low) <= _TAIL * spread:
        return
    far = np.abs(column - np.median(column))
    others = np.sort(far[far > 0])
    usual = others[int(0.99 * (len(others) - 1))]
    row = int(far.argmax())
    if far[row] > _APART * usual:
        raise UserError(
            f"{file} must not hold a number a million times farther off than the others of its column: "
            f"{column[row]:g} in {where(row)}, {name}, the others are within {usual:.3g} of {np.median(column):.3g}; "
            "mend it or drop the row"
        )


def listed(names: Sequence[str], most: int = 5) -> str:
    """A few names and how many more.

    Example:
        >>> listed(["a", "b", "c"], most=2)
        'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
