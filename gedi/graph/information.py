"""What a walk keeps of a clustering: how far it may go without leaving its part, and what one step still tells."""

import torch
from torch import Tensor

from gedi.graph.walk_graph import WalkGraph


def longest_walk(graph: WalkGraph, parts: Tensor, *, stay: float = 0.97, most: int = 40) -> int:
    """The largest number of steps, at least 1, up to which a share ``stay`` of all walks ends in the part it began in.

    Exact: the probabilities are carried along, no walk is drawn.

    Args:
        graph: of n points.
        parts: of each, (n,).
        stay: the share.
        most: steps, at most.
    """
    begun = torch.arange(len(parts)).numpy()
    inside = torch.nn.functional.one_hot(parts).double().numpy()
    probability = inside
    for steps in range(1, most + 1):
        probability = graph.transition @ probability
        if probability[begun, parts.numpy()].mean() < stay:
            return max(1, steps - 1)
    return most


def information_kept(graph: WalkGraph, log_probability: Tensor) -> float:
    r"""Share of what a clustering tells of a point that it also tells of the point one walk step on.

    .. math:: r = \frac{H(\bar p) - A}{H(\bar p)}, \qquad
              A = -\frac{1}{2n} \sum_{ij} P_{ij} \sum_y (p_{iy} \log p_{jy} + p_{jy} \log p_{iy})

    1 where memberships are certain and no step leaves its cluster; 0 or less where they say nothing of the next point.
    No label takes part. A clustering that is one cluster tells nothing: 0.

    Args:
        graph: of n points.
        log_probability: of the clusters of each, (n, c).

    Example:
        >>> line = WalkGraph.of(torch.arange(20.0)[:, None], count=2, rank=2)
        >>> information_kept(line, torch.full((20, 2), 0.5).log())
        0.0
    """
    log_p = log_probability.detach().cpu().double()
    p = log_p.exp()
    entropy = float(torch.special.entr(p.mean(dim=0)).sum())
    if entropy <= 0:
        return 0.0
    next_log = torch.from_numpy(graph.transition @ log_p.numpy())
    next_p = torch.from_numpy(graph.transition @ p.numpy())
    agreement = -float((p * next_log + next_p * log_p).sum(dim=1).mean()) / 2
    return (entropy - agreement) / entropy


def information_kept_by_cut(graph: WalkGraph, parts: Tensor) -> float:
    """The same of a partition: mutual information of the parts before and after a step, over the entropy of the parts.

    Example:
        >>> x = torch.cat([torch.zeros(5, 1), torch.ones(5, 1)]) + 0.01 * torch.arange(10.0)[:, None]
        >>> halves = torch.arange(10) // 5
        >>> round(information_kept_by_cut(WalkGraph.of(x, count=2, rank=2), halves), 3)
        1.0
    """
    inside = torch.nn.functional.one_hot(parts).double()
    joint = inside.t() @ torch.from_numpy(graph.transition @ inside.numpy()) / len(parts)
    before, after = joint.sum(dim=1), joint.sum(dim=0)
    entropy = torch.special.entr(before).sum()
    if entropy <= 0:
        return 0.0
    shared = entropy + torch.special.entr(after).sum() - torch.special.entr(joint).sum()
    return float(shared / entropy)
