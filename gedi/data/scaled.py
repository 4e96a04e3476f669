"""Rows of a table that is not in memory, centred and scaled when they are asked for."""

import torch
from torch import Tensor

from gedi.data.array_shards import Summary
from gedi.data.scaling import Columns, Scaling, alike
from gedi.data.shards import Shards

_LEAST = 1e-12  # of a spread: columns that never change stay where they are


class ScaledRows:
    """Points ``(x - mean) / scale``: every column centred, all scaled by one common factor or each by its own.

    Args:
        stored: the table, (n, d).
        summary: of the rows that say where the centre is and how large the spread.
        columns: as in :meth:`gedi.data.Scaling.of`.

    Attributes:
        low, high: (d,) the smallest box that holds every row of the summary.
    """

    def __init__(self, stored: Shards, summary: Summary, columns: Columns = "together") -> None:
        self.stored, self.summary, self.columns = stored, summary, columns
        self.shape = stored.shape
        mean = torch.from_numpy(summary.mean)
        variances = torch.from_numpy(summary.squares / max(float(summary.n) - 1, 1))
        if columns == "apart" or (columns == "auto" and not alike(torch.from_numpy(summary.high - summary.low))):
            deviations = variances.sqrt()
            spread = torch.where(deviations > _LEAST, deviations, 1.0)
        else:
            spread = variances.mean().sqrt().clamp_min(_LEAST)
        self.low, self.high = (
            ((torch.from_numpy(edge) - mean) / spread).float() for edge in (summary.low, summary.high)
        )
        kept = spread.float().to(stored.device) if spread.dim() else float(spread)
        self.scaling = Scaling(mean.float().to(stored.device), kept)

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        return self.scaling(self.stored[index])

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "ScaledRows":
        """The same points, which go to a device once they are read."""
        return ScaledRows(self.stored.to(device), self.summary, self.columns)
