"""Walks in the latent of a density that has one, and back."""

from typing import Any

import torch
from torch import Tensor

from gedi.errors import UserError


@torch.no_grad()
def latent_walk(
    energy: Any, x: Tensor, generator: torch.Generator, *, steps: int = 2, width: float = 0.3, every: int = 0
) -> Tensor:
    r"""Walk each point by a step of its latent that leaves the normal distribution as it is.

    .. math:: z = f(x), \qquad z \leftarrow \sqrt{1 - \epsilon^2}\, z + \epsilon\, n, \qquad x = f^{-1}(z)

    Every latent decodes to something likely, so no walk leaves the data; where clusters are not apart in the latent it
    may go from one to another.

    Args:
        energy: of a density with a latent: it has ``encoded`` and ``decoded``.
        x: starting points, (n, *shape).
        generator: the stream of noise.
        steps: ``T``, the number of updates.
        width: ``epsilon``, at most 1.
        every: if positive, return the path instead, every that many steps.

    Returns:
        End points (n, *shape); with ``every``, the path (1 + ceil(steps / every), n, *shape), ends included.
    """
    if steps < 0:
        raise UserError(f"a walk needs steps (T) >= 0, got {steps}")
    if not 0 < width <= 1:
        raise UserError(f"a walk in a latent needs a width > 0 and at most 1 (walk.radius), got {width}")
    if not hasattr(energy, "encoded"):
        raise UserError("walk.direction=latent needs a density with a latent: density.kind=flow, autoregressive or vae")
    if steps == 0:
        return x[None] if every else x
    z, path = energy.encoded(x), [x]
    for t in range(steps):
        noise = torch.randn(z.shape, generator=generator, device=z.device, dtype=z.dtype)
        z = (1 - width**2) ** 0.5 * z + width * noise
        if every and ((t + 1) % every == 0 or t + 1 == steps):
            path.append(energy.decoded(z).to(x))
    return torch.stack(path) if every else energy.decoded(z).to(x)
