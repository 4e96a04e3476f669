"""Rows of a table that is not in memory, centred and scaled when they are asked for."""

import torch
from torch import Tensor

from gedi.data.array_shards import Summary
from gedi.data.scaling import Scaling
from gedi.data.shards import Shards


class ScaledRows:
    """Points ``(x - mean) / scale``: every column centred, all scaled by one common factor.

    Args:
        stored: the table, (n, d).
        summary: of the rows that say where the centre is and how large the spread.

    Attributes:
        low, high: (d,) the smallest box that holds every row of the summary.
    """

    def __init__(self, stored: Shards, summary: Summary) -> None:
        self.stored, self.summary = stored, summary
        self.shape = stored.shape
        mean = torch.from_numpy(summary.mean)
        spread = torch.from_numpy(summary.squares / max(float(summary.n) - 1, 1)).mean().sqrt().clamp_min(1e-12)
        self.low, self.high = (
            ((torch.from_numpy(edge) - mean) / spread).float() for edge in (summary.low, summary.high)
        )
        self.scaling = Scaling(mean.float().to(stored.device), float(spread))

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        return self.scaling(self.stored[index])

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "ScaledRows":
        """The same points, which go to a device once they are read."""
        return ScaledRows(self.stored.to(device), self.summary)
