"""Small deformations of images that leave a symbol what it is."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Warp:
    """Rotation, shear, scale, shift and an elastic field, drawn for each image, in one resampling.

    Each image is interpolated once, whatever is composed: several resamplings in a row would blur it and cost
    as many passes.

    Attributes:
        rotation: the most degrees, either way.
        shear: up to this.
        scale: up to a factor ``exp(+-scale)``, each axis on its own.
        shift: the most pixels, either way.
        elastic: standard deviation, in pixels, of a smooth random field.
        grid: control points of that field along each side.
        background: what moves in from outside.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> x = torch.rand(2, 1, 8, 8)
        >>> torch.allclose(Warp()(x, g), x, atol=1e-5), Warp(rotation=15)(x, g).shape
        (True, torch.Size([2, 1, 8, 8]))
    """

    rotation: float = 0.0
    shear: float = 0.0
    scale: float = 0.0
    shift: float = 0.0
    elastic: float = 0.0
    grid: int = 5
    background: float = 0.0

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        return not any((self.rotation, self.shear, self.scale, self.shift, self.elastic))

    @torch.no_grad()
    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Deformed images, (n, channels, height, width); what moves in from outside is background."""
        n, _, height, width = x.shape

        def uniform(extent: float, *shape: int) -> Tensor:
            return (torch.rand(n, *shape, generator=generator, device=x.device, dtype=x.dtype) * 2 - 1) * extent

        angle, shear = uniform(math.radians(self.rotation)), uniform(self.shear)
        stretch = uniform(self.scale, 2).exp()  # (n, 2)
        cos, sin = angle.cos(), angle.sin()
        turn = torch.stack([cos, -sin + shear * cos, sin, cos + shear * sin], dim=1).view(n, 2, 2)
        pixels = x.new_tensor([2 / width, 2 / height])  # one pixel in units of affine_grid
        matrix = torch.cat([turn * stretch[:, None, :], (uniform(self.shift, 2) * pixels)[:, :, None]], dim=2)
        places = F.affine_grid(matrix, list(x.shape), align_corners=False)
        if self.elastic > 0:
            knots = torch.randn(n, 2, self.grid, self.grid, generator=generator, device=x.device, dtype=x.dtype)
            field = F.interpolate(knots * self.elastic, size=(height, width), mode="bicubic", align_corners=True)
            places = places + field.permute(0, 2, 3, 1) * pixels
        return F.grid_sample(x - self.background, places, align_corners=False) + self.background
