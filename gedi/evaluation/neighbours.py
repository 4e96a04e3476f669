"""Nearest neighbours, a block of distances at a time."""

import torch
from torch import Tensor

_BLOCK = 2**24  # distances held at a time


def nearest(x: Tensor, others: Tensor) -> Tensor:
    """The index of the nearest of the others to each point: (n, d), (m, d) -> (n,).

    Example:
        >>> nearest(torch.tensor([[0.9], [0.2]]), torch.tensor([[0.0], [1.0]]))
        tensor([1, 0])
    """
    parts = torch.split(x, max(1, _BLOCK // len(others)))
    return torch.cat([torch.cdist(part, others).argmin(dim=1) for part in parts])
