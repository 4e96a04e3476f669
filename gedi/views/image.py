"""The paper's augmentation of images; colours by kornia."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.errors import UserError

_ASPECT = math.log(4 / 3)  # a resized crop is at most so far from square, either way
_JITTER = (0.4, 0.4, 0.4, 0.1)  # brightness, contrast, saturation, hue
_STRONGEST = 5.0  # a hue turned by half the circle


@dataclass(frozen=True)
class CropAndColour:
    """Reflect-pad and random crop, flip, resized crop, colour jitter and grayscale, drawn for each image.

    Attributes:
        crop: pixels of padding before the crop back to the old size.
        jitter: probability of a colour jitter (0.4, 0.4, 0.4, 0.1); needs three channels.
        grayscale: probability of losing the colours; needs three channels.
        mean, std: what the images, once in [0, 1], were shifted and scaled by; colours are jittered in [0, 1].
        flip: whether half of the images are mirrored left to right.
        resized: smallest share of the area that is cut out (sides 3:4 to 4:3) and enlarged to the old size; 0 is off.
        strength: a factor on the extent of the colour jitter.
        light: most that brightness changes, as a log factor; 0 is off. Any number of channels; what gets brighter than
            white is white.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> CropAndColour(crop=4, jitter=0.1, grayscale=0.1, flip=True)(torch.rand(2, 3, 32, 32), g).shape
        torch.Size([2, 3, 32, 32])
    """

    crop: int = 0
    jitter: float = 0.0
    grayscale: float = 0.0
    mean: float = 0.0
    std: float = 1.0
    flip: bool = False
    resized: float = 0.0
    strength: float = 1.0
    light: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.resized <= 1:
            raise UserError(f"resized is a share of the area: it must be from 0 (off) to 1, got {self.resized}")
        if not 0 <= self.strength <= _STRONGEST:
            raise UserError(
                f"strength must be from 0 to {_STRONGEST:g} (hues turned by half the circle), got {self.strength}"
            )

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        return not any((self.crop, self.jitter, self.grayscale, self.flip, self.resized, self.light))

    @torch.no_grad()
    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Augmented images, (n, channels, height, width); colours only for three channels."""
        if self.crop or self.flip or self.resized:
            x = self._move(x, generator)
        if x.shape[1] == 3 and self.jitter:
            x = self._jitter(x, generator)
        if x.shape[1] == 3 and self.grayscale:
            x = self._grayscale(x, generator)
        return self._lit(x, generator) if self.light else x

    def _move(self, x: Tensor, generator: torch.Generator) -> Tensor:
        # Each pixel is read once, wherever crop, resized crop and flip together put it. kornia takes one pass each:
        # 3.3 + 6.1 + 0.5 ms for 128 images of 3x32x32 on one thread, against 0.8 ms here (2.3 ms when resized).
        n, channels, height, width = x.shape
        if self.crop >= min(height, width):
            raise UserError(f"crop must be smaller than the images, {height}x{width}, got {self.crop}; use 4")
        draws = torch.rand(n, 7, generator=generator, device=generator.device).to(x.device)
        shift = (draws[:, :2] * (2 * self.crop + 1)).floor() - self.crop  # (n, 2)
        part = self._part(draws[:, 2], draws[:, 3]) if self.resized else torch.ones_like(shift)
        rows, columns = (
            # where output pixel i reads, in pixels of the image: (n, size)
            (torch.arange(size, device=x.device) + 0.5) * part[:, k, None]
            - 0.5
            + (draws[:, 4 + k] * (1 - part[:, k]) * size + shift[:, k])[:, None]
            for k, size in enumerate((height, width))
        )
        if self.flip:
            columns = torch.where(draws[:, 6:] < 0.5, columns.flip(1), columns)
        if self.resized:
            across, down = 2 * columns / (width - 1) - 1, 2 * rows / (height - 1) - 1
            places = torch.stack(
                [across[:, None, :].expand(n, height, width), down[:, :, None].expand(n, height, width)], 3
            )
            return F.grid_sample(x, places.to(x.dtype), padding_mode="reflection", align_corners=True)
        rows, columns = (_reflect(at.long(), size) for at, size in ((rows, height), (columns, width)))
        pixels = (rows[:, :, None] * width + columns[:, None, :]).view(n, 1, -1).expand(n, channels, -1)
        return x.flatten(2).gather(2, pixels).view_as(x)

    def _part(self, area: Tensor, aspect: Tensor) -> Tensor:
        """The sides of what is cut out as shares of the image's, (n, 2), from uniform draws."""
        log_area = (self.resized + (1 - self.resized) * area).log()
        bound = (-log_area).clamp_max(_ASPECT)  # a larger ratio would not fit into the image
        log_ratio = (2 * aspect - 1) * bound
        return torch.stack([(log_area - log_ratio) / 2, (log_area + log_ratio) / 2], 1).exp()

    def _jitter(self, x: Tensor, generator: torch.Generator) -> Tensor:
        # kornia would jitter every image and throw away those not chosen: 12 ms against 2 ms at a chance of 0.1
        chosen = _chosen(self.jitter, x, generator)
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        if not len(chosen):
            return x
        with torch.random.fork_rng(devices=[]):  # kornia draws from the global stream, of the CPU whatever x is on
            torch.default_generator.manual_seed(seed)  # torch.manual_seed takes 0.7 ms more, for GPUs
            changed: Tensor = self._colours(x[chosen] * self.std + self.mean)
        return x.index_copy(0, chosen, (changed - self.mean) / self.std)

    @cached_property
    def _colours(self) -> Any:
        from kornia.augmentation import ColorJitter  # slow to import, and only runs with images need it

        return ColorJitter(*(extent * self.strength for extent in _JITTER), p=1.0)

    def _grayscale(self, x: Tensor, generator: torch.Generator) -> Tensor:
        from kornia.color import rgb_to_grayscale

        chosen = _chosen(self.grayscale, x, generator)
        # a weighted mean of the channels: it needs no way back to [0, 1]
        return x.index_copy(0, chosen, rgb_to_grayscale(x[chosen]).expand(-1, 3, -1, -1))

    def _lit(self, x: Tensor, generator: torch.Generator) -> Tensor:
        # kornia's brightness is added to all pixels alike, which makes a black background gray
        draws = torch.rand(len(x), 1, 1, 1, generator=generator, device=generator.device).to(x)
        factor = (self.light * (2 * draws - 1)).exp()
        return (((x * self.std + self.mean) * factor).clamp(0, 1) - self.mean) / self.std


def _chosen(probability: float, x: Tensor, generator: torch.Generator) -> Tensor:
    drawn = torch.rand(len(x), generator=generator, device=generator.device)
    return (drawn < probability).nonzero()[:, 0].to(x.device)


def _reflect(at: Tensor, size: int) -> Tensor:
    """Places outside 0 .. size - 1 mirrored at the border pixels, as ``F.pad(mode="reflect")`` does."""
    return (size - 1) - ((size - 1) - at.abs()).abs()
