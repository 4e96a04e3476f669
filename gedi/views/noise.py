"""The plainest view: additive Gaussian noise."""

import torch
from torch import Tensor


def gaussian_noise(x: Tensor, sigma: float, generator: torch.Generator) -> Tensor:
    r"""``T(x'|x) = N(x, sigma^2 I)``, the paper's augmentation for the toy data.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> gaussian_noise(torch.zeros(10000, 2), 0.03, g).std().round(decimals=3)
        tensor(0.0300)
    """
    return x + sigma * torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
