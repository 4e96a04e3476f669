"""Nearest neighbours of each point among its fellows, and the scale of its surroundings."""

import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from gedi.errors import UserError

_RANK = 7  # the neighbour whose distance is a point's scale
_LEAST = 0.3  # of the median scale: points that come several times would have none


def some_of(n: int, most: int, generator: torch.Generator) -> Tensor:
    """Numbers of all of n points in their order, or of ``most`` of them at random.

    Example:
        >>> some_of(3, 5, torch.Generator())
        tensor([0, 1, 2])
        >>> len(some_of(1000, 5, torch.Generator().manual_seed(0)))
        5
    """
    if n <= most:
        return torch.arange(n)
    return torch.randperm(n, generator=generator, device=generator.device)[:most].sort().values.cpu()


def neighbours(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Distances to the nearest fellows of each point, and their numbers: (n, d) -> (n, k), (n, k), nearest first.

    Fewer than ``count`` where there are no more points.

    Example:
        >>> distance, number = neighbours(torch.tensor([[0.0], [1.0], [3.0]]), 1)
        >>> distance.flatten().tolist(), number.flatten().tolist()
        ([1.0, 1.0, 2.0], [1, 0, 1])
    """
    if len(x) < 2:
        raise UserError(f"neighbours need at least 2 points, got {len(x)}")
    rows = x.detach().cpu().double().flatten(1)
    rows = rows - rows.mean(dim=0)  # far from the origin squared distances would lose their digits
    search = NearestNeighbors(n_neighbors=min(count, len(x) - 1)).fit(rows.numpy())
    distance, number = search.kneighbors()
    return torch.from_numpy(distance), torch.from_numpy(number).long()


def local_scales(distance: Tensor, rank: int = _RANK, least: float = _LEAST) -> Tensor:
    """The distance to the ``rank``-th neighbour, and not much less than it is elsewhere: (n, k) -> (n,).

    Args:
        distance: to the neighbours of each point, nearest first, as :func:`neighbours` gives them.
        rank: the neighbour that counts; the last one where there are fewer.
        least: share of the median scale that no scale is below. Points that come several times have neighbours at
            distance 0. Where all points are one, every scale is 1.

    Example:
        >>> local_scales(torch.tensor([[0.0], [1.0], [1.0]]), rank=1)
        tensor([0.3000, 1.0000, 1.0000])
    """
    scale = distance[:, min(rank, distance.shape[1]) - 1]
    positive = scale[scale > 0]
    if len(positive) == 0:
        return torch.ones_like(scale)
    return scale.clamp_min(least * positive.median())
