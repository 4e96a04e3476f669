"""Perturb and denoise: a walk that noise takes off the data and the density brings back."""

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.errors import UserError
from gedi.score import posterior_mean
from gedi.types import EnergyFn


@torch.no_grad()
def denoise_walk(
    energy: EnergyFn,
    x: Tensor,
    generator: torch.Generator,
    *,
    steps: int = 2,
    width: float | None = None,
    every: int = 0,
) -> Tensor:
    r"""Walk each point by noise and what the density makes of it.

    .. math:: x \leftarrow \mathbb{E}[\, x_0 \mid x_0 + \sigma n_0 = x + \sigma n \,], \qquad n \sim N(0, I)

    Noise leads off the manifold in nearly every one of many dimensions; the posterior mean leads back to it, some way
    along. A step is one evaluation of the posterior mean: one pass of a denoiser, or the score by Tweedie's formula.

    Args:
        energy: of the density; see :func:`gedi.score.posterior_mean`.
        x: starting points, (n, *shape).
        generator: the stream of noise.
        steps: ``T``, the number of updates.
        width: ``sigma``; None takes the energy's own ``walk_width``.
        every: if positive, return the path instead, every that many steps.

    Returns:
        End points (n, *shape); with ``every``, the path (1 + ceil(steps / every), n, *shape), ends included.

    Example:
        >>> blurred = lambda x: x.square().sum(1) / 4       # points N(0, 1) with noise of width 1
        >>> start = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))
        >>> end = denoise_walk(blurred, start, torch.Generator().manual_seed(1), steps=1, width=1.0)
        >>> torch.corrcoef(torch.stack([start[:, 0], end[:, 0]]))[0, 1].item()    # half of the way is new
        0.7...
    """
    if steps < 0:
        raise UserError(f"a walk needs steps (T) >= 0, got {steps}")
    width = getattr(energy, "walk_width", None) if width is None else width
    if width is None:
        raise UserError("this density has no width of its own for walks that denoise: give one (walk.radius)")
    if width <= 0:
        raise UserError(f"a walk that denoises needs a width of its noise > 0, got {width}")
    path = [x]
    for t in range(steps):
        noise = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        x = posterior_mean(energy, x + width * noise, width)
        if every and ((t + 1) % every == 0 or t + 1 == steps):
            path.append(x)
    return torch.stack(path) if every else x


@torch.no_grad()
def noise_as_long(x: Tensor, ends: Tensor, generator: torch.Generator) -> Tensor:
    """The control of a walk: from each point as far as it went, in a direction that knows nothing of a density.

    Args:
        x: where walks began, (n, *shape).
        ends: where they ended, (n, *shape), or their paths, (places, n, *shape), whose places share a direction.
        generator: the stream of directions.

    Example:
        >>> start = torch.zeros(1, 2)
        >>> noise_as_long(start, torch.tensor([[3.0, 4.0]]), torch.Generator().manual_seed(0)).norm()
        tensor(5.)
    """
    way = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype).flatten(1)
    length = (ends - x).flatten(1 - x.dim()).norm(dim=-1, keepdim=True)
    noise: Tensor = (F.normalize(way, dim=1) * length).view(ends.shape)
    return x + noise
