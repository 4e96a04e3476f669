"""The paper's augmentation of images, by kornia."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class CropAndColour:
    """Reflect-pad, random crop, colour jitter and grayscale, drawn for each image.

    Attributes:
        crop: pixels of padding before the crop back to the old size.
        jitter: probability of a colour jitter (0.4, 0.4, 0.4, 0.1); needs three channels.
        grayscale: probability of losing the colours; needs three channels.
        mean, std: what the images, once in [0, 1], were shifted and scaled by; colours are changed in [0, 1].

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> CropAndColour(crop=4, jitter=0.1, grayscale=0.1)(torch.rand(2, 3, 32, 32), g).shape
        torch.Size([2, 3, 32, 32])
    """

    crop: int = 0
    jitter: float = 0.0
    grayscale: float = 0.0
    mean: float = 0.0
    std: float = 1.0
    _made: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        return not any((self.crop, self.jitter, self.grayscale))

    @torch.no_grad()
    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Augmented images, (n, channels, height, width); colours only for three channels."""
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        devices = [x.device] if x.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):  # kornia draws from the global stream
            torch.manual_seed(seed)
            out: Tensor = self._pipeline(x.shape)(x * self.std + self.mean)
        return (out - self.mean) / self.std

    def _pipeline(self, shape: torch.Size) -> Any:
        key = str(tuple(shape[1:]))
        if key not in self._made:
            import kornia.augmentation as K  # slow to import, and only runs with images need it

            steps: list[Any] = []
            if self.crop:
                steps.append(K.RandomCrop(tuple(shape[-2:]), padding=self.crop, padding_mode="reflect"))
            if shape[1] == 3 and self.jitter:
                steps.append(K.ColorJitter(0.4, 0.4, 0.4, 0.1, p=self.jitter))
            if shape[1] == 3 and self.grayscale:
                steps.append(K.RandomGrayscale(p=self.grayscale))
            self._made[key] = torch.nn.Sequential(*steps)
        return self._made[key]
