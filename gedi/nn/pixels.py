"""An image, number by number: each given those before it."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gedi.nn.conv import draw_conv
from gedi.precision import full_precision

_SHARPEST = -5.0  # least logarithm of a bump's width, in spreads of the data


class MaskedConv(nn.Conv2d):
    """A convolution that sees only what comes before: rows above, pixels to the left, and of the same pixel earlier
    channels.

    Args:
        inputs, outputs: channels, a multiple of ``groups``; each group belongs to one channel of the image.
        size: of the kernel, odd.
        groups_of_channels: channels of the image.
        strict: the own channel is not seen either, as a first layer needs.
    """

    mask: Tensor

    def __init__(self, inputs: int, outputs: int, size: int, groups_of_channels: int, *, strict: bool) -> None:
        super().__init__(inputs, outputs, size, padding=size // 2)
        mask, middle = torch.zeros(outputs, inputs, size, size), size // 2
        mask[:, :, :middle] = 1
        mask[:, :, middle, :middle] = 1
        given = torch.arange(inputs) * groups_of_channels // inputs
        made = torch.arange(outputs) * groups_of_channels // outputs
        seen = given[None] < made[:, None] if strict else given[None] <= made[:, None]
        mask[:, :, middle, middle] = seen.float()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The convolution with its mask."""
        return F.conv2d(x, self.weight * self.mask, self.bias, padding=self.padding)


class PixelNet(nn.Module):
    """Masked convolutions that give a mixture of logistic bumps for every number of an image.

    Args:
        shape: (channels, height, width).
        features: channels of the layers, for each channel of the image.
        layers: how many lie between the first and the last.
        bumps: of the mixture.
        generator: the stream the weights are drawn from.

    Source: van den Oord et al., "Pixel recurrent neural networks", 2016; Salimans et al., "PixelCNN++", 2017.
    """

    centre: Tensor
    spread: Tensor
    blur: Tensor

    def __init__(
        self, shape: Sequence[int], features: int, layers: int, bumps: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        c = shape[0]
        self.shape, self.bumps = tuple(shape), bumps
        self.first = MaskedConv(c, c * features, 7, c, strict=True)
        self.between = nn.ModuleList(MaskedConv(c * features, c * features, 3, c, strict=False) for _ in range(layers))
        self.last = MaskedConv(c * features, c * 3 * bumps, 1, c, strict=False)
        for layer in (self.first, *self.between, self.last):
            assert isinstance(layer, MaskedConv)
            draw_conv(layer, generator)
        self.register_buffer("centre", torch.zeros(()))
        self.register_buffer("spread", torch.ones(()))
        self.register_buffer("blur", torch.zeros(()))

    def set_scales(self, centre: float, spread: float, blur: float) -> None:
        """Where the data's numbers lie, how far apart, and the noise they are trained with."""
        self.centre.fill_(centre)
        self.spread.fill_(spread)
        self.blur.fill_(blur)

    def forward(self, inside: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, places and log widths of the bumps of every number: (n, bumps, *shape) each."""
        n = len(inside)
        x = F.silu(self.first(inside))
        for layer in self.between:
            x = x + F.silu(layer(x))
        found = self.last(x).view(n, self.shape[0], 3, self.bumps, *x.shape[2:]).permute(2, 0, 3, 1, 4, 5)
        logits, places, widths = found
        return logits, places, widths.clamp_min(_SHARPEST)

    @full_precision
    def log_prob(self, x: Tensor) -> Tensor:
        """``log p(x)``, exact: (n, *shape) -> (n,)."""
        inside = (x.to(self.centre) - self.centre) / self.spread
        logits, places, widths = self(inside)
        away = (inside.unsqueeze(1) - places) * torch.exp(-widths)
        bump = -away - widths - 2 * F.softplus(-away)  # the logistic density
        each = torch.logsumexp(logits.log_softmax(dim=1) + bump, dim=1)
        total: Tensor = each.flatten(1).sum(dim=1) - math.prod(self.shape) * self.spread.log()
        return total

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Tensor:
        """n images, number by number, (n, *shape)."""
        x = torch.zeros(n, *self.shape, device=self.centre.device, dtype=self.centre.dtype)
        channels, height, width = self.shape
        draws = torch.rand(2, n, *self.shape, generator=generator, device=generator.device).to(x).clamp(1e-6, 1 - 1e-6)
        reach = 3 + len(self.between)  # rows further above are seen by no layer
        for row in range(height):
            above = max(0, row - reach)
            for column in range(width):
                for channel in range(channels):
                    which, where = draws[:, :, channel, row, column]
                    logits, places, widths = (p[:, :, channel, -1, column] for p in self(x[:, :, above : row + 1]))
                    x[:, channel, row, column] = drawn_number(logits, places, widths, which, where)
        return self.centre + self.spread * x


def drawn_number(logits: Tensor, places: Tensor, widths: Tensor, which: Tensor, where: Tensor) -> Tensor:
    """A number of each mixture of logistic bumps, (n,), by two uniform numbers each.

    Args:
        logits, places, widths: of the bumps, widths as logarithms, (n, bumps).
        which: chooses the bump, (n,).
        where: the place within it, (n,).
    """
    chosen = (logits.softmax(dim=1).cumsum(dim=1) < which[:, None]).sum(dim=1).clamp_max(logits.shape[1] - 1)[:, None]
    return places.gather(1, chosen)[:, 0] + widths.gather(1, chosen)[:, 0].exp() * torch.logit(where)
