"""The walk graph: from each point a walk goes on to near points, the nearer the likelier."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from gedi.graph.neighbours import local_scales, neighbours

_NEIGHBOURS = 20
_TRACE = 1e-12  # of weight at least on every edge: a cut of a graph in pieces is not defined
_BLOCK = 2**22  # distances held at a time


@dataclass(frozen=True)
class WalkGraph:
    r"""Points, and how likely a walk goes from one to another.

    .. math:: w_{ij} = e^{-\lVert x_i - x_j \rVert^2 / (s_i s_j)}, \qquad P_{ij} = w_{ij} / \sum_k w_{ik}

    with the local scales :math:`s_i` of :func:`~gedi.graph.neighbours.local_scales`. It does not change when all points
    are moved, turned or scaled. Only near pairs have an edge, and pieces that no edge joins are joined where they are
    nearest.

    Attributes:
        points: (n, d).
        scales: of each point, (n,).
        weights: symmetric, without a diagonal, (n, n).

    Source: local scales of Zelnik-Manor & Perona 2004.

    Example:
        >>> graph = WalkGraph.of(torch.tensor([[0.0], [1.0], [2.0], [50.0], [51.0], [52.0]]), count=2, rank=1)
        >>> graph.walk(torch.tensor([0, 5]), 10, torch.Generator().manual_seed(0)) < 3
        tensor([ True, False])
    """

    points: Tensor
    scales: Tensor
    weights: csr_matrix

    @classmethod
    def of(cls, x: Tensor, *, count: int = _NEIGHBOURS, rank: int = 7) -> "WalkGraph":
        """The graph of points (n, d), n in the thousands.

        Args:
            x: the points.
            count: how many neighbours each point has an edge to; those that count it among theirs come on top.
            rank: the neighbour whose distance is a point's scale.
        """
        rows = x.detach().cpu().double().flatten(1)
        distance, number = neighbours(rows, max(count, rank))
        scales = local_scales(distance, rank)
        distance, number = distance[:, :count], number[:, :count]
        begin = torch.arange(len(rows))[:, None].expand_as(number)
        weights = _symmetric(begin.flatten(), number.flatten(), distance.flatten(), scales)
        while (pieces := connected_components(weights, directed=False))[0] > 1:
            weights = weights.maximum(_symmetric(*_bridges(rows, torch.from_numpy(pieces[1]).long()), scales))
        return cls(rows, scales, weights)

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def transition(self) -> csr_matrix:
        """``P``: the rows of the weights, each summing to 1."""
        return csr_matrix(self.weights.multiply(1 / self.weights.sum(axis=1)))

    @cached_property
    def _edges(self) -> tuple[Tensor, Tensor, Tensor]:
        """Where the edges of each point begin, where each leads, and the running sum of their probabilities."""
        P = self.transition
        numbers = (torch.from_numpy(np.asarray(part)).long() for part in (P.indptr, P.indices))
        return *numbers, torch.from_numpy(np.cumsum(P.data))  # type: ignore[return-value]

    def step(self, numbers: Tensor, generator: torch.Generator) -> Tensor:
        """One step of a walk from each of some points, given and returned by their numbers."""
        first, to, running = self._edges
        drawn = torch.rand(len(numbers), generator=generator, device=generator.device, dtype=torch.float64).cpu()
        # each point's probabilities sum to 1, so those of the points before it sum to its number
        edge = torch.searchsorted(running, numbers + drawn, right=True)
        return to[torch.clamp(edge, first[numbers], first[numbers + 1] - 1)]

    def walk(self, numbers: Tensor, steps: int, generator: torch.Generator) -> Tensor:
        """Where walks of some steps end that begin at points of these numbers."""
        for _ in range(steps):
            numbers = self.step(numbers, generator)
        return numbers


def _symmetric(begin: Tensor, end: Tensor, distance: Tensor, scales: Tensor) -> csr_matrix:
    """Weights of edges, in both directions."""
    weight = torch.exp(-distance.square() / (scales[begin] * scales[end])).clamp_min(_TRACE)
    one_way = coo_matrix((weight.numpy(), (begin.numpy(), end.numpy())), shape=(len(scales),) * 2).tocsr()
    return one_way.maximum(one_way.T.tocsr())


def _bridges(x: Tensor, piece: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For each piece of a graph the shortest way to another one: begin, end and length of each."""
    near, to = torch.empty(len(x), dtype=x.dtype), torch.empty(len(x), dtype=torch.long)
    for rows in torch.split(torch.arange(len(x)), max(1, _BLOCK // len(x))):
        distance = torch.cdist(x[rows], x)
        distance[piece[rows][:, None] == piece] = torch.inf
        near[rows], to[rows] = distance.min(dim=1)
    members = [(piece == p).nonzero()[:, 0] for p in range(int(piece.max()) + 1)]
    begin = torch.stack([own[near[own].argmin()] for own in members])
    return begin, to[begin], near[begin]
