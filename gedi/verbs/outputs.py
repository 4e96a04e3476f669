"""Rows of answers, written as they come: CSV or Parquet, whole or not at all."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from gedi.errors import UserError

_SUFFIXES = (".csv", ".tsv", ".parquet")


class RowWriter:
    """Takes tables of columns one after the other. A file gets its name only when all is written.

    Args:
        path: ``.csv``, ``.tsv`` or ``.parquet``; None is standard output, as CSV.
    """

    def __init__(self, path: Path | None) -> None:
        if path is not None and path.suffix.lower() not in _SUFFIXES:
            raise UserError(f"--out must end in .csv, .tsv or .parquet, got {path.name!r}")
        self.path = path
        self._partial = None if path is None else path.with_name(f".{path.name}.{os.getpid()}.partial")
        self._writer: Any = None

    def __enter__(self) -> "RowWriter":
        if self._partial is not None:
            self._partial.parent.mkdir(parents=True, exist_ok=True)
        return self

    def write(self, columns: Mapping[str, Any]) -> None:
        """Some more rows; the columns are the same each time."""
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        if self._writer is None:
            self._writer = self._opened(table.schema)
        self._writer.write_table(table)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()
        if self._partial is None or self.path is None:
            return
        if kind is None and self._writer is not None:
            self._partial.replace(self.path)
        else:
            self._partial.unlink(missing_ok=True)

    def _opened(self, schema: pa.Schema) -> Any:
        if self.path is not None and self.path.suffix.lower() == ".parquet":
            return pq.ParquetWriter(self._partial, schema)
        delimiter = "\t" if self.path is not None and self.path.suffix.lower() == ".tsv" else ","
        options = pa_csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
        return pa_csv.CSVWriter(self._partial or sys.stdout.buffer, schema, write_options=options)
