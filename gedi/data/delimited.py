"""Tables of text, .csv and .tsv: encoding, delimiter, decimal point and header are found out, and told."""

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv as pa_csv

from gedi.data.columns import Column
from gedi.data.limits import check_size
from gedi.errors import UserError

_MARKS = {  # byte order marks; the longer ones first, since they begin like others
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_EMPTY = ("", "na", "nan", "n/a", "#n/a", "null", "none", "?")
_BLOCK = 2**24  # bytes read at a time; no row may be longer
_SAMPLE = 2**18  # bytes that are looked at to find out what the file is like
_LINES = 100
Rows = np.ndarray  # numbers of rows, in rising order


@dataclass(frozen=True)
class Delimited:
    """A table of text.

    Attributes:
        columns: all of them.
        header: whether the first line is names.
        about: what was found out, in words.
    """

    columns: list[Column]
    header: bool
    about: str

    def where(self, row: int) -> str:
        """Words for a row."""
        return f"line {row + 1 + self.header}"


@dataclass(frozen=True)
class Layout:
    """What a table of text is like.

    Attributes:
        names: of the columns; by their places where there is no header.
        header: whether the first line is names.
        decimal: the decimal point.
        delimiter, encoding: of the text.
        about: what was found out, in words.
    """

    names: list[str]
    header: bool
    decimal: str
    delimiter: str
    encoding: str
    about: str


def read_delimited(
    path: Path, delimiter: str | None, as_text: Callable[[str], bool], rows: Rows | None = None
) -> Delimited:
    """Read a table of text.

    Args:
        path: the file.
        delimiter: what is between the values; None: it is found out.
        as_text: of a column's name, whether it is kept as text whatever it holds.
        rows: numbers of the rows to keep, in rising order; None keeps all.
    """
    if rows is None:
        check_size(path.stat().st_size, path.name)
    layout = layout_of_text(path, delimiter)
    columns = [Column(name, layout.decimal, as_text(name)) for name in layout.names]
    at = 0
    for batch in text_batches(path, layout):
        kept = chosen(batch, rows, at)
        at += len(batch)
        for column, cells in zip(columns, kept.columns, strict=True):
            column.add(cells)
    return Delimited(columns, layout.header, layout.about)


def chosen(batch: pa.RecordBatch, rows: Rows | None, at: int) -> pa.RecordBatch:
    """Those of a batch's rows, the first of which has number ``at``, that are wanted."""
    if rows is None:
        return batch
    low, high = np.searchsorted(rows, [at, at + len(batch)])
    return batch.take(pa.array(rows[low:high] - at))


def layout_of_text(path: Path, delimiter: str | None) -> Layout:
    """What a table of text is like, by its first lines; text in no encoding that is known is refused."""
    encoding, mark = _encoding(path)
    lines = _sample(path, encoding)
    if not lines:
        raise UserError(f"{path.name} must hold a header line and at least one row, but is empty")
    delimiter = _delimiter(path.name, lines, delimiter)
    rows = _cells(path.name, lines, delimiter)
    comma = delimiter != "," and any(_DECIMAL_COMMA.fullmatch(cell) for row in rows for cell in row)
    decimal = "," if comma else "."
    header = _has_header(rows, decimal)
    if header and len(rows) == 1:
        raise UserError(f"{path.name} must hold a header line and at least one row, got one line of names")
    names = rows[0] if header else [f"column {i + 1}" for i in range(len(rows[0]))]
    found = [_DELIMITERS.get(delimiter, repr(delimiter)) if len(names) > 1 else "one column"]
    found += ["header"] if header else ["no header (the first line is data)"]
    found += ["decimal comma"] if comma else []
    found += [f"{mark} with a byte order mark"] if mark else []
    return Layout(names, header, decimal, delimiter, encoding, ", ".join(found))


def _encoding(path: Path) -> tuple[str, str]:
    """The encoding, and its name if there is a byte order mark; text that is in none is refused."""
    with path.open("rb") as file:
        start = file.read(4)
        encoding = next((known for mark, known in _MARKS.items() if start.startswith(mark)), "utf-8")
        if encoding == "utf-32":
            raise UserError(f"{path.name} must be text in UTF-8, but is UTF-32; save it as UTF-8")
        file.seek(0)
        decoder = codecs.getincrementaldecoder(encoding)()
        line = 1
        while part := file.read(_BLOCK):
            try:
                text = decoder.decode(part)
            except UnicodeDecodeError as error:
                line += part[: error.start].count(b"\n")
                raise _not_text(path, line, part[error.start : error.start + 1], encoding) from None
            if "\0" in text:
                raise UserError(
                    f"{path.name} must be text, but holds zero bytes: it is binary, or UTF-16 without a byte order "
                    "mark; save it as UTF-8"
                )
            line += text.count("\n")
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise _not_text(path, line, b"", encoding) from None
    return encoding, {"utf-8-sig": "UTF-8", "utf-16": "UTF-16"}.get(encoding, "")


def _not_text(path: Path, line: int, byte: bytes, encoding: str) -> UserError:
    which = f"byte 0x{byte.hex()} in line {line} is not (Latin-1, perhaps)" if byte else f"line {line} is cut off"
    name = "UTF-16" if encoding == "utf-16" else "UTF-8"
    return UserError(f"{path.name} must be text in {name}, but {which}; save it as UTF-8")


def _sample(path: Path, encoding: str) -> list[str]:
    """The first lines, blank ones left out."""
    with path.open(encoding=encoding, newline="") as file:
        text = file.read(_SAMPLE)
        while text.count("\n") + text.count("\r") < 2 and len(text) < _BLOCK and (more := file.read(_SAMPLE)):
            text += more
        whole = not file.read(1)
    lines = [line for line in io.StringIO(text, newline=None) if line.strip()]
    return lines[: _LINES + 1] if whole or len(lines) < 2 else lines[:-1][: _LINES + 1]


def _delimiter(name: str, lines: Sequence[str], given: str | None) -> str:
    """The one given, or the one that cuts every line into equally many values, and into most."""
    if given is not None:
        if len(given) != 1 or given in '"\r\n' or not given.isascii():
            raise UserError(f"data.delimiter must be one character such as , or ; or a tab, got {given!r}")
        return given
    counts = {each: [len(row) for row in _cells(name, lines, each)] for each in _DELIMITERS}
    even = {each: count[0] for each, count in counts.items() if len(set(count)) == 1 and count[0] > 1}
    if even:
        return max(even, key=lambda each: even[each])
    most = max(_DELIMITERS, key=lambda each: counts[each][0])  # ragged, or one column; the reader names the line
    return most


def _cells(name: str, lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error as error:
        raise UserError(f"{name} must be a table, but cannot be read ({error}); is it one?") from None


def _has_header(rows: Sequence[Sequence[str]], decimal: str) -> bool:
    """Whether the first row is names.

    It is if a cell that is no number stands above numbers; or if none of its cells is a number, and none missing.
    A row of numbers is data.

    Example:
        >>> _has_header([["a", "b"], ["1", "2"]], "."), _has_header([["3", "4"], ["1", "2"]], ".")
        (True, False)
        >>> _has_header([["5.1", "setosa"], ["4.9", "setosa"]], "."), _has_header([["", "a"], ["0", "1"]], ".")
        (False, True)
    """

    def is_number(cell: str) -> bool:
        return _NUMBER.fullmatch(cell.replace(",", ".") if decimal == "," else cell) is not None

    first = rows[0]
    words = [i for i, cell in enumerate(first) if not is_number(cell) and cell.lower() not in _EMPTY]
    if any(i < len(row) and is_number(row[i]) for i in words for row in rows[1:]):
        return True
    return len(words) == len(first)


def text_batches(path: Path, layout: Layout) -> Iterator[pa.RecordBatch]:
    """All rows as text, a block of the file at a time; columns are called by their numbers."""
    names = [str(i) for i in range(len(layout.names))]  # a header may hold a name twice
    encoding = layout.encoding
    faults: list[str] = []

    def ragged(row: pa_csv.InvalidRow) -> str:
        line = "a line" if row.number is None else f"line {row.number}"
        faults.append(f"{line} must hold {row.expected_columns} values like the first, got {row.actual_columns}")
        return "error"

    with path.open("rb") as file:
        blank = _blank_lines(path, encoding)
        try:
            reader = pa_csv.open_csv(
                file,
                pa_csv.ReadOptions(
                    use_threads=False,  # so that it can tell the line of a fault
                    block_size=_BLOCK,
                    column_names=names,
                    skip_rows=blank + layout.header,
                    encoding="utf8" if encoding == "utf-8-sig" else encoding,  # it knows that mark
                ),
                pa_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True, invalid_row_handler=ragged),
                pa_csv.ConvertOptions(column_types={name: pa.string() for name in names}, strings_can_be_null=False),
            )
            yield from reader
        except pa.ArrowInvalid as error:
            said = faults[0] if faults else f"cannot be read as a table ({' '.join(str(error).split())[:200]})"
            raise UserError(f"{path.name} {said}; mend it") from None


def _blank_lines(path: Path, encoding: str) -> int:
    """Lines before the first that is not blank."""
    with path.open(encoding=encoding) as file:
        for number, line in enumerate(file):
            if line.strip():
                return number
    return 0
