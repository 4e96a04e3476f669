"""A density known by how noise is taken off its points: one small network for many noise widths."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from gedi.data import scales_of, spread
from gedi.densities.density import Carried, Density, Draw, Joined, Values
from gedi.nn import Model
from gedi.nn.denoiser import Denoiser
from gedi.precision import full_precision
from gedi.random import Streams, derive_seed
from gedi.sampling import Box
from gedi.settings import Positive, Switch, Width
from gedi.types import Points

_LEVELS = 8  # widths that the energy is summed over
_NUMBERS = 64  # of noise that a level is averaged over, at least
_ANNEALED = 50  # widths that samples come down through
_ASKED = 500  # points that tell how far steps go
_HALVINGS = 12  # of the range that the width of walks is looked for in
_AT_A_TIME = 1000  # points that are denoised together


class DenoiserDensity(Density):
    r"""Term: ``denoising``, the mean squared error of what was noised, in errors of the best Gaussian's denoiser.

    What it answers follows from the denoiser ``D`` alone, widths ``sigma`` running from the lowest to the highest:

    .. math:: -\log p(x) = \int \mathbb{E}_n \frac{\lVert x - D(x + \sigma n, \sigma) \rVert^2}{\sigma^2} d\ln\sigma
              + \frac{\lVert x - m \rVert^2}{2 (s^2 + \sigma_{highest}^2)} + const

    which is exact for the posterior mean and widths from 0 on (the second part is what lies above the highest, where
    the data look like one Gaussian). Widths below the lowest are left out, so that detail finer than that is not told
    apart. The integral is a sum over eight widths, the mean over noise that is always the same: a plain function of
    ``x``, whose gradient the score is.

    Without an encoder of its own it decodes the latent that the clusters stand on; then it has to be trained beside
    them, and walks follow it as it learns (``walk.energy=live``, ``walk.start``).

    Source: Kong, Brekelmans and Ver Steeg, "Information-theoretic diffusion", 2023.
    """

    features: Positive = 32  # channels of the first convolution; of rows, a quarter of a layer's neurons
    lowest: Width | None = None  # of the noise; None: half of what reaches the nearest neighbour
    highest: Width | None = None  # None: three times the data's spread
    own_encoder: Switch = True  # a network of its own; False decodes the latents of the clusters' encoder
    augmented: Switch = False  # learns what images look like once they are augmented, but for the noise of the view
    reach: Width = 0.6  # of the way to the nearest neighbour that a step of a walk goes, where its width is not given

    kind: ClassVar[str] = "denoiser"
    terms: ClassVar[tuple[str, ...]] = ("denoising",)
    chooses_width: ClassVar[bool] = True

    @property
    def sees_augmented(self) -> bool:
        """As the settings say."""
        return self.augmented

    @property
    def encoders(self) -> int:
        """The clusters' and its own, where it has one."""
        return 1 + self.own_encoder

    def module(
        self, latent: int, encoder: Callable[[str], nn.Module], streams: Streams, shape: Sequence[int] = ()
    ) -> nn.Module:
        """The denoiser, or what makes one of the clusters' encoder."""
        shared = None if self.own_encoder else latent
        return Denoiser(shape, self.features, latent=shared, generator=streams["denoiser"])

    def measure(self, model: Model, points: Points) -> None:
        """Centre and spread of the data, and the widths that follow from them."""
        scales = scales_of(points)
        highest = self.highest or 3 * scales.spread
        lowest = self.lowest or min(scales.near / 2, highest / 10)
        network_of(model).set_scales(scales.centre, scales.spread, min(lowest, highest), highest)

    @torch.no_grad()
    def settle(self, model: Model, points: Points) -> None:
        """The width at which a step of the walk goes a set share of the way to the nearest neighbour."""
        network, wanted = network_of(model), self.reach * scales_of(points).near
        x = points[spread(len(points), _ASKED)].to(network.centre)
        noise = _normal(x.shape, _always("steps of walks"), x)
        energy, low, high = self.energy(model), network.lowest.log(), network.highest.log()
        for _ in range(_HALVINGS):
            width = float(((low + high) / 2).exp())
            step = (energy.denoised(x + width * noise, width) - x).square().mean().sqrt()
            low, high = ((low + high) / 2, high) if step < wanted else (low, (low + high) / 2)
        network.walk_width.fill_(float(((low + high) / 2).exp()))

    def draw(
        self,
        model: Model,
        x: Tensor,
        anchor: Tensor,
        weights: Mapping[str, float],
        carried: Carried,
        streams: Streams,
    ) -> tuple[Draw, Carried]:
        """The batch with noise, each point's of its own width."""
        if not weights.get("denoising", 0) > 0:
            return Draw(), carried
        network, generator = network_of(model), streams["denoising"]
        share = torch.rand(len(x), generator=generator, device=x.device, dtype=x.dtype)
        width = network.lowest * (network.highest / network.lowest) ** share
        noise = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        noised = x + _each(width, x) * noise
        encoded = [] if self.own_encoder else [network.encoded(noised, width)]
        return Draw(encoded, {"clean": x, "noised": noised, "width": width}), carried

    def values(
        self,
        model: Model,
        draw: Draw,
        latents: list[Tensor],
        weights: Mapping[str, float],
        joined: Joined,
        watching: bool,
    ) -> Values:
        """The weighted error of every process's points."""
        if "noised" not in draw.apart:
            return Values({}, {})
        network, clean, noised, width = network_of(model), *(draw.apart[name] for name in ("clean", "noised", "width"))
        if self.own_encoder:
            (errors,) = joined(lambda x: relative_errors(network, network(x, width), clean, width), [noised])
        else:  # latents are those of all processes
            clean, noised, width = (joined(lambda x: x, [part])[0] for part in (clean, noised, width))
            errors = relative_errors(network, network.decoded(noised, width, latents[0]), clean, width)
        return Values({"denoising": errors.mean()}, {})

    def energy(self, model: Model) -> "Reconstruction":
        """``-log p(x)`` up to a constant, and the posterior mean in one pass."""
        return Reconstruction(network_of(model), self._place.box, None if self.own_encoder else model.encoder)

    def denoised(self, model: Model, x: Tensor, width: float) -> Tensor:
        """One pass of the network."""
        return self.energy(model).denoised(x, width)

    @torch.no_grad()
    def sample(self, model: Model, n: int, generator: torch.Generator) -> Tensor:
        """Noise, brought down through the widths: at each the posterior mean, and as much noise as the next one has."""
        network = network_of(model)
        widths = network.widths(_ANNEALED).flip(0)
        total = (network.spread.square() + widths[0].square()).sqrt()
        x = network.centre + total * _normal((n, *network.centre.shape), generator, network.centre)
        energy = self.energy(model)
        for width, following in itertools.pairwise(widths):
            mean, kept = energy.denoised(x, float(width)), (following / width).square()
            x = mean + kept * (x - mean) + following * (1 - kept).sqrt() * _normal(x.shape, generator, x)
        return energy.denoised(x, float(widths[-1]))


