"""Frames of pandas, polars and others: their columns as numbers, by name, and numbers as columns again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal, cast

import narwhals as nw
import numpy as np

from gedi.errors import UserError

Missing = Literal["refuse", "fill"]
_MOST = 50  # different words of a column that is a category


@dataclass(frozen=True)
class FrameColumn:
    """One column of a frame: a number in each row, or one of some words, which becomes a column of 0 and 1 each.

    Attributes:
        name: as the frame calls it.
        words: of a category, in their order; None for numbers.
        fill: what stands for a number that is missing; None: none may be. Where a word is missing, and may be, all of
            its columns are 0.
        whole: whether the numbers are true or false.
    """

    name: str
    words: tuple[str, ...] | None = None
    fill: float | None = None
    whole: bool = False

    @property
    def width(self) -> int:
        """How many columns of numbers it becomes."""
        return 1 if self.words is None else len(self.words)


@dataclass(frozen=True)
class FrameColumns:
    """How the columns of frames become numbers, learnt from one frame and used for others like it.

    Example:
        >>> import pyarrow as pa
        >>> frame = as_frame(pa.table({"size": [1.0, 2.0, 3.0], "kind": ["a", "b", "a"]}))
        >>> columns = FrameColumns.of(frame)
        >>> columns.numbers(frame)
        array([[1., 1., 0.],
               [2., 0., 1.],
               [3., 1., 0.]])
        >>> columns.back(columns.numbers(frame))["kind"]
        array(['a', 'b', 'a'], dtype=object)
    """

    columns: tuple[FrameColumn, ...]

    @classmethod
    def of(cls, frame: Any, missing: Missing = "refuse") -> "FrameColumns":
        """Look at every column of a frame.

        Args:
            frame: as :func:`as_frame` gives it.
            missing: ``fill`` puts the median for numbers that are missing, and none of the words for words.
        """
        return cls(tuple(_column(frame[name], name, missing) for name in frame.columns))

    @property
    def names(self) -> list[str]:
        """What each column of numbers is called."""
        return [
            column.name if word is None else f"{column.name}={word}"
            for column in self.columns
            for word in column.words or (None,)
        ]

    @property
    def apart(self) -> list[float]:
        """How far apart two different words are in each column of numbers: 0 where it holds numbers."""
        far = [2**0.5 if column.words else 1.0 if column.whole else 0.0 for column in self.columns]
        return [own for column, own in zip(self.columns, far, strict=True) for _ in range(column.width)]

    def notes(self, frame: Any) -> list[str]:
        """What is done to columns of a frame that are no plain numbers, in words."""
        said = []
        for column in self.columns:
            if column.words is not None:
                said.append(f"column {column.name!r} is words: a column of 0 and 1 for each of its {column.width}")
            if lacking := _lacking(frame[column.name]):
                how = f"its median {column.fill:g}" if column.words is None else "none of its words"
                said.append(f"column {column.name!r} lacks {lacking} of {len(frame)} values, filled with {how}")
        return said

    def numbers(self, frame: Any) -> np.ndarray:
        """The columns of a frame as numbers (n, d) float64, found by their names."""
        absent = [column.name for column in self.columns if column.name not in frame.columns]
        if absent:
            raise UserError(
                f"the frame must have the columns that were fitted, but has no {', '.join(map(repr, absent[:5]))}"
            )
        return np.concatenate([_numbers(frame[column.name], column) for column in self.columns], axis=1)

    def back(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Columns by name of numbers (n, d); of words the nearest."""
        found, at = {}, 0
        for column in self.columns:
            part = rows[:, at : at + column.width]
            at += column.width
            if column.words is not None:
                found[column.name] = np.array(column.words, dtype=object)[part.argmax(axis=1)]
            else:
                found[column.name] = part[:, 0] > 0.5 if column.whole else part[:, 0]
        return found

    def written(self) -> list[dict[str, Any]]:
        """As plain data."""
        return [asdict(column) for column in self.columns]

    @classmethod
    def read(cls, written: Sequence[Mapping[str, Any]]) -> "FrameColumns":
        """From plain data."""
        return cls(tuple(FrameColumn(**{**c, "words": c["words"] and tuple(c["words"])}) for c in written))


