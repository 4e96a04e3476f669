"""Where chains begin."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Initial(Protocol):
    """A distribution that chains start from; a :class:`~gedi.sampling.Box` is one."""

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n starting points, (n, *shape)."""


@dataclass(frozen=True)
class Normal:
    """Independent normal coordinates.

    Example:
        >>> start = Normal.around(torch.tensor([[0.0, 1.0], [2.0, 5.0]]))
        >>> start.mean, start.sample(3, torch.Generator().manual_seed(0)).shape
        (tensor([1., 3.]), torch.Size([3, 2]))
    """

    mean: Tensor
    std: Tensor

    @classmethod
    def around(cls, x: Tensor) -> "Normal":
        """The normal with the mean and spread of each coordinate of ``x``."""
        return cls(x.mean(dim=0), x.std(dim=0))

    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n starting points."""
        shape = (n, *self.mean.shape)
        unit = torch.randn(shape, generator=generator, device=self.mean.device, dtype=self.mean.dtype)
        return self.mean + self.std * unit
