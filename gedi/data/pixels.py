"""Images kept as bytes: a batch becomes points only when it is asked for."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.data.shards import Shards
from gedi.types import Points


@dataclass(frozen=True)
class Pixels:
    """How stored images become points: bytes to [0, 1], a border of zeros, more channels, shifted and scaled.

    Attributes:
        pad: pixels of border added on every side.
        channels: of the points; 3 repeats grey images, None keeps what there is.
        mean, std: ``(x - mean) / std``, x in [0, 1].

    Example:
        >>> Pixels(pad=2, channels=3, mean=0.5, std=0.5)(torch.zeros(4, 1, 28, 28, dtype=torch.uint8)).shape
        torch.Size([4, 3, 32, 32])
    """

    pad: int = 0
    channels: int | None = None
    mean: float = 0.0
    std: float = 1.0

    def __call__(self, stored: Tensor) -> Tensor:
        """Points (n, channels, height, width), float32."""
        x = stored.float()
        if stored.dtype == torch.uint8:
            x = x.mul_(1 / 255)
        if self.pad:
            x = F.pad(x, [self.pad] * 4)
        if self.channels is not None and x.shape[1] == 1:
            x = x.expand(-1, self.channels, -1, -1)
        return x if (self.mean, self.std) == (0.0, 1.0) else (x - self.mean) / self.std

    def back(self, points: Tensor) -> Tensor:
        """Images in [0, 1] of points, without the border."""
        x = points * self.std + self.mean
        return x[..., self.pad : x.shape[-2] - self.pad, self.pad : x.shape[-1] - self.pad].clamp(0, 1)

    @property
    def range(self) -> tuple[float, float]:
        """What black and white become."""
        return (0 - self.mean) / self.std, (1 - self.mean) / self.std


class StoredImages:
    """Images on a device as they are stored, a quarter of the memory of points; indexing gives points.

    Args:
        stored: (n, channels, height, width), uint8, or float in [0, 1]; may be memory-mapped, or in shards.
        pixels: what makes points of them.

    Example:
        >>> images = StoredImages(torch.full((5, 1, 8, 8), 255, dtype=torch.uint8), Pixels(mean=0.5, std=0.5))
        >>> images.shape, images[torch.tensor([0, 3])].shape, images[2:].max().item()
        (torch.Size([5, 1, 8, 8]), torch.Size([2, 1, 8, 8]), 1.0)
    """

    def __init__(self, stored: Tensor | Shards, pixels: Pixels) -> None:
        self.stored = stored
        self.pixels = pixels
        self.shape = torch.Size([len(stored), *pixels(stored[:1]).shape[1:]])

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        return self.pixels(self.stored[index])

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "StoredImages":
        """The same images on a device."""
        return StoredImages(self.stored.to(device, non_blocking=non_blocking), self.pixels)


def chunks(x: Points, size: int) -> Iterator[Tensor]:
    """The points of a set, so many at a time; no more are in memory.

    Example:
        >>> [len(part) for part in chunks(torch.zeros(5, 2), 2)]
        [2, 2, 1]
    """
    return (x[start : start + size] for start in range(0, len(x), size))
