"""Number by number: an exact likelihood in which every number is given those before it."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from gedi.data import scales_of
from gedi.densities.flow import FlowDensity, FlowEnergy
from gedi.nn import Model
from gedi.nn.pixels import PixelNet
from gedi.random import Streams
from gedi.settings import Positive
from gedi.types import EnergyFn, Points

_IMAGE_BLUR = 0.05  # noise on images, in spreads of their numbers: a constant background has no density without


class AutoregressiveDensity(FlowDensity):
    """Term: ``likelihood``, exact. Rows of a table by an autoregressive flow, images by masked convolutions.

    It has a network of its own. Of rows it has a latent as a flow does; samples of images take one pass a number.
    """

    features: Positive = 24  # images: channels of a layer, for each channel of the image
    layers: Positive = 5  # images
    bumps: Positive = 5  # images: of each number's mixture

    kind: ClassVar[str] = "autoregressive"
    coupling: ClassVar[bool] = False

    def module(
        self, latent: int, encoder: Callable[[str], nn.Module], streams: Streams, shape: Sequence[int] = ()
    ) -> nn.Module:
        """A flow, or masked convolutions."""
        if len(shape) != 3:
            return super().module(latent, encoder, streams, shape)
        return PixelNet(shape, self.features, self.layers, self.bumps, streams["pixels"])

    def measure(self, model: Model, points: Points) -> None:
        """Centre and spread of the data, and the noise."""
        if not isinstance(model.density, PixelNet):
            super().measure(model, points)
            return
        scales = scales_of(points)
        model.density.set_scales(float(scales.centre.mean()), scales.spread, _IMAGE_BLUR * scales.spread)

    def _log_prob(self, model: Model) -> Callable[[Tensor], Tensor]:
        return model.density.log_prob if isinstance(model.density, PixelNet) else super()._log_prob(model)

    def _blur(self, model: Model) -> Tensor:
        return model.density.blur if isinstance(model.density, PixelNet) else super()._blur(model)

    def energy(self, model: Model) -> EnergyFn | FlowEnergy:  # type: ignore[override]
        """``-log p(x)``, with nothing left out."""
        network = model.density
        return (lambda x: -network.log_prob(x)) if isinstance(network, PixelNet) else super().energy(model)

    def sample(self, model: Model, n: int, generator: torch.Generator) -> Tensor:
        """Number by number."""
        network = model.density
        return network.sample(n, generator) if isinstance(network, PixelNet) else super().sample(model, n, generator)
