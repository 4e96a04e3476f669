"""Is the energy a density? Held against the truth where it is known."""

import math
from typing import Protocol

import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from torch import Tensor

from gedi.score import score
from gedi.types import EnergyFn

_GRID = 150  # cells a side: below half the noise width, so sums are integrals


class Truth(Protocol):
    """A density that is known."""

    def log_density(self, x: Tensor) -> Tensor:
        """``log p(x)``: (n, d) -> (n,)."""

    def score(self, x: Tensor) -> Tensor:
        """``grad log p(x)``: (n, d) -> (n, d)."""


def grid(low: Tensor, high: Tensor, size: int = _GRID) -> Tensor:
    """The centres of size x size cells of a plane box, (size * size, 2)."""
    middle = (torch.arange(size) + 0.5) / size
    axes = [low[i] + (high[i] - low[i]) * middle for i in range(2)]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).view(-1, 2)


@torch.no_grad()
def log_normaliser(energy: EnergyFn, low: Tensor, high: Tensor, size: int = _GRID) -> float:
    """``log Z`` of ``exp(-E)`` on a plane box, by the midpoint rule.

    Example:
        >>> gaussian = lambda x: x.square().sum(1) / 2
        >>> box = torch.tensor([-6.0, -6.0]), torch.tensor([6.0, 6.0])
        >>> round(log_normaliser(gaussian, *box) - math.log(2 * math.pi), 6)
        0.0
    """
    log_cell = math.log(float((high - low).prod()) / size**2)
    return float((-energy(grid(low, high, size))).logsumexp(dim=0)) + log_cell


@torch.no_grad()
def density_metrics(
    energy: EnergyFn, truth: Truth, x: Tensor, low: Tensor, high: Tensor, generator: torch.Generator
) -> dict[str, float]:
    """An energy in the plane against the density its data came from.

    Args:
        energy: the model's ``E``.
        truth: the true density.
        x: test points, (n, 2).
        low: lower corner of the box the model lives in.
        high: its upper corner.
        generator: stream for probing points.

    Returns:
        ``kl``: mean of ``log p_true - log p_model`` over test points, in nats: 0 is perfect; a uniform
        density on the box gives ``kl_uniform``.
        ``density_correlation``: rank correlation of the two log densities over test points and points up
        to three noise widths away.
        ``score_cosine``: mean cosine between model score and true score at those points.
        ``far_mass``: share of the model's mass where the truth has less than one in ten thousand.
    """
    log_true = truth.log_density(x)
    log_model = -energy(x) - log_normaliser(energy, low, high)
    uniform = -math.log(float((high - low).prod()))
    spread = _typical_width(truth, x)
    around = x + 3 * spread * torch.rand(len(x), 1, generator=generator) * F.normalize(
        torch.randn(x.shape, generator=generator), dim=1
    )
    probes = torch.cat([x, around])
    cells = grid(low, high)
    mass = torch.softmax(-energy(cells), dim=0)
    true_mass = truth.log_density(cells).softmax(dim=0)
    order = true_mass.argsort()
    outside = order[true_mass[order].cumsum(0) < 1e-4]
    return {
        "kl": float((log_true - log_model).mean()),
        "kl_uniform": float((log_true - uniform).mean()),
        "density_correlation": _rank_correlation(-energy(probes), truth.log_density(probes)),
        "score_cosine": float(F.cosine_similarity(score(energy, around), truth.score(around), dim=1).mean()),
        "far_mass": float(mass[outside].sum()),
    }


@torch.no_grad()
def score_against_normal(energy: EnergyFn, x: Tensor) -> float:
    """Mean ``|cos|`` between the score and the radial direction: for data on rings around 0, 1 is perfect.

    Example:
        >>> ring = lambda x: (x.norm(dim=1) - 1).square()
        >>> round(score_against_normal(ring, torch.tensor([[0.9, 0.1], [0.0, 1.2]])), 4)
        1.0
    """
    return float(F.cosine_similarity(score(energy, x), x, dim=1).abs().mean())


def _rank_correlation(a: Tensor, b: Tensor) -> float:
    constant = bool((a == a[0]).all())  # a flat energy orders nothing
    return 0.0 if constant else float(spearmanr(a, b).statistic)


def _typical_width(truth: Truth, x: Tensor) -> float:
    """The noise width: the true score of a Gaussian tube has mean square 1 / width^2."""
    return float(truth.score(x).square().sum(dim=1).mean() ** -0.5)
