"""Energy matching: the energy first learns the way from noise to the data, then where on it the data are."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from gedi.densities.density import Carried, Draw, Joined, Values
from gedi.densities.energy import EnergyDensity
from gedi.nn import Model
from gedi.random import Streams
from gedi.settings import Amount, Count


class EnergyMatchingDensity(EnergyDensity):
    r"""Terms: ``matching``, and ``denoising`` and ``penalty`` as the energy has them.

    For the first ``warmup`` steps the score follows the straight ways of an optimal transport between a batch of noise
    and a batch of data,

    .. math:: \mathbb{E} \lVert -\nabla E(x_t) - (x_1 - x_0) \rVert^2, \qquad x_t = (1 - t)\, x_0 + t\, x_1

    with :math:`x_0` normal with the data's centre and spread. Then the energy learns by contrast with its own samples,
    and by score matching if it has a weight, as the paper's does; the ways count ``ways`` beside it.

    Source: Balcerak et al., "Energy matching: unifying flow matching and energy-based models for generative modeling",
    2025; its pairs are those of Tong et al., 2024 (optimal transport within batches).
    """

    warmup: Count = 300  # steps of the ways alone
    ways: Amount = 0.0  # weight of the ways afterwards: at temperature 1 they are far too flat

    kind: ClassVar[str] = "energy-matching"
    terms: ClassVar[tuple[str, ...]] = ("matching", "denoising", "penalty")

    def begin(self, generator: torch.Generator) -> Carried:
        """New chains, and no step made."""
        return {**super().begin(generator), "steps": 0}

    def draw(
        self,
        model: Model,
        x: Tensor,
        anchor: Tensor,
        weights: Mapping[str, float],
        carried: Carried,
        streams: Streams,
    ) -> tuple[Draw, Carried]:
        """Places on the ways, and, once warm, chains as the energy has them."""
        weight = weights.get("matching", 0)
        if not weight > 0:
            return super().draw(model, x, anchor, weights, carried, streams)
        warm = carried["steps"] >= self.warmup
        wanted = {**weights, "generative": weight} if warm else {}
        drawn, _ = super().draw(model, x, anchor, wanted, carried, streams)
        places, velocity = ways(x, streams["ways"])
        return (
            drawn._replace(apart={**drawn.apart, "places": places, "velocity": velocity}),
            {**carried, "steps": carried["steps"] + 1},
        )

    def values(
        self,
        model: Model,
        draw: Draw,
        latents: list[Tensor],
        weights: Mapping[str, float],
        joined: Joined,
        watching: bool,
    ) -> Values:
        """The ways, and the contrast where chains were drawn."""
        if "places" not in draw.apart:
            return super().values(model, draw, latents, weights, joined, watching)
        energy = self.energy(model)
        (score,) = joined(lambda x: energy.with_score(x)[1], [draw.apart["places"]])
        (velocity,) = joined(lambda x: x, [draw.apart["velocity"]])
        matching = (score - velocity).flatten(1).square().sum(dim=1).mean()
        if "samples" not in draw.apart:
            return Values({"matching": matching, "denoising": 0 * matching, "penalty": 0 * matching}, {})
        found = super().values(model, draw, latents, {**weights, "generative": 1.0}, joined, watching)
        contrast = found.terms.pop("generative")
        return Values({"matching": contrast + self.ways * matching, **found.terms}, found.figures)


@torch.no_grad()
def ways(x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Places on straight ways from noise to a batch of data, (n, *shape), and the velocity there.

    Noise has the batch's centre and spread; pairs are those of the least squared distance in all.

    Example:
        >>> x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0)) + 5
        >>> places, velocity = ways(x, torch.Generator().manual_seed(1))
        >>> places.shape, bool(velocity.norm(dim=1).mean() < 1)      # near pairs: the ways are short
        (torch.Size([64, 2]), True)
    """
    centre = x.mean(dim=0)
    spread = (x - centre).square().mean().sqrt()
    noise = centre + spread * torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
    cost = torch.cdist(noise.flatten(1), x.flatten(1)).square().cpu()
    _, chosen = linear_sum_assignment(cost.numpy())
    end = x[torch.as_tensor(chosen, device=x.device)]
    time = torch.rand(len(x), *[1] * (x.dim() - 1), generator=generator, device=x.device, dtype=x.dtype)
    return torch.lerp(noise, end, time), end - noise
