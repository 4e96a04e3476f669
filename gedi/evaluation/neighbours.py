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


def nearest_other(x: Tensor) -> Tensor:
    """The index of the nearest of its fellows to each point: (n, d) -> (n,).

    Example:
        >>> nearest_other(torch.tensor([[0.0], [1.0], [1.5]]))
        tensor([1, 2, 1])
    """
    found = []
    for rows in torch.split(torch.arange(len(x)), max(1, _BLOCK // len(x))):
        distance = torch.cdist(x[rows], x)
        distance[torch.arange(len(rows)), rows] = torch.inf  # no point is its own neighbour
        found.append(distance.argmin(dim=1))
    return torch.cat(found)
