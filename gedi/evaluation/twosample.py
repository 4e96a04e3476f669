"""Are two sets of points drawn from one distribution?"""

import torch
from torch import Tensor

from gedi.errors import UserError
from gedi.evaluation.neighbours import nearest_other


def mmd_test(a: Tensor, b: Tensor, generator: torch.Generator, permutations: int = 200) -> dict[str, float]:
    r"""Maximum mean discrepancy with a Gaussian kernel, and its permutation p-value.

    .. math:: \mathrm{MMD}^2 = \overline{k(a, a')} + \overline{k(b, b')} - 2\,\overline{k(a, b)}

    The bandwidth is a tenth of the median distance: fine enough to see a ring's thickness, not only its
    place. All distances are held at once, in a few matrices of 8 (n + m)^2 bytes: of large sets, give some
    thousands of points.

    Source: Gretton et al., "A kernel two-sample test", 2012 (unbiased statistic).

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> x = torch.randn(200, 2, generator=g)
        >>> mmd_test(x, x + 1, g)["p_value"] < 0.01
        True
    """
    _check(a, b)
    pooled = torch.cat([a, b]).double()
    squared = torch.cdist(pooled, pooled).square()
    bandwidth = 0.1 * squared.median().sqrt()
    kernel = torch.exp(-squared / (2 * bandwidth**2)).fill_diagonal_(0)
    n, m = len(a), len(b)

    def statistic(sign: Tensor) -> Tensor:  # +1 in a, -1 in b: one product gives every block's sum
        in_a = (sign > 0).double()
        in_b = 1 - in_a
        k_a, k_b = in_a @ kernel, in_b @ kernel
        same = (k_a * in_a).sum(-1) / (n * (n - 1)) + (k_b * in_b).sum(-1) / (m * (m - 1))
        return same - 2 * (k_a * in_b).sum(-1) / (n * m)

    split = torch.cat([torch.ones(n), -torch.ones(m)]).double()
    orders = torch.stack([split[torch.randperm(n + m, generator=generator)] for _ in range(permutations)])
    observed = statistic(split[None])[0]
    null = statistic(orders)
    p_value = (1 + int((null >= observed).sum())) / (1 + permutations)
    return {"mmd2": float(observed), "p_value": p_value, "null_95": float(null.quantile(0.95))}


def energy_distance_test(a: Tensor, b: Tensor, generator: torch.Generator, permutations: int = 200) -> dict[str, float]:
    r"""How far two sets are from each other against how far their points are, and what chance allows of that.

    .. math:: R = \frac{2\,\overline{|a - b|} - \overline{|a - a'|} - \overline{|b - b'|}}{2\,\overline{|a - b|}}

    0 for one distribution and more for any two others, in any number of dimensions: a set that is too wide shows in
    its own distances, where nearest neighbours say little. What is small beside the distances it does not see.

    Returns:
        ``distance``: R; where both are alike it may fall a little below 0. ``null_99``: what it stays under in 99 % of
        cases when they are.

    Source: Székely & Rizzo, "Energy statistics", 2013 (unbiased means).

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> x, wide = torch.randn(200, 50, generator=g), 3 * torch.randn(200, 50, generator=g)
        >>> found = energy_distance_test(x, wide, g)
        >>> found["distance"] > 10 * found["null_99"]
        True
    """
    _check(a, b)
    pooled = torch.cat([a, b]).double()
    distances = torch.cdist(pooled - pooled.mean(dim=0), pooled - pooled.mean(dim=0)).fill_diagonal_(0)
    n, m = len(a), len(b)

    def statistic(in_a: Tensor) -> Tensor:
        in_b = 1 - in_a
        to_a, to_b = in_a @ distances, in_b @ distances
        across = 2 * (to_a * in_b).sum(-1) / (n * m)
        within = (to_a * in_a).sum(-1) / (n * (n - 1)) + (to_b * in_b).sum(-1) / (m * (m - 1))
        return torch.where(across > 0, (across - within) / across, 0.0)

    split = torch.cat([torch.ones(n), torch.zeros(m)]).double()
    orders = torch.stack([split[torch.randperm(n + m, generator=generator)] for _ in range(permutations)])
    return {"distance": float(statistic(split[None])[0]), "null_99": float(statistic(orders).quantile(0.99))}


def nearest_neighbour_shares(a: Tensor, b: Tensor) -> tuple[float, float]:
    """Of each set, the share of points whose nearest other point is of the same set: 0.5 each if they are alike.

    In many dimensions both have to be looked at: of a set that is too wide all points are nearest to the other one's,
    and so are those of the other one, 0 and 1, a half on average.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> x, wide = torch.randn(200, 50, generator=g), 3 * torch.randn(200, 50, generator=g)
        >>> [round(share, 1) for share in nearest_neighbour_shares(x, wide)]
        [1.0, 0.0]
    """
    _check(a, b)
    pooled = torch.cat([a, b])
    source = torch.cat([torch.zeros(len(a)), torch.ones(len(b))])
    same = (source[nearest_other(pooled)] == source).float()
    return float(same[: len(a)].mean()), float(same[len(a) :].mean())


def nearest_neighbour_test(a: Tensor, b: Tensor) -> float:
    """Share of points whose nearest other point is of their own set: 0.5 if alike, 1 if apart.

    It sees what the eye sees in a scatter plot: points off the manifold, missing modes, wrong thickness.
    Below 0.5 means copies (each sample sits on a data point).

    Source: Lopez-Paz & Oquab, "Revisiting classifier two-sample tests", 2017 (1-NN).

    Example:
        >>> nearest_neighbour_test(torch.zeros(10, 2), torch.ones(10, 2) * 5)
        1.0
    """
    of_a, of_b = nearest_neighbour_shares(a, b)
    return (len(a) * of_a + len(b) * of_b) / (len(a) + len(b))


def _check(a: Tensor, b: Tensor) -> None:
    """Two sets of points of one dimension, with something to compare."""
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[1]:
        raise UserError(
            f"two sets of points must have shapes (n, d) and (m, d), got {tuple(a.shape)} and {tuple(b.shape)}"
        )
    if min(len(a), len(b)) < 2:
        raise UserError(f"each of two sets needs at least 2 points to be compared, got {len(a)} and {len(b)}")
