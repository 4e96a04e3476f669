"""Rows of a table as the network sees them, and back."""

from dataclasses import dataclass

import torch
from torch import Tensor

_LEAST = 1e-12  # of a spread: columns that never change stay where they are


@dataclass(frozen=True)
class Scaling:
    """Points ``(x - centre) / spread``: every column centred, all scaled by one common factor.

    One factor keeps the shape of the data: which column matters more is theirs to say.

    Attributes:
        centre: (d,), or None: rows are points as they are.
        spread: the root mean square of the columns' deviations.

    Example:
        >>> rows = torch.tensor([[0.0, 10.0], [2.0, 30.0]])
        >>> scaling = Scaling.of(rows)
        >>> scaling.back(scaling(rows))
        tensor([[ 0., 10.],
                [ 2., 30.]])
    """

    centre: Tensor | None = None
    spread: float = 1.0

    @classmethod
    def of(cls, rows: Tensor) -> "Scaling":
        """The scaling under which these rows have their mean at 0 and a mean square of 1 in each column, on average."""
        deviations = rows.std(dim=0) if len(rows) > 1 else torch.zeros(rows.shape[1:])
        return cls(rows.mean(dim=0), float(deviations.square().mean().sqrt().clamp_min(_LEAST)))

    def __call__(self, rows: Tensor) -> Tensor:
        """Points of rows, (n, d)."""
        return rows if self.centre is None else (rows - self.centre) / self.spread

    def back(self, points: Tensor) -> Tensor:
        """Rows of points, (n, d)."""
        return points if self.centre is None else points * self.spread + self.centre
