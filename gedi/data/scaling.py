"""Rows of a table as the network sees them, and back."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

_MOST, _ALIKE = 0.75, 0.25  # share of the columns, and of the greatest range
_LEAST = 1e-12  # of a spread: columns that never change stay where they are


@dataclass(frozen=True)
class Scaling:
    """Points ``(x - centre) / spread``: every column centred, all scaled by one common factor or each by its own.

    One factor keeps the shape of the data: which column matters more is theirs to say. Columns of different units say
    nothing of that kind, and get a factor each.

    Attributes:
        centre: (d,), or None: rows are points as they are.
        spread: the root mean square of the columns' deviations, or the deviation of each, (d,).

    Example:
        >>> rows = torch.tensor([[0.0, 10.0], [2.0, 30.0]])
        >>> scaling = Scaling.of(rows)
        >>> scaling.back(scaling(rows))
        tensor([[ 0., 10.],
                [ 2., 30.]])
    """

    centre: Tensor | None = None
    spread: float | Tensor = 1.0

    @classmethod
    def of(cls, rows: Tensor, columns: Literal["together", "apart", "auto"] = "together") -> "Scaling":
        """The scaling under which these rows have their mean at 0 and a mean square of 1 in each column.

        Args:
            rows: (n, d).
            columns: ``together``, so that the mean square is 1 on average; ``apart``, in each; ``auto``, together if
                their ranges are alike, as those of columns of one unit.
        """
        deviations = rows.std(dim=0) if len(rows) > 1 else torch.zeros(rows.shape[1:])
        if columns == "apart" or (columns == "auto" and not _alike(rows)):
            return cls(rows.mean(dim=0), torch.where(deviations > _LEAST, deviations, 1.0))
        return cls(rows.mean(dim=0), float(deviations.square().mean().sqrt().clamp_min(_LEAST)))

    def __call__(self, rows: Tensor) -> Tensor:
        """Points of rows, (n, d)."""
        return rows if self.centre is None else (rows - self.centre) / self.spread

    def back(self, points: Tensor) -> Tensor:
        """Rows of points, (n, d)."""
        return points if self.centre is None else points * self.spread + self.centre


def _alike(rows: Tensor) -> bool:
    """Whether most of the columns that vary have a good part of the greatest range."""
    ranges = rows.amax(dim=0) - rows.amin(dim=0)
    varying = ranges[ranges > _LEAST]
    return len(varying) == 0 or bool((varying >= _ALIKE * ranges.max()).double().mean() >= _MOST)
