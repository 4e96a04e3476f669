"""The paper's encoder for images: eight convolutions, residual, no normalisation."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gedi.errors import UserError
from gedi.nn.mlp import LEAK


class ResNet8(nn.Module):
    """``enc(x)``: the paper's table ``backbone``; the latent has F dimensions.

    Block 1 goes from the image to F channels with a shortcut of its own, blocks 2 to 4 have identity shortcuts,
    blocks 1 and 2 halve the side; a last LeakyReLU and the mean over all places. Xavier-uniform weights of gain
    sqrt(2) (1 on the image itself), zero biases.

    Args:
        channels: of the images.
        width: ``F``, 128 or 256 in the paper.
        stem: by how many pixels the first convolution moves (its kernel is two wider); 1 is the paper's form, 2
            works at half the side throughout and costs a quarter.
        generator: the stream the weights are drawn from.

    Source: Duvenaud et al. 2021 (the architecture), the paper's appendix.

    Example:
        >>> sum(p.numel() for p in ResNet8(3, 128).parameters())
        1037184
    """

    def __init__(self, channels: int, width: int, stem: int = 1, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        if stem < 1:
            raise UserError(f"stem is a number of pixels: it must be at least 1 (the paper's form), got {stem}")
        self.stem = stem
        self.first = nn.Conv2d(channels, width, stem + 2, stem, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.shortcut = nn.Conv2d(channels, width, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LeakyReLU(LEAK),
                nn.Conv2d(width, width, 3, padding=1),
                nn.LeakyReLU(LEAK, inplace=True),
                nn.Conv2d(width, width, 3, padding=1),
            )
            for _ in range(3)
        )
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                gain = 1.0 if layer is self.first or layer is self.shortcut else math.sqrt(2)
                nn.init.xavier_uniform_(layer.weight, gain, generator=generator)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        # a seventh off the training step and a fifth off a score, measured at F = 128
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:  # (n, channels, height, width) -> (n, F)
        """The latent of each image."""
        if min(x.shape[2:]) < 4 * self.stem:
            raise UserError(
                f"images must be at least {4 * self.stem} pixels high and wide for stem={self.stem}, "
                f"got {x.shape[2]}x{x.shape[3]}"
            )
        x = x.contiguous(memory_format=torch.channels_last)
        # in place where nobody needs what was there: a twelfth off a score at F = 32
        here = F.avg_pool2d(self.second(F.leaky_relu(self.first(x), LEAK, inplace=True)), 2)  # (n, F, height / 2 stem)
        here = self.shortcut(F.avg_pool2d(x, 2 * self.stem)).add_(here)
        for i, block in enumerate(self.blocks):
            here = block(here).add_(here)
            if i == 0:
                here = F.avg_pool2d(here, 2)
        return F.leaky_relu(here, LEAK, inplace=True).mean(dim=(2, 3))
