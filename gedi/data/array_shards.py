"""Shards that are .npy files, memory-mapped."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from gedi.data.mapped import Stamp, mapped, stamp_of
from gedi.data.remember import remembered
from gedi.errors import UserError

_CHUNK = 2**24  # bytes looked at at a time


@dataclass(frozen=True)
class ArrayShard:
    """The rows of one ``.npy`` file, images with their channels in front. Nothing in the file can run code.

    Attributes:
        path, stamp: the file, as it was when it was opened.
        offset: bytes before the first row.
        shape, dtype: of the array in the file.
        channels_last: whether rows are images (h, w, c).
    """

    path: Path
    stamp: Stamp
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype
    channels_last: bool = False

    @classmethod
    def open(cls, path: Path) -> "ArrayShard":
        """A file of which only the header is read."""
        stamp = stamp_of(path)
        try:
            held = np.lib.format.open_memmap(path, mode="r")  # takes no pickles
        except (ValueError, OSError, EOFError) as error:
            raise UserError(f"{str(path)!r} cannot be read as .npy: {error}; write it again") from None
        if held.ndim < 2 or len(held) == 0:
            raise UserError(f"{str(path)!r} must hold one array of rows (n, ...) with n > 0; write it again")
        if not held.flags.c_contiguous:
            raise UserError(f"{str(path)!r} must hold its rows one after another, but is in Fortran order; use order C")
        return cls(path, stamp, held.offset, held.shape, held.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Of one row, images with their channels in front."""
        row = self.shape[1:]
        return (row[2], row[0], row[1]) if self.channels_last else (1, *row) if len(row) == 2 else row

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Those rows, (k, *row_shape)."""
        values: np.ndarray = self._values()[rows]
        return values.transpose(0, 3, 1, 2) if self.channels_last else values.reshape(len(rows), *self.row_shape)

    def summary(self) -> "Summary":
        """What the values are like: a table's column by column, of images all together; the file is read once."""
        columns = self.shape[1] if len(self.shape) == 2 else 1

        def look() -> dict[str, np.ndarray]:
            values, rows = self._values(), max(1, _CHUNK // (self.dtype.itemsize * int(np.prod(self.shape[1:]))))
            with np.errstate(invalid="ignore"):  # infinity is for the caller to refuse
                parts = [
                    Summary.of(values[start : start + rows].reshape(-1, columns).astype(np.float64))
                    for start in range(0, len(self), rows)
                ]
                return vars(Summary.joined(parts))

        return Summary(**remembered(self.path, self.stamp, "summary", look))

    def _values(self) -> np.ndarray:
        held = np.frombuffer(mapped(self.path, self.stamp), self.dtype, int(np.prod(self.shape)), self.offset)
        return held.reshape(self.shape)


@dataclass(frozen=True)
class Summary:
    """Rows (n, d) in a few figures, column by column; of a column with NaN they are NaN.

    Example:
        >>> x = np.arange(12.0).reshape(6, 2)
        >>> both = Summary.joined([Summary.of(x[:1]), Summary.of(x[1:])])
        >>> both.mean, both.squares / both.n, x.var(axis=0)
        (array([5., 6.]), array([11.66666667, 11.66666667]), array([11.66666667, 11.66666667]))
    """

    n: np.ndarray  # ()
    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    squares: np.ndarray  # sum of squared distances from the mean

    @classmethod
    def of(cls, x: np.ndarray) -> "Summary":
        """Of rows in memory."""
        mean = x.mean(axis=0)
        return cls(np.array(len(x)), x.min(axis=0), x.max(axis=0), mean, np.square(x - mean).sum(axis=0))

    @classmethod
    def joined(cls, parts: Sequence["Summary"]) -> "Summary":
        """Of all rows, from the summaries of parts of them."""
        n = np.sum([part.n for part in parts])
        mean = np.sum([part.n / n * part.mean for part in parts], axis=0)
        return cls(
            n,
            np.min([part.low for part in parts], axis=0),
            np.max([part.high for part in parts], axis=0),
            mean,
            np.sum([part.squares + part.n * np.square(part.mean - mean) for part in parts], axis=0),
        )


def write_shards(
    x: np.ndarray | Tensor,
    folder: str | Path,
    y: np.ndarray | Tensor | None = None,
    *,
    per_shard: int = 10_000,
    test: bool = False,
) -> list[Path]:
    """Write rows as shards ``x-0000.npy``, ``x-0001.npy``, ..., and labels as ``y-0000.npy``, ... beside them.

    Args:
        x: (n, ...); may be memory-mapped, a shard is copied at a time.
        folder: made if it is not there; must not hold such shards yet.
        y: (n,) labels, if there are any.
        per_shard: rows in a shard, but for the last.
        test: whether these are the test part, ``test-x-0000.npy``, ...

    Returns:
        The files of rows, in order.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = write_shards(np.zeros((10, 28, 28), np.uint8), folder, np.arange(10), per_shard=4)
        ...     [file.name for file in files], np.load(files[2].with_name("y-0002.npy"))
        (['x-0000.npy', 'x-0001.npy', 'x-0002.npy'], array([8, 9]))
    """
    if per_shard < 1:
        raise UserError(f"per_shard must be >= 1, got {per_shard}")
    if y is not None and len(y) != len(x):
        raise UserError(f"there must be one label a row, got {len(x)} rows and {len(y)} labels")
    part, folder = "test-" if test else "", Path(folder).expanduser()
    if any(folder.glob(f"{part}[xy]-*.npy")):
        raise UserError(f"{str(folder)!r} must not hold shards {part}x-*.npy already; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number, start in enumerate(range(0, len(x), per_shard)):
        for kind, rows in (("y", y), ("x", x)):
            if rows is not None:
                path = folder / f"{part}{kind}-{number:04}.npy"
                np.save(path, np.ascontiguousarray(rows[start : start + per_shard]), allow_pickle=False)
        files.append(path)
    return files
