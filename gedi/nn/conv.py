"""A small convolutional encoder for small images."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gedi.nn.mlp import LEAK, draw_linear


class ConvEncoder(nn.Module):
    """``enc(x)``: four convolutions without normalisation, then one linear layer.

    No batch statistics, so that the energy of an image does not depend on its neighbours. The side is halved
    until it is at most 4 (28 -> 14 -> 7 -> 4; 8 -> 4).

    Args:
        shape: (channels, height, width) of the images.
        width: channels of the first layer; the last has four times as many.
        outputs: dimension h of the latent.
        generator: the stream the weights are drawn from.

    Example:
        >>> ConvEncoder((1, 28, 28), 16, 64)(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 64])
    """

    def __init__(
        self, shape: Sequence[int], width: int, outputs: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        channels, height, side = shape
        if height != side or side < 4:
            raise ValueError(f"images must be square with a side of at least 4, got {tuple(shape)}")
        halvings = max(0, math.ceil(math.log2(side / 4)))
        first, pool, last = (2 if halvings >= k else 1 for k in (2, 1, 3))
        self.net = nn.Sequential(
            nn.Conv2d(channels, width, 5, first, 2),
            nn.LeakyReLU(LEAK, inplace=True),
            nn.Conv2d(width, 2 * width, 3, 1, 1),
            nn.LeakyReLU(LEAK, inplace=True),
            nn.AvgPool2d(pool),
            nn.Conv2d(2 * width, 2 * width, 3, 1, 1),
            nn.LeakyReLU(LEAK, inplace=True),
            nn.Conv2d(2 * width, 4 * width, 3, last, 1),
            nn.LeakyReLU(LEAK, inplace=True),
            *[nn.AvgPool2d(2) for _ in range(halvings - 3)],
            nn.Flatten(),
        )
        with torch.no_grad():
            features = self.net(torch.zeros(1, *shape)).shape[1]
        self.last = nn.Linear(features, outputs)
        for layer in self.net:
            if isinstance(layer, nn.Conv2d):
                draw_conv(layer, generator)
        draw_linear(self.last, generator)
        # a fifth off the training step, measured
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:  # (n, channels, side, side) -> (n, outputs)
        """The latent of each image."""
        latent: Tensor = self.last(self.net(x.contiguous(memory_format=torch.channels_last)))
        return latent


def draw_conv(layer: nn.Conv2d, generator: torch.Generator | None) -> None:
    """PyTorch's own uniform initialisation, from a named stream."""
    bound = 1 / math.sqrt(layer.in_channels * math.prod(layer.kernel_size))
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        if layer.bias is not None:
            layer.bias.uniform_(-bound, bound, generator=generator)
