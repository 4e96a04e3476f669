"""Normalised cuts: the walk graph taken apart where walks seldom pass."""

from typing import NamedTuple

import torch
from sklearn.cluster import SpectralClustering
from torch import Tensor

from gedi.errors import UserError
from gedi.graph.walk_graph import WalkGraph

_TRIES = 10


class Cut(NamedTuple):
    """A partition of a graph's points: the part of each, (n,), and the share of points that each part holds, (c,)."""

    parts: Tensor
    shares: Tensor


def cut_shares(parts: Tensor, clusters: int) -> Tensor:
    """The share of the points in each part.

    Example:
        >>> cut_shares(torch.tensor([0, 0, 1, 0]), 3)
        tensor([0.7500, 0.2500, 0.0000], dtype=torch.float64)
    """
    return torch.bincount(parts, minlength=clusters).double() / len(parts)


def normalised_cut(graph: WalkGraph, clusters: int, generator: torch.Generator) -> Cut:
    """The parts between which walks pass least, none of them small for that.

    Args:
        graph: of the points.
        clusters: how many parts.
        generator: the stream of the search's beginnings.

    Source: Shi & Malik 2000, spectral clustering by scikit-learn.

    Example:
        >>> x = torch.cat([torch.randn(40, 2), torch.randn(20, 2) + 9])
        >>> cut = normalised_cut(WalkGraph.of(x), 2, torch.Generator().manual_seed(0))
        >>> sorted(round(share, 2) for share in cut.shares.tolist())
        [0.33, 0.67]
    """
    if not 1 < clusters < len(graph):
        raise UserError(f"a cut needs at least 2 parts and fewer than the {len(graph)} points, got {clusters}")
    seed = int(torch.randint(2**31, (), generator=generator, device=generator.device))
    search = SpectralClustering(clusters, affinity="precomputed", n_init=_TRIES, random_state=seed)
    parts = torch.from_numpy(search.fit_predict(graph.weights)).long()
    return Cut(parts, cut_shares(parts, clusters))
