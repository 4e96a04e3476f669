"""A column of a table as it is read, before it is known what it is for."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: What stands for a value that is not there.
_MISSING = pa.array(["", "na", "nan", "n/a", "#n/a", "null", "none", "?"])
_TRUE, _FALSE = pa.array(["true"]), pa.array(["false"])


@dataclass(eq=False)
class Column:
    """One column: all numbers, or text, or numbers with a cell that is none.

    Attributes:
        name: as the header says, or by its place.
        decimal: the decimal point of its numbers.
        as_text: keep it as text, whatever it holds.
        bad: row and content of the first cell that is no number.
    """

    name: str
    decimal: str = "."
    as_text: bool = False
    bad: tuple[int, str] | None = None
    _numbers: list[np.ndarray] = field(default_factory=list)
    _text: list[pa.Array] = field(default_factory=list)
    _rows: int = 0

    def add(self, cells: pa.Array) -> None:
        """Go on with cells of text, or with numbers."""
        if self.bad is None and not self.as_text:
            values, place = to_numbers(cells, self.decimal)
            if place is None:
                self._numbers.append(values)
            else:
                self.bad = (self._rows + place, str(cells[place]))
        if self.as_text or (self.bad is not None and not self._numbers):  # text from its beginning
            self._text.append(cells)
        self._rows += len(cells)

    def __len__(self) -> int:
        return self._rows

    @property
    def is_numeric(self) -> bool:
        """Whether every cell is a number, or missing."""
        return self.bad is None and not self.as_text

    @property
    def is_text(self) -> bool:
        """Whether all of it was kept as text."""
        return sum(map(len, self._text)) == self._rows > 0

    @property
    def numbers(self) -> np.ndarray:
        """(n,) float64, NaN where there is nothing."""
        if len(self._numbers) > 1:
            self._numbers = [np.concatenate(self._numbers)]
        return self._numbers[0] if self._numbers else np.empty(0)

    @property
    def text(self) -> pa.ChunkedArray:
        """(n,) as it is written, blanks around it taken away."""
        return pc.utf8_trim_whitespace(pa.chunked_array(self._text, pa.string()))


def to_numbers(cells: pa.Array, decimal: str = ".") -> tuple[np.ndarray, int | None]:
    """Cells as numbers (n,), and the place of the first that is none.

    Example:
        >>> to_numbers(pa.array(["1", " 2.5", "NA"]))
        (array([1. , 2.5, nan]), None)
        >>> to_numbers(pa.array(["1,5", "2"]), decimal=",")[0], to_numbers(pa.array(["1", "x"]))[1]
        (array([1.5, 2. ]), 1)
    """
    if pa.types.is_float64(cells.type):
        return _floats(cells), None
    cells = pc.fill_null(pc.utf8_trim_whitespace(cells), "")
    if decimal != ".":
        thousands = pc.match_substring(cells, ".")
        if (place := pc.index(thousands, True).as_py()) >= 0:  # 1.234 may be a thousand or one and a bit
            return np.empty(0), place
        cells = pc.replace_substring(cells, decimal, ".")
    try:
        return _floats(cells), None
    except pa.ArrowInvalid:
        small = pc.utf8_lower(cells)
        for words, value in ((_MISSING, "nan"), (_TRUE, "1"), (_FALSE, "0")):
            cells = pc.if_else(pc.is_in(small, value_set=words), value, cells)
    try:
        return _floats(cells), None
    except pa.ArrowInvalid:
        return np.empty(0), _first_that_fails(cells)


def _floats(cells: pa.Array) -> np.ndarray:
    values: np.ndarray = pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False)
    return values


def _first_that_fails(cells: pa.Array) -> int:
    """By halves: the place of the first cell that cannot be cast."""
    low, high = 0, len(cells)  # the cells before low can be cast, those before high cannot
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _floats(cells[low:middle])
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low
