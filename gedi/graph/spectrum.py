"""How many parts a walk graph falls into, by its eigenvalues."""

import math
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import diags, identity
from scipy.sparse.linalg import eigsh
from torch import Tensor

from gedi.errors import UserError
from gedi.graph.walk_graph import WalkGraph

_SHIFT = -1e-3  # eigenvalues are sought near 0 of I - P, from the side where none is
_DENSE = 500  # points up to which all eigenvalues are as cheap as a few
_NEVER = 1e-6  # a step: rates below it are those of walks that never pass
OF_ONE_PART = math.log(5)  #: gaps up to this are those of one part: a long one has rates in ratios of 1 to 4


class Spectrum(NamedTuple):
    """The largest eigenvalues of a walk, from 1 down, and the gap after each but the last.

    A walk forgets where it began at the rates ``1 - eigenvalue``: c of them are near 0 where there are c parts that
    walks seldom leave, and the next is that of mixing within a part. A gap is the logarithm of the ratio of two rates
    that follow each other, so that neither the number of points nor how long a part is counts as a gap.
    """

    eigenvalues: Tensor
    gaps: Tensor

    @property
    def clusters(self) -> int:
        """The largest number, at least 2, after which there is a gap that no part has by itself.

        The rates of a line are as 1, 4, 9, those of a ring as 1, 1, 4, 4: parts that hang together show gaps of up to
        log 4. Larger ones tell parts from one another; where groups lie in groups there are several, and the finest
        counts. Where none is larger, the largest does.
        """
        telling = (self.gaps[1:] > OF_ONE_PART).nonzero()
        return int(telling[-1] if len(telling) else self.gaps[1:].argmax()) + 2


def spectrum(graph: WalkGraph, most: int = 15) -> Spectrum:
    """The largest eigenvalues of the walk on a graph; ``most`` bounds the number of parts that can be proposed.

    Example:
        >>> x = torch.cat([torch.rand(30, 2) + place for place in (0, 5, 10)])
        >>> spectrum(WalkGraph.of(x)).clusters
        3
    """
    if len(graph) < 4:
        raise UserError(f"the number of parts can be told from 4 points on, got {len(graph)}")
    root = diags(np.asarray(graph.weights.sum(axis=1))[:, 0] ** -0.5)
    alike = root @ graph.weights @ root  # symmetric, with the eigenvalues of P
    count = min(most + 1, len(graph) - 1)
    if len(graph) <= _DENSE:
        found = torch.linalg.eigvalsh(torch.from_numpy(alike.toarray())).flip(0)[:count]
    else:
        start = np.random.default_rng(0).standard_normal(len(graph))
        laplacian = (identity(len(graph)) - alike).tocsc()
        near = eigsh(laplacian, count, sigma=_SHIFT, v0=start, return_eigenvectors=False)
        found = 1 - torch.from_numpy(near).sort().values
    rates = (1 - found).clamp_min(_NEVER).log()
    return Spectrum(found, rates[1:] - rates[:-1])
