"""DAM: walks along the manifold that the energy has learnt."""

from collections.abc import Callable
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.errors import UserError, unknown
from gedi.score import normal
from gedi.types import EnergyFn

Direction = Literal["constant", "fresh", "carried"]
#: Brings points back to the data: (energy, x, generator) -> x.
Relax = Callable[[EnergyFn, Tensor, torch.Generator], Tensor]


@torch.no_grad()
def manifold_walk(
    energy: EnergyFn,
    x: Tensor,
    generator: torch.Generator,
    *,
    steps: int = 10,
    radius: float = 0.03,
    direction: Direction = "constant",
    corrector: float = 0.0,
    inertia: float = 0.5,
    relax: Relax | None = None,
    every: int = 0,
) -> Tensor:
    r"""Walk each point along the density's level set.

    A step of length at most ``radius`` is taken and its part along the score removed:

    .. math:: g = \nabla \log p(x + \Delta), \qquad
              x \leftarrow x + \Delta - \frac{g \cdot \Delta}{\lVert g \rVert^2} g

    The projection depends on neither the scale nor the sign of ``g``, so the score stands in for the
    gradient of ``p``, which underflows. Where ``g`` is 0 the step is ``Delta``.

    Args:
        energy: the energy walked on.
        x: starting points, (n, *shape).
        generator: the stream of directions.
        steps: ``T``, the number of updates.
        radius: ``epsilon``.
        direction: ``constant`` draws ``Delta`` once, uniform in the ball (the paper). ``fresh`` draws anew
            each step: a random walk, which covers the square root of the distance. ``carried`` takes
            steps of length U(radius/2, radius) whose direction is carried along: the next one is the
            normalised mix of the last direction and the move really made, so the walk bends with the
            manifold and goes on instead of stalling.
        corrector: ``c``: also climb ``c * g`` (at most ``radius``) each step, back to the ridge that
            rounding a bend leaves.
        inertia: share of the old direction in the mix of ``carried``.
        relax: applied after every step. In many dimensions the score is one normal out of many: the projection
            leaves nearly all of a random step, which is then no more than noise. A few Langevin moves after it
            bring the point back to where the density is, some way along it.
        every: if positive, return the path instead, every that many steps.

    Returns:
        End points (n, *shape); with ``every``, the path (1 + ceil(steps / every), n, *shape), ends included.

    Source: the paper, algorithm 1 (T updates, not T + 1).

    Example:
        >>> ring = lambda x: (x.norm(dim=1) - 1).square() * 200      # a density on the unit circle
        >>> g = torch.Generator().manual_seed(0)
        >>> start = torch.tensor([[1.0, 0.0]])
        >>> end = manifold_walk(ring, start, g, steps=100, radius=0.05, direction="carried", corrector=1e-3)
        >>> abs(end.norm().item() - 1) < 0.05, (end - start).norm().item() > 0.3
        (True, True)
    """
    if direction not in get_args(Direction):
        raise unknown("direction of a walk", direction, get_args(Direction))
    if steps < 0:
        raise UserError(f"a walk needs steps (T) >= 0, got {steps}")
    if radius <= 0:
        raise UserError(f"a walk needs a radius (epsilon) > 0, got {radius}")
    shape = x.shape
    point = x.flatten(1)
    delta = _in_ball(point, radius, generator)
    if direction == "carried":
        length = radius * (0.5 + 0.5 * _uniform(point, generator))
        delta = F.normalize(delta, dim=1) * length
    path = [x]
    for t in range(steps):
        if direction == "fresh" and t > 0:
            delta = _in_ball(point, radius, generator)
        g = normal(energy, (point + delta).view(shape)).flatten(1)
        scale = g.abs().amax(dim=1, keepdim=True)  # squares of the raw score may leave the number range
        unit = F.normalize(g / scale.clamp_min(torch.finfo(g.dtype).tiny), dim=1)
        move = torch.addcmul(delta, (unit * delta).sum(dim=1, keepdim=True), unit, value=-1)
        if corrector > 0:
            climb = corrector * (g * unit).sum(dim=1, keepdim=True)
            move = torch.addcmul(move, climb.clamp_max(radius), unit)
        point = point + move
        if relax is not None:
            start, point = point, relax(energy, point.view(shape), generator).flatten(1)
            move = move + point - start
        if direction == "carried":
            delta = F.normalize(torch.lerp(move, delta, inertia), dim=1) * length
        if every and ((t + 1) % every == 0 or t + 1 == steps):
            path.append(point.view(shape))
    return torch.stack(path) if every else point.view(shape)


def _in_ball(x: Tensor, radius: float, generator: torch.Generator) -> Tensor:
    """Uniform in the ball: the radius of a d-ball has the law of U^(1/d)."""
    way = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
    return F.normalize(way, dim=1) * (radius * _uniform(x, generator) ** (1 / x.shape[1]))


def _uniform(x: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(len(x), 1, generator=generator, device=x.device, dtype=x.dtype)
