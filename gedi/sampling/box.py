"""The region that samples live in."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Box:
    """An axis-aligned box, and the uniform distribution on it.

    Example:
        >>> box = Box.around(torch.tensor([[0.0, 0.0], [2.0, 4.0]]), margin=0.5)
        >>> box.low, box.high
        (tensor([-0.5000, -0.5000]), tensor([2.5000, 4.5000]))
    """

    low: Tensor
    high: Tensor

    @classmethod
    def around(cls, x: Tensor, margin: float) -> "Box":
        """The smallest box that holds ``x``, wider by ``margin`` on every side."""
        return cls(x.amin(dim=0) - margin, x.amax(dim=0) + margin)

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n uniform points."""
        unit = torch.rand(n, *self.low.shape, generator=generator, device=self.low.device, dtype=self.low.dtype)
        return torch.lerp(self.low, self.high, unit)

    def clamp(self, x: Tensor) -> Tensor:
        """Each point moved to the nearest one inside."""
        return torch.clamp(x, self.low, self.high)

    def contains(self, x: Tensor) -> Tensor:
        """Which points lie inside: (n, *shape) -> (n,)."""
        return (self.clamp(x) == x).flatten(1).all(dim=1)
