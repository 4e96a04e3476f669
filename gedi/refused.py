"""What scikit-learn refuses, said with the place and the remedy; and arrays it would take for what they are not."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gedi.errors import UserError


def plain_array(given: Any) -> Any:
    """What was given; of a masked array what is masked is missing (NaN), and dates are refused.

    Example:
        >>> plain_array(np.ma.masked_array([[1, 2]], mask=[[False, True]]))
        array([[ 1., nan]])
    """
    kind = getattr(getattr(given, "dtype", None), "kind", "")
    if kind in "Mm" and isinstance(given, np.ndarray):
        raise UserError(f"X must hold numbers, got dates or times ({given.dtype}); make numbers of them")
    if isinstance(given, np.ma.MaskedArray):
        plain: np.ndarray = given.data
        hidden = np.ma.getmaskarray(given)
        return np.where(hidden, np.nan, plain) if kind in "biuf" and hidden.any() else plain
    return given


def clearer(error: ValueError, given: Any, missing: str, names: Sequence[str] = ()) -> ValueError:
    """An error of scikit-learn's checks, with the first place that is at fault where it can be found.

    Args:
        error: what was raised.
        given: rows.
        missing: ``refuse`` or ``fill``.
        names: of the columns; none: their numbers.
    """
    said = str(error)
    if "could not convert string to float" in said:
        return _word(given) or error
    if "NaN" not in said and "infinity" not in said:
        return error
    try:
        rows = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return error
    bad = np.isinf(rows) if missing == "fill" else ~np.isfinite(rows)
    if rows.ndim != 2 or not bad.any():
        return error
    row, column = (int(place) for place in np.argwhere(bad)[0])
    name = repr(names[column]) if len(names) > column else str(column)
    nan = bool(np.isnan(rows[bad]).any())
    remedy = 'drop or fill those rows, or set missing="fill"' if nan else "mend or drop those rows"
    return UserError(
        f"X must be finite, but {int(bad.any(axis=1).sum())} of {len(rows)} rows hold {'NaN' if nan else 'infinity'} "
        f"(the first is row {row}, column {name}); {remedy}"
    )


def _word(given: Any) -> UserError | None:
    """The first word of an array that should hold numbers."""
    cells = np.asarray(given, dtype=object)
    if cells.ndim != 2:
        return None
    for row, held in enumerate(cells):
        for column, cell in enumerate(held):
            try:
                float(cell)
            except (TypeError, ValueError):
                return UserError(
                    f"X must hold numbers, got {str(cell)[:40]!r} in row {row}, column {column}; columns of words are "
                    "taken from a frame of pandas, polars or pyarrow"
                )
    return None
