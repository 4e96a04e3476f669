"""Toy data in the plane, each with its true density.

Every shape here is a *noisy curve*: a point is ``curve(label, t) + noise * epsilon`` with a uniform label,
Gaussian ``epsilon``; ``t`` is uniform in (0, 1) or standard normal. One form gives the draws, the density (a
one-dimensional integral over ``t``), and its score, so every diagnostic has a truth to be held against.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from gedi.errors import UserError, unknown

Array = np.ndarray[Any, np.dtype[Any]]
# A curve is cut into pieces of equal length, each with the nodes and weights of Gauss and Legendre.
_PIECE = 1.0  # length of a piece in noise widths
_GAUSS = np.polynomial.legendre.leggauss(4)
_MOST = 10_000  # pieces of a curve: finer noise is drawn, but its density is not computed
_TRACED = 100_000  # places at which a curve's length is measured
_TAIL = 6.0  # a normal t beyond it has a share of 2e-9
_BLOCK = 2**20  # entries of a (points, nodes) matrix that are held at a time


@dataclass(frozen=True)
class NoisyCurve:
    """A mixture of ``clusters`` curves with Gaussian noise around them.

    Example:
        >>> circle = NoisyCurve(1, lambda label, t: np.stack([np.cos(6.2832 * t), np.sin(6.2832 * t)], 1), 0.1)
        >>> x, y = circle.draw(500, np.random.default_rng(0))
        >>> x.shape, round(circle.log_density(torch.tensor([[1.0, 0.0]])).item(), 2)
        (torch.Size([500, 2]), -0.45)
    """

    clusters: int
    curve: Callable[[Array, Array], Array]  # label (n,), t (n,) -> points (n, 2)
    noise: float
    rings: bool = False  # the true normal is the radial direction
    normal: bool = False  # t is standard normal, not uniform
    _made: list["_Nodes"] = field(default_factory=list, repr=False, compare=False)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """n points (n, 2) and their labels (n,)."""
        label = rng.integers(0, self.clusters, n)
        t = rng.uniform(size=n)
        x = self.curve(label, ndtri(t) if self.normal else t) + self.noise * rng.standard_normal((n, 2))
        return torch.tensor(x, dtype=torch.float32), torch.tensor(label)

    @property
    def resolved(self) -> bool:
        """Whether the density can be computed: much finer noise would need millions of nodes."""
        length = max(self._traced(label)[1][-1] for label in range(self.clusters))
        return bool(length <= _MOST * _PIECE * self.noise)

    def log_density(self, x: Tensor) -> Tensor:
        """``log p(x)``, exact up to quadrature: (n, 2) -> (n,)."""
        return torch.cat([e.logsumexp(dim=1) for e in self._exponents(x)])

    def score(self, x: Tensor) -> Tensor:
        """``grad log p(x)``: (n, 2) -> (n, 2)."""
        means = torch.cat([e.softmax(dim=1) @ self._nodes().places for e in self._exponents(x)])
        return (means - x) / self.noise**2

    def nearest_cluster(self, x: Tensor) -> Tensor:
        """The most probable true label of any place: (n, 2) -> (n,)."""
        counts = self._nodes().counts
        return torch.cat(
            [
                torch.stack([part.logsumexp(dim=1) for part in torch.split(e, counts, dim=1)]).argmax(dim=0)
                for e in self._exponents(x)
            ]
        )

    def _exponents(self, x: Tensor) -> Iterator[Tensor]:
        """Blocks of the logs of what each node adds to the density of each point, (points, nodes)."""
        nodes = self._nodes()
        log_weights = nodes.log_weights - math.log(2 * math.pi * self.noise**2)
        for part in torch.split(x, max(1, _BLOCK // len(nodes.places))):
            # by differences: by products, two near points would lose their distance to rounding
            distance = torch.cdist(part, nodes.places, compute_mode="donot_use_mm_for_euclid_dist")
            yield log_weights - distance.square() / (2 * self.noise**2)

    def _nodes(self) -> "_Nodes":
        if not self._made:
            made = [self._along(label) for label in range(self.clusters)]
            places, log_weights = (np.concatenate(parts) for parts in zip(*made, strict=True))
            self._made.append(
                _Nodes(
                    torch.tensor(places, dtype=torch.float32),
                    torch.tensor(log_weights, dtype=torch.float32),
                    [len(part) for part, _ in made],
                )
            )
        return self._made[0]

    def _along(self, label: int) -> tuple[Array, Array]:
        """Nodes along one curve, no farther apart where t runs fast, and the log shares they stand for."""
        t, length = self._traced(label)
        pieces = max(1, min(_MOST, math.ceil(length[-1] / (_PIECE * self.noise))))
        ends = np.interp(np.linspace(0, length[-1], pieces + 1), length, t)
        half = np.diff(ends)[:, None] / 2
        t = (ends[:-1, None] + half * (1 + _GAUSS[0])).ravel()
        log_mass = np.log(half * _GAUSS[1]).ravel() - math.log(self.clusters)
        if self.normal:
            log_mass -= (t**2 + math.log(2 * math.pi)) / 2
        return self.curve(np.full(len(t), label), t), log_mass

    def _traced(self, label: int) -> tuple[Array, Array]:
        """Values of t, and the length of the curve up to each."""
        t = np.linspace(-_TAIL, _TAIL, _TRACED) if self.normal else np.linspace(0, 1, _TRACED)
        steps = np.linalg.norm(np.diff(self.curve(np.full(_TRACED, label), t), axis=0), axis=1)
        return t, np.concatenate([[0.0], np.cumsum(steps)])


class _Nodes(NamedTuple):
    """Where a sum stands for the integral over every curve, curve after curve."""

    places: Tensor  # (nodes, 2)
    log_weights: Tensor  # (nodes,)
    counts: list[int]  # nodes on each curve


def moons(noise: float | None = None) -> NoisyCurve:
    """Two interleaved half circles."""

    def curve(label: Array, t: Array) -> Array:
        sign = 1.0 - 2.0 * label
        return np.stack([label + sign * np.cos(np.pi * t), 0.5 * label + sign * np.sin(np.pi * t)], axis=1)

    return NoisyCurve(2, curve, 0.05 if noise is None else noise)


def circles(noise: float | None = None, factor: float = 0.5) -> NoisyCurve:
    """Two concentric circles of radius 1 and ``factor``."""
    return _concentric(np.array([1.0, factor]), noise)


def rings(noise: float | None = None) -> NoisyCurve:
    """Three concentric circles of radius 0.5, 1 and 1.5."""
    return _concentric(np.array([0.5, 1.0, 1.5]), noise)


def _concentric(radii: Array, noise: float | None) -> NoisyCurve:
    def curve(label: Array, t: Array) -> Array:
        points: Array = radii[label][:, None] * _unit(2 * np.pi * t)
        return points

    return NoisyCurve(len(radii), curve, 0.05 if noise is None else noise, rings=True)


def spirals(noise: float | None = None, turns: float = 1.5) -> NoisyCurve:
    """Two Archimedean arms of radius up to 1.6, points spread evenly over the arms' area."""

    def curve(label: Array, t: Array) -> Array:
        s = np.sqrt(0.04 + 0.96 * t)  # from a fifth of the radius outwards: the arms do not meet
        points: Array = 1.6 * s[:, None] * _unit(2 * np.pi * turns * s + np.pi * label)
        return points

    return NoisyCurve(2, curve, 0.05 if noise is None else noise)


