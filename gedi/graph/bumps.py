"""Where the bumps of a kernel density stand and how wide they are: as is likeliest, no point helping itself."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from gedi.graph.neighbours import local_scales, neighbours

_RANK = 7  # the neighbour whose distance is a point's scale
_AROUND = 20  # neighbours that a local mean is of
_PULLS = (0.0, 0.5, 0.8, 1.0)  # to choose from: how far bumps move from their points to the local means
_FACTORS = tuple(2 ** (power / 2) for power in range(-4, 4))  # of the width, to choose from
_ASKED, _ASKED_AT_LAST = 500, 1000  # points that are left out in turn
_ROUNDS = 6  # in which the best of these factors is bettered
_BLOCK = 2**22  # distances held at a time


class Bumps(NamedTuple):
    """Centres (m, d) and widths (m,) of normal bumps, all of the same mass."""

    centres: Tensor
    widths: Tensor


def fit_bumps(x: Tensor, factor: float | None = None, pull: float | None = None) -> Bumps:
    r"""A bump for each point, pulled towards the mean of its surroundings, as wide as they are.

    .. math:: c_j = x_j + a\,(\bar x_j - x_j), \qquad h_j = c\, s_j / \sqrt{d}

    with the mean :math:`\bar x_j` of a point and its twenty neighbours, the distance :math:`s_j` to the seventh, and d
    columns that vary. Bumps on the points themselves have the spread of the points and their own on top of it, far too
    much in many dimensions; around local means the sum of both is right. The pull a and the factor c are those under
    which points are likeliest, each left out in turn of bumps and of means.

    Args:
        x: the points, (m, d), at least 2.
        factor: c; None finds it.
        pull: a; None finds it.
    """
    x = x.double()
    centre = x.mean(dim=0)
    x = x - centre  # far from the origin squared distances would lose their digits
    distance, number = neighbours(x, max(_RANK, _AROUND))
    widths = local_scales(distance, _RANK) / math.sqrt(varying(x))
    number = number[:, :_AROUND]
    around = sums_around(x, number)
    tries = []
    for a in _PULLS if pull is None else (pull,):
        left_out = LeftOut(x, number, around, a, _ASKED)
        factors = _FACTORS if factor is None else (factor,)
        tries += [(left_out.likelihood(c * widths), a, c) for c in factors]
    _, a, c = max(tries)
    if factor is None:
        c = LeftOut(x, number, around, a, _ASKED_AT_LAST).better_factor(widths, c)
    return Bumps(x + a * (around / (number.shape[1] + 1) - x) + centre, c * widths)


class LeftOut:
    """Squared distances of some points to the bumps of all others, made as if the point had never been there.

    Copies of a point are left out with it: of width 0 they would be likeliest.

    Args:
        x: all points, (m, d).
        number: the neighbours of each, (m, k).
        around: the sum of each and its neighbours, (m, d).
        pull: towards the local means.
        most: points that are left out in turn, from everywhere.
    """

    def __init__(self, x: Tensor, number: Tensor, around: Tensor, pull: float, most: int) -> None:
        self.columns, k = varying(x), number.shape[1]
        self.rows = torch.linspace(0, len(x) - 1, min(most, len(x))).round().long()
        asked = x[self.rows]
        self.squared = squared_distances(asked, x + pull * (around / (k + 1) - x))  # (rows, m)
        # of a bump that counts the point among its neighbours, the mean is without it
        without = squared_distances((1 + pull / k) * asked, (1 - pull) * x + pull / k * around)
        place = torch.full((len(x),), -1)
        place[self.rows] = torch.arange(len(self.rows))
        of, which = (place[number] >= 0).nonzero(as_tuple=True)
        pairs = place[number[of, which]], of
        self.squared[pairs] = without[pairs]
        same = squared_distances(asked, x) <= 1e-12 * x.square().sum(dim=1).max()
        same[torch.arange(len(self.rows)), self.rows] = True
        self.squared = self.squared.masked_fill(same, torch.inf)[~same.all(dim=1)]

    def likelihood(self, widths: Tensor) -> float:
        """The mean log density of the points left out."""
        return (
            float(log_bumps(self.squared, widths, self.columns).logsumexp(dim=1).mean()) if len(self.squared) else 0.0
        )

    def better_factor(self, widths: Tensor, factor: float) -> float:
        """A factor of the widths that is at least as likely, by steps of expectation and maximisation."""
        for _ in range(_ROUNDS if len(self.squared) else 0):
            near = log_bumps(self.squared, factor * widths, self.columns).softmax(dim=1)
            squares = (near * (self.squared / widths.square()).nan_to_num(posinf=0.0)).sum(dim=1).mean()
            factor = math.sqrt(float(squares) / self.columns) or factor
        return factor


def sums_around(x: Tensor, number: Tensor) -> Tensor:
    """The sum of each point and its neighbours: (m, d), (m, k) -> (m, d)."""
    parts = torch.split(number, max(1, _BLOCK // (number.shape[1] * x.shape[1])))
    return x + torch.cat([x[part].sum(dim=1) for part in parts])


def varying(x: Tensor) -> int:
    """How many columns vary, at least 1."""
    return max(1, int((x != x[0]).any(dim=0).sum()))


def squared_distances(x: Tensor, points: Tensor) -> Tensor:
    """Between all pairs: (n, d), (m, d) -> (n, m). Differentiable everywhere, also where it is 0."""
    squares = x.square().sum(dim=1, keepdim=True) + points.square().sum(dim=1)
    return torch.addmm(squares, x, points.t(), alpha=-2).clamp_min(0)


def log_bumps(squared: Tensor, widths: Tensor, columns: int) -> Tensor:
    """The logarithm of each bump over their number, by squared distances: (n, m), (m,) -> (n, m)."""
    height = -columns * (widths.log() + math.log(2 * math.pi) / 2) - math.log(len(widths))
    return torch.addcdiv(height.expand_as(squared), squared, widths.square().expand_as(squared), value=-0.5)
