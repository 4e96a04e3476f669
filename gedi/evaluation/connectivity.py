"""Do walks on a density hold a cluster together? Asked of the clusters found, without labels."""

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from gedi.evaluation.neighbours import nearest

_COUNTS = 10  # points that a cluster must have before its pieces mean anything, and walks before their share does


def walk_connections(x: Tensor, paths: Tensor, found: Tensor, ends: Tensor) -> dict[str, float]:
    """How far walks join the points of each cluster, and how many walks leave theirs.

    Two points of one cluster are joined if the walk from one comes nearest to the other somewhere on its way. A
    density that fell into islands keeps its walks within them: then a cluster is many pieces, and no walk could have
    said which pieces belong together.

    Args:
        x: where walks began, (n, d).
        paths: places on the way of each, (k, n, d).
        found: the cluster of each beginning, (n,).
        ends: the cluster of each walk's end, (n,).

    Returns:
        ``walks_connect``: the share of its points that a cluster's largest piece holds, in the cluster where it is
        least (clusters of fewer than ten of the points are left out; absent if all are).
        ``walks_leave``: the share of walks that end in another cluster.
        ``walks_cross``: the same among walks that come farther than the nearest point of another cluster is from where
        they began, so that short walks hide less of a cut through what hangs together (absent below ten such walks).

    Example:
        >>> line = torch.arange(20.0)[:, None]
        >>> one = torch.zeros(20).long()
        >>> walk_connections(line, torch.stack([line, line + 1]), one, one)["walks_connect"]
        1.0
        >>> walk_connections(line, torch.stack([line, line + 0.1]), one, one)["walks_connect"]
        0.05
    """
    n = len(x)
    reached = torch.stack([nearest(places, x) for places in paths])  # (k, n)
    begun = torch.arange(n).expand_as(reached)
    inside = found[begun] == found[reached]
    joined = coo_matrix((np.ones(int(inside.sum())), (begun[inside].numpy(), reached[inside].numpy())), shape=(n, n))
    piece = torch.from_numpy(connected_components(joined, directed=False)[1]).long()
    left = ends != found
    figures = {"walks_leave": float(left.float().mean())}
    far_enough = (paths[-1] - x).norm(dim=1) >= _to_other_cluster(x, found)
    if far_enough.sum() >= _COUNTS:
        figures["walks_cross"] = float(left[far_enough].float().mean())
    largest = [
        int(torch.bincount(piece[found == cluster]).max()) / count
        for cluster, count in enumerate(torch.bincount(found).tolist())
        if count >= _COUNTS
    ]
    return figures | ({"walks_connect": min(largest)} if largest else {})


def _to_other_cluster(x: Tensor, found: Tensor) -> Tensor:
    """How far from each point the nearest of another cluster is, infinite if there is none: (n, d), (n,) -> (n,)."""
    distance = torch.full((len(x),), torch.inf, dtype=x.dtype)
    for cluster in torch.unique(found):
        inside = found == cluster
        if not inside.all():
            others = x[~inside]
            distance[inside] = (x[inside] - others[nearest(x[inside], others)]).norm(dim=1)
    return distance
