"""Toy data in the plane, each with its true density.

Every shape here is a *noisy curve*: a point is ``curve(label, t) + noise * epsilon`` with a uniform label,
uniform ``t`` in (0, 1) and Gaussian ``epsilon``. One form gives the draws, the exact density (a one-dimensional
integral over ``t``), its score, and the tangent, so every diagnostic has a truth to be held against.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from gedi.errors import UserError, unknown

Array = np.ndarray[Any, np.dtype[Any]]
_QUADRATURE = 600  # nodes along each curve: spacing well below the noise for every shape here
_CHUNK = 4096  # points at a time, so that the (points, nodes) matrix stays small


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
    _nodes: list[Tensor] = field(default_factory=list, repr=False, compare=False)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """n points (n, 2) and their labels (n,)."""
        label = rng.integers(0, self.clusters, n)
        x = self.curve(label, rng.uniform(size=n)) + self.noise * rng.standard_normal((n, 2))
        return torch.tensor(x, dtype=torch.float32), torch.tensor(label)

    def log_density(self, x: Tensor) -> Tensor:
        """``log p(x)``, exact up to quadrature: (n, 2) -> (n,)."""
        nodes = self._quadrature()
        constant = math.log(len(nodes) * 2 * math.pi * self.noise**2)
        return torch.cat([e.logsumexp(dim=1) - constant for e in self._exponents(x, nodes)])

    def score(self, x: Tensor) -> Tensor:
        """``grad log p(x)``: (n, 2) -> (n, 2)."""
        nodes = self._quadrature()
        means = torch.cat([e.softmax(dim=1) @ nodes for e in self._exponents(x, nodes)])
        return (means - x) / self.noise**2

    def nearest_cluster(self, x: Tensor) -> Tensor:
        """The most probable true label of any place: (n, 2) -> (n,)."""
        nodes = self._quadrature()
        per_cluster = [
            e.view(len(e), self.clusters, -1).logsumexp(dim=2).argmax(dim=1) for e in self._exponents(x, nodes)
        ]
        return torch.cat(per_cluster)

    def _exponents(self, x: Tensor, nodes: Tensor) -> list[Tensor]:
        return [-torch.cdist(part, nodes).square() / (2 * self.noise**2) for part in torch.split(x, _CHUNK)]

    def _quadrature(self) -> Tensor:
        if not self._nodes:
            t = np.tile((np.arange(_QUADRATURE) + 0.5) / _QUADRATURE, self.clusters)
            label = np.repeat(np.arange(self.clusters), _QUADRATURE)
            self._nodes.append(torch.tensor(self.curve(label, t), dtype=torch.float32))
        return self._nodes[0]


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
        points: Array = centres[label] + 0.5 * ndtri(t)[:, None] * axis
        return points

    return NoisyCurve(3, curve, 0.1 if noise is None else noise)


def pinwheel(noise: float | None = None) -> NoisyCurve:
    """Five bent arms."""

    def curve(label: Array, t: Array) -> Array:
        radius = 1 + 0.3 * ndtri(t)
        points: Array = radius[:, None] * _unit(2 * np.pi * label / 5 + 0.25 * np.exp(radius))
        return points

    return NoisyCurve(5, curve, 0.05 if noise is None else noise)


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
) -> tuple[Tensor, Tensor, NoisyCurve]:
    """n points of a named shape, their labels, and the density they come from.

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
    return (*truth.draw(n, rng), truth)