def as_frame(given: Any) -> Any | None:
    """What is given as a frame with names for columns; None if it is no frame."""
    try:
        frame = nw.from_native(given, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            raise UserError("a frame must hold its rows, but this one is lazy; give what its collect() makes")
        if not isinstance(frame, nw.DataFrame):
            return None
        names = [str(name) for name in frame.columns]
    except nw.exceptions.DuplicateError:
        names = ["", ""]
    if len(set(names)) < len(names):
        raise UserError("columns of a frame must have different names, but some are called alike; rename them")
    if not names:
        raise UserError("a frame must have at least one column, got 0 feature(s)")
    return frame


def with_text_names(given: Any) -> Any:
    """A frame whose columns are called by text: 0 becomes "0", as pandas numbers columns without names."""
    if not (hasattr(given, "set_axis") and hasattr(given, "columns")):  # of pandas alone
        return given
    if all(isinstance(name, str) for name in given.columns):
        return given
    return given.set_axis([str(name) for name in given.columns], axis=1)


def kind_of_frame(frame: Any) -> str:
    """The library that made a frame: ``pandas``, ``polars``, ``pyarrow``, ..."""
    return str(nw.get_native_namespace(frame).__name__)


def make_frame(columns: Mapping[str, np.ndarray], kind: str) -> Any:
    """A frame of a library, by its name."""
    plain: dict[str, Any] = {name: values.tolist() for name, values in columns.items()}
    return nw.from_dict(plain, backend=cast(Any, kind)).to_native()


def _column(series: Any, name: str, missing: Missing) -> FrameColumn:
    if lacking := _lacking(series) if missing == "refuse" else 0:
        raise UserError(
            f"column {name!r} must hold a value in every row, but {lacking} of {len(series)} are missing (NaN): fill "
            'them, drop those rows, or set missing="fill"'
        )
    if (values := _plain(series)) is not None:
        if np.isnan(values).all():
            raise UserError(f"column {name!r} must hold numbers, but holds nothing; leave it out")
        fill = float(np.nanmedian(values)) if missing == "fill" else None
        return FrameColumn(name, fill=fill, whole=series.dtype == nw.Boolean)
    words = sorted(set(_words(series, name)))
    if not 0 < len(words) <= _MOST or len(words) > max(2, len(series) // 2):
        raise UserError(
            f"column {name!r} must hold numbers, or words of at most {_MOST} kinds, got {len(words)} in "
            f"{len(series)} rows; leave it out, or make numbers of it"
        )
    return FrameColumn(name, tuple(words), fill=0.0 if missing == "fill" else None)


def _words(series: Any, name: str) -> list[str]:
    """The words of a column, those that are missing left out."""
    held = series.drop_nulls().to_list()
    kind = series.dtype
    if kind == nw.Object:
        kind = next((type(word).__name__ for word in held if not isinstance(word, str)), nw.String)
    if kind not in (nw.String, nw.Categorical, nw.Enum):
        raise UserError(f"column {name!r} must hold numbers or words, got {kind}; make numbers of it, or leave it out")
    return [str(word) for word in held]


def _lacking(series: Any) -> int:
    """How many values are missing."""
    values = _plain(series)
    return int(series.is_null().sum() if values is None else np.isnan(values).sum())


def _plain(series: Any) -> np.ndarray | None:
    """Numbers (n,), NaN where there is nothing; None if they are none."""
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return np.array(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    held = series.to_list() if series.dtype == nw.Object else [""]
    return np.array(held, dtype=np.float64) if all(x is None or isinstance(x, Real) for x in held) else None


def _numbers(series: Any, column: FrameColumn) -> np.ndarray:
    """A column as numbers (n, width)."""
    if column.words is None:
        values = _plain(series)
        if values is None:
            raise UserError(f"column {column.name!r} must hold numbers, as it did, got {series.dtype}")
        filled: np.ndarray = values if column.fill is None else np.where(np.isnan(values), column.fill, values)
        return filled[:, None]
    missing = series.is_null().to_numpy()
    words = np.array([str(word) for word in series.to_list()], dtype=object)
    found: np.ndarray = (words[:, None] == np.array(column.words, dtype=object)) & ~missing[:, None]
    strange = np.flatnonzero(~found.any(axis=1) & ~(missing & (column.fill is not None)))
    if len(strange):
        given = "nothing" if missing[strange[0]] else repr(words[strange[0]][:40])
        raise UserError(
            f"column {column.name!r} must hold words that were fitted ({', '.join(column.words[:5])}), got {given} in "
            f"row {strange[0]}"
        )
    return found.astype(np.float64)
