"""Denoising score matching: the local half of learning a density."""

from torch import Tensor

from gedi.precision import full_precision


@full_precision
def denoising(score: Tensor, noise: Tensor, sigma: float) -> Tensor:
    r"""How far the score at a noised point is from pointing back to the data.

    .. math:: \frac1n \sum_i \lVert \sigma \nabla \log p(x_i + \sigma \epsilon_i) + \epsilon_i \rVert^2

    Minimal where the model's score is that of the data blurred by a Gaussian of width sigma. It needs
    no samples, so its gradient has far less noise than the generative term's and shapes the energy near
    the data; it says nothing about mass far away or about how much mass each mode has, which is the
    generative term's part.

    Args:
        score: ``grad log p`` at ``x + sigma * noise``, (n, d), differentiable in the parameters.
        noise: ``epsilon``, standard normal, (n, d).
        sigma: the width of the blur.

    Source: Vincent, "A connection between score matching and denoising autoencoders", 2011.

    Example:
        >>> import torch
        >>> epsilon = torch.ones(4, 2)
        >>> denoising(-epsilon / 0.5, epsilon, 0.5)      # the exact score of a point mass
        tensor(0.)
    """
    return (sigma * score + noise).flatten(1).square().sum(1).mean()