def blobs(noise: float | None = None) -> NoisyCurve:
    """Three parallel anisotropic Gaussians (a normal along a line plus isotropic noise), 5 to 1."""
    centres = np.array([[-1.1, -0.8], [0.0, 0.0], [1.1, 0.8]])
    axis = np.array([0.8, -0.6])

    def curve(label: Array, t: Array) -> Array:
        points: Array = centres[label] + 0.5 * t[:, None] * axis
        return points

    return NoisyCurve(3, curve, 0.1 if noise is None else noise, normal=True)


def pinwheel(noise: float | None = None) -> NoisyCurve:
    """Five bent arms."""

    def curve(label: Array, t: Array) -> Array:
        radius = 1 + 0.3 * t
        points: Array = radius[:, None] * _unit(2 * np.pi * label / 5 + 0.25 * np.exp(radius))
        return points

    return NoisyCurve(5, curve, 0.05 if noise is None else noise, normal=True)


def _unit(angle: Array) -> Array:
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


#: Every toy shape by name.
SHAPES: dict[str, Callable[..., NoisyCurve]] = {
    "moons": moons,
    "circles": circles,
    "rings": rings,
    "spirals": spirals,
    "blobs": blobs,
    "pinwheel": pinwheel,
}


def draw_toy(
    name: str, n: int, rng: np.random.Generator, noise: float | None = None, **options: float
) -> tuple[Tensor, Tensor, NoisyCurve | None]:
    """n points of a named shape, their labels, and the density they come from (None if too fine to compute).

    Example:
        >>> x, y, truth = draw_toy("circles", 100, np.random.default_rng(0), factor=0.3)
        >>> x.shape, truth.clusters
        (torch.Size([100, 2]), 2)
    """
    if name not in SHAPES:
        raise unknown("data set", name, SHAPES)
    if noise is not None and noise <= 0:
        raise UserError(f"data.noise must be > 0, got {noise}")
    truth = SHAPES[name](noise=noise, **options)
    return (*truth.draw(n, rng), truth if truth.resolved else None)
