"""Rows that are spread over many files, and read when they are asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from gedi.data.mapped import Stamp
from gedi.types import Points


class Shard(Protocol):
    """One file of rows."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def stamp(self) -> Stamp:
        """The file as it was when it was opened."""

    def __len__(self) -> int: ...

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Those rows (k, *shape) as they are stored; row numbers (k,) rise, and may repeat."""


class Shards:
    """The rows of many files behind one another, like a tensor (n, *shape) that is never in memory.

    Indexing by a tensor or a slice reads the rows asked for and no other: each file once, its rows in rising
    order, and what comes back in the order asked for. So any order of rows is as good as any other, and where a
    training stands is its place in that order and nothing more.

    Args:
        files: the shards, in order.
        shape: of one row.
        dtype: of what indexing gives, ``uint8`` or ``float32``.
        rows: (n,) which rows there are, in which order; None: all.
        device: where rows go once they are read.

    Example:
        >>> from gedi.data.array_shards import ArrayShard, write_shards
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = write_shards(np.arange(10.0)[:, None], folder, per_shard=4)
        ...     shards = Shards([ArrayShard.open(path) for path in written], [1], torch.float32)
        ...     shards.shape, shards[torch.tensor([9, 0, 5])].flatten(), shards[3:5].flatten()
        (torch.Size([10, 1]), tensor([9., 0., 5.]), tensor([3., 4.]))
    """

    def __init__(
        self,
        files: Sequence[Shard],
        shape: Sequence[int],
        dtype: torch.dtype,
        rows: Tensor | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.dtype = dtype
        self.device = torch.device(device)
        self._files = files
        self._ends = np.cumsum([len(file) for file in files], dtype=np.int64)  # the first row after each file
        self._rows = rows
        n = len(rows) if rows is not None else int(self._ends[-1]) if files else 0
        self.shape = torch.Size([n, *shape])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        wanted = self._wanted(index).numpy()  # (k,)
        order = np.argsort(wanted, kind="stable")
        rising = wanted[order]
        of_file = np.searchsorted(self._ends, rising, side="right")
        found = np.empty((len(wanted), *self.shape[1:]), np.uint8 if self.dtype == torch.uint8 else np.float32)
        starts = np.flatnonzero(np.diff(of_file, prepend=-1))
        for start, stop in zip(starts, np.append(starts, len(wanted))[1:], strict=True):
            file = of_file[start]
            first = self._ends[file - 1] if file else 0
            found[order[start:stop]] = self._files[file].read(rising[start:stop] - first)
        return torch.from_numpy(found).to(self.device)

    @property
    def files(self) -> list[tuple[Path, Stamp]]:
        """Every file, as it was when it was opened."""
        return [(file.path, file.stamp) for file in self._files]

    @property
    def rows(self) -> Tensor | None:
        """Which rows of the files these are, in which order, (n,); None: all."""
        return self._rows

    def take(self, index: Tensor) -> "Shards":
        """Some of the rows, in the order of the index; nothing is read."""
        return Shards(self._files, self.shape[1:], self.dtype, self._wanted(index), self.device)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "Shards":
        """The same rows, which go to a device once they are read."""
        return Shards(self._files, self.shape[1:], self.dtype, self._rows, device)

    def is_floating_point(self) -> bool:
        """Whether rows are floats, as tensors say it."""
        return self.dtype.is_floating_point

    def _wanted(self, index: Tensor | slice) -> Tensor:
        """Numbers (k,) of the rows asked for, counted through all files."""
        n = len(self)
        if isinstance(index, slice):
            chosen = torch.from_numpy(np.arange(*index.indices(n)))
        else:
            chosen = index.cpu()
            if chosen.dtype == torch.bool and chosen.shape == (n,):
                chosen = chosen.nonzero()[:, 0]
            if chosen.dim() != 1 or chosen.dtype not in (torch.int64, torch.int32):
                raise IndexError(f"shards take an index (k,) of whole numbers, got {chosen.dtype} {tuple(index.shape)}")
            if len(chosen) and not (-n <= int(chosen.min()) and int(chosen.max()) < n):
                raise IndexError(f"index must be from {-n} to {n - 1}, got {int(chosen.min())} to {int(chosen.max())}")
            chosen = torch.where(chosen < 0, chosen + n, chosen).long()
        return chosen if self._rows is None else self._rows[chosen]


def is_sharded(points: Points) -> bool:
    """Whether points are read from shards, so that taking all of them may be more than memory holds."""
    return isinstance(getattr(points, "stored", None), Shards)


def spread(n: int, most: int) -> Tensor:
    """At most ``most`` of n places, evenly from the first to the last: shards may be sorted.

    Example:
        >>> spread(9, 3), spread(2, 3)
        (tensor([0, 4, 8]), tensor([0, 1]))
    """
    return torch.arange(n) if n <= most else torch.linspace(0, n - 1, most, dtype=torch.float64).round().long()