class Reconstruction:
    """The energy of a denoiser, by the clusters' encoder if it shares that: see :class:`DenoiserDensity`."""

    def __init__(self, network: Denoiser, box: Box, encoder: nn.Module | None = None) -> None:
        self.network, self.box, self.encoder = network, box, encoder

    @property
    def walk_width(self) -> float:
        """The width of the noise in walks."""
        return float(self.network.walk_width)

    @full_precision  # squares are divided by small ones
    def __call__(self, x: Tensor) -> Tensor:
        """The energy of each point: (n, *shape) -> (n,)."""
        network = self.network
        beyond = 2 * (network.spread.square() + network.highest.square())
        total = (x - network.centre).flatten(1).square().sum(dim=1) / beyond
        widths = network.widths(_LEVELS)
        step = (network.highest / network.lowest).log() / (_LEVELS - 1)
        for i, width in enumerate(widths):
            share = step / 2 if i in (0, _LEVELS - 1) else step  # of the integral, by trapezoids
            total = total + share * self._errors(x, width) / width.square()
        return total

    @torch.no_grad()
    def denoised(self, x: Tensor, width: float) -> Tensor:
        """The posterior mean of points with noise of a width; as a mean of data it lies where data can lie."""
        parts = [self._mean(part, part.new_full((len(part),), width)) for part in torch.split(x, _AT_A_TIME)]
        return torch.clamp(torch.cat(parts), self.box.low.to(x), self.box.high.to(x))

    @torch.no_grad()
    def normal(self, x: Tensor) -> Tensor:
        """The score of the data blurred by the lowest width, by Tweedie's formula: (n, *shape).

        Of the exact posterior mean it is the energy's, at one pass where the gradient takes sixteen each way.
        """
        width = self.network.lowest
        found: Tensor = (self._mean(x, width.expand(len(x))) - x) / width.square()
        return found

    def _mean(self, x: Tensor, width: Tensor) -> Tensor:
        found: Tensor = self.network(x, width, self.encoder)
        return found

    def _errors(self, x: Tensor, width: Tensor) -> Tensor:
        """The mean squared error at a width over noise and its opposite, summed over coordinates: (n,)."""
        pairs = max(1, math.ceil(_NUMBERS / 2 / math.prod(x.shape[1:])))
        noise = _normal((pairs, *x.shape[1:]), _always("energy"), x)
        noised = x + width * torch.cat([noise, -noise]).unsqueeze(1)  # (draws, n, *shape)
        found = self._mean(noised.flatten(0, 1), width.expand(2 * pairs * len(x))).view_as(noised)
        errors: Tensor = (found - x).flatten(2).square().sum(dim=2).mean(dim=0)
        return errors


def network_of(model: Model) -> Denoiser:
    """The denoiser of a model that was built with one."""
    if not isinstance(model.density, Denoiser):
        raise TypeError("this model has no denoiser: it was built without a density, or with another one")
    return model.density


@full_precision
def relative_errors(network: Denoiser, found: Tensor, clean: Tensor, width: Tensor) -> Tensor:
    """The mean squared error of each point over what the best denoiser of a Gaussian has: (n,)."""
    return (found - clean).flatten(1).square().mean(dim=1) / network.size(width).square()


def _each(width: Tensor, x: Tensor) -> Tensor:
    return width.view(-1, *[1] * (x.dim() - 1))


def _always(name: str) -> torch.Generator:
    """The same numbers whenever asked; not those of a plain seed, which the data may have been drawn from."""
    return torch.Generator().manual_seed(derive_seed(0, f"denoiser/{name}"))


def _normal(shape: Sequence[int], generator: torch.Generator, like: Tensor) -> Tensor:
    """Standard normal numbers where ``like`` is, whatever device they are drawn on."""
    return torch.randn(tuple(shape), generator=generator, device=generator.device, dtype=like.dtype).to(like.device)
