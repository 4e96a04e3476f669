"""A variational autoencoder: a bound of the likelihood, by codes from the clusters' own encoder."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from gedi.data import scales_of
from gedi.densities.density import Carried, Density, Draw, Joined, Values
from gedi.nn import Model
from gedi.nn.autoencoder import Autoencoder
from gedi.precision import full_precision, no_autocast
from gedi.random import Streams, derive_seed
from gedi.settings import Positive, Switch
from gedi.types import Points

_PAIRS = 8  # of noise and its opposite, that the energy is averaged over


class VaeDensity(Density):
    r"""Term: ``bound``, the negative evidence lower bound

    .. math:: - \mathbb{E}_{q(z|x)} \log p(x|z) + KL(q(z|x) \,\|\, N(0, I)) \geq - \log p(x)

    The posterior stands on the latent that the clusters stand on; ``own_encoder`` gives it one of its own. What it
    calls log density is the bound, averaged over noise that is always the same. Walks may go among the codes and back
    (``walk.direction=latent``).

    Source: Kingma and Welling, "Auto-encoding variational Bayes", 2014.
    """

    code: Positive = 8  # length of z
    width: Positive = 64  # neurons of the decoder's layers; of images a quarter is its channels
    own_encoder: Switch = False

    kind: ClassVar[str] = "vae"
    terms: ClassVar[tuple[str, ...]] = ("bound",)
    has_latent: ClassVar[bool] = True

    @property
    def encoders(self) -> int:
        """Two where it has its own."""
        return 1 + self.own_encoder

    def module(
        self, latent: int, encoder: Callable[[str], nn.Module], streams: Streams, shape: Sequence[int] = ()
    ) -> nn.Module:
        """Posterior and decoder, and an encoder where it has its own."""
        own = encoder("generative_encoder") if self.own_encoder else None
        width = self.width if len(shape) == 1 else max(1, self.width // 4)
        return Autoencoder(latent, self.code, shape, width, own, streams["decoder"])

    def measure(self, model: Model, points: Points) -> None:
        """Centre and spread of the data."""
        scales = scales_of(points)
        _part(model).set_scales(scales.centre, scales.spread)

    def draw(
        self,
        model: Model,
        x: Tensor,
        anchor: Tensor,
        weights: Mapping[str, float],
        carried: Carried,
        streams: Streams,
    ) -> tuple[Draw, Carried]:
        """The batch, and noise for its codes."""
        if not weights.get("bound", 0) > 0:
            return Draw(), carried
        noise = torch.randn(len(x), self.code, generator=streams["codes"], device=x.device, dtype=x.dtype)
        return Draw([] if self.own_encoder else [x], {"points": x, "codes": noise}), carried

    def values(
        self,
        model: Model,
        draw: Draw,
        latents: list[Tensor],
        weights: Mapping[str, float],
        joined: Joined,
        watching: bool,
    ) -> Values:
        """The mean of the bound over every process's points."""
        if "points" not in draw.apart:
            return Values({}, {})
        part = _part(model)
        (latent,) = joined(part.encoder, [draw.apart["points"]]) if part.encoder is not None else latents
        (points,), (noise,) = (joined(lambda x: x, [draw.apart[name]]) for name in ("points", "codes"))
        with no_autocast():
            return Values({"bound": -part.bound(points.to(part.centre), latent, noise.to(part.centre)).mean()}, {})

    def energy(self, model: Model) -> "BoundEnergy":
        """The negative bound."""
        own = _part(model).encoder
        return BoundEnergy(model.encoder if own is None else own, _part(model))

    @torch.no_grad()
    def sample(self, model: Model, n: int, generator: torch.Generator) -> Tensor:
        """Normal codes, decoded, with what is left over."""
        part = _part(model)
        z = torch.randn(n, self.code, generator=generator, device=generator.device).to(part.centre)
        noise = torch.randn(n, *part.shape, generator=generator, device=generator.device).to(part.centre)
        return part.decoded(z) + part.sigma * noise


class BoundEnergy:
    """See :class:`VaeDensity`."""

    def __init__(self, encoder: nn.Module, part: Autoencoder) -> None:
        self.encoder, self.part = encoder, part

    @full_precision
    def __call__(self, x: Tensor) -> Tensor:
        """The negative bound of each point: (n, *shape) -> (n,)."""
        always = torch.Generator().manual_seed(derive_seed(0, "vae/energy"))
        noise = torch.randn(_PAIRS, 1, self.part.code, generator=always).to(self.part.centre)
        x = x.to(self.part.centre)
        latent = self.encoder(x)
        bounds = [self.part.bound(x, latent, sign * one) for one in noise for sign in (1, -1)]
        return -torch.stack(bounds).mean(dim=0)

    @torch.no_grad()
    def encoded(self, x: Tensor) -> Tensor:
        """The mean code of each point."""
        return self.part.normal(self.encoder(x))[0]

    @torch.no_grad()
    def decoded(self, z: Tensor) -> Tensor:
        """The mean point of each code."""
        return self.part.decoded(z)


def _part(model: Model) -> Autoencoder:
    if not isinstance(model.density, Autoencoder):
        raise TypeError("this model has no autoencoder: it was built with another density")
    return model.density
