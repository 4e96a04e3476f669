"""Tables in Parquet files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gedi.data.columns import Column
from gedi.data.delimited import Rows, chosen
from gedi.data.limits import check_size
from gedi.errors import UserError


def read_parquet(path: Path, as_text: Callable[[str], bool], rows: Rows | None = None) -> list[Column]:
    """The columns of a Parquet file; a column that is neither numbers nor text is refused when it is used.

    Args:
        path: the file.
        as_text: of a column's name, whether it is kept as text whatever it holds.
        rows: numbers of the rows to keep, in rising order; None keeps all.
    """
    with opened_parquet(path) as file:
        if rows is None:
            check_size(claimed_size(file), path.name)
        columns = [Column(name, as_text=as_text(name)) for name in file.schema_arrow.names]
        at = 0
        for batch in file.iter_batches():
            kept = chosen(batch, rows, at)
            at += len(batch)
            for column, cells in zip(columns, kept.columns, strict=True):
                column.add(plain_cells(cells, column.as_text, column.name, path.name))
        return columns


def claimed_size(file: pq.ParquetFile) -> int:
    """Bytes that the content of a file would take: few can stand for many equal rows."""
    about, width = file.metadata, max(1, len(file.schema_arrow.names))
    groups = range(about.num_row_groups)
    return int(max(about.num_rows * width * 8, sum(about.row_group(i).total_byte_size for i in groups)))


@contextmanager
def opened_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """A Parquet file; whatever is wrong with it becomes one line."""
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except UserError:
        raise
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        said = " ".join(str(error).split())[:200]
        raise UserError(f"{path.name} cannot be read as .parquet: {said}; write it again") from None


def plain_cells(cells: pa.Array, as_text: bool, column: str, file: str) -> pa.Array:
    """Cells as numbers or as text; anything else is refused."""
    kind = cells.type
    if pa.types.is_dictionary(kind):
        return plain_cells(cells.dictionary_decode(), as_text, column, file)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not (is_number or pa.types.is_decimal(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise UserError(f"{file} must hold numbers and text, but column {column!r} is {kind}; convert it, or drop it")
    if is_number and not as_text:
        return pc.cast(cells, pa.float64(), safe=False)  # whole numbers beyond 2^53 are rounded
    return pc.fill_null(pc.cast(cells, pa.string()), "")
