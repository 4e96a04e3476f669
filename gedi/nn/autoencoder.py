"""What a variational autoencoder adds to an encoder: a normal posterior, and the way back to points."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gedi.nn.conv import draw_conv
from gedi.nn.mlp import draw_linear


class Autoencoder(nn.Module):
    r"""``q(z|x) = N(m(xi), s(xi)^2)`` from the latent ``xi`` of a point, ``p(x|z) = N(centre + spread g(z), sigma^2)``.

    Args:
        latent: length h of ``xi``.
        code: length of ``z``.
        shape: of a point.
        width: neurons of a layer of ``g``; channels of its convolutions for images.
        encoder: for the density alone; None shares the clusters'.
        generator: the stream the weights are drawn from.
    """

    centre: Tensor
    spread: Tensor

    def __init__(
        self,
        latent: int,
        code: int,
        shape: Sequence[int],
        width: int,
        encoder: nn.Module | None,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.encoder, self.code, self.shape = encoder, code, tuple(shape)
        self.posterior = nn.Linear(latent, 2 * code)
        self.decoder = _rows(code, shape[0], width) if len(shape) == 1 else _images(code, shape, width)
        for layer in (self.posterior, *self.decoder.modules()):
            if isinstance(layer, nn.Linear):
                draw_linear(layer, generator)
            elif isinstance(layer, nn.Conv2d):
                draw_conv(layer, generator)
        self.log_sigma = nn.Parameter(torch.tensor([-1.0]))  # (1,): of what is left over, in spreads of the data
        self.register_buffer("centre", torch.zeros(*shape))
        self.register_buffer("spread", torch.ones(()))

    def set_scales(self, centre: Tensor, spread: float) -> None:
        """Where the data lie, and how far apart."""
        self.centre.copy_(centre)
        self.spread.fill_(spread)

    @property
    def sigma(self) -> Tensor:
        """The width of what is left over, in the data's units."""
        return self.spread * self.log_sigma.exp()

    def normal(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log width of the posterior, (n, code) each."""
        mean, log_width = self.posterior(latent.to(self.posterior.weight.dtype)).chunk(2, dim=1)
        return mean, log_width.clamp(-10, 10)

    def decoded(self, z: Tensor) -> Tensor:
        """The mean of the points that codes stand for, (n, *shape)."""
        found: Tensor = self.centre + self.spread * self.decoder(z).view(-1, *self.shape)
        return found

    def bound(self, x: Tensor, latent: Tensor, noise: Tensor) -> Tensor:
        """The evidence lower bound of each point, its expectation by one draw a point: (n, *shape) -> (n,)."""
        mean, log_width = self.normal(latent)
        away = (x - self.decoded(mean + log_width.exp() * noise)).flatten(1) / self.sigma
        likely = -(away.square().sum(dim=1) + away.shape[1] * (math.log(2 * math.pi) + 2 * self.sigma.log())) / 2
        apart = (mean.square() + (2 * log_width).exp() - 1 - 2 * log_width).sum(dim=1) / 2
        return likely - apart


def _rows(code: int, columns: int, width: int) -> nn.Sequential:
    inner = [nn.Linear(code, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()]
    return nn.Sequential(*inner, nn.Linear(width, columns))


class _Grown(nn.Module):
    """A map of twice the side, or of a side that is given."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, x: Tensor) -> Tensor:
        """Every pixel as often as it takes."""
        return F.interpolate(x, size=self.side, mode="nearest")


def _images(code: int, shape: Sequence[int], width: int) -> nn.Sequential:
    channels, side, _ = shape
    small = max(1, side // 4)
    return nn.Sequential(
        nn.Linear(code, 2 * width * small**2),
        nn.SiLU(),
        nn.Unflatten(1, (2 * width, small, small)),
        _Grown(max(1, side // 2)),
        nn.Conv2d(2 * width, width, 3, padding=1),
        nn.SiLU(),
        _Grown(side),
        nn.Conv2d(width, width, 3, padding=1),
        nn.SiLU(),
        nn.Conv2d(width, channels, 3, padding=1),
    )
