"""The plain forms: what a reader of the papers would write first. They exist to be measured against, and to check ours.

Scores by autograd through a graph that holds the parameters too, Sinkhorn in probability space, losses by their
formulas. Tests hold every one of them equal to ours.
"""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gedi.nn import ResNet8
from gedi.nn.mlp import LEAK
from gedi.types import EnergyFn


def score(energy: EnergyFn, x: Tensor) -> Tensor:
    """``-grad E(x)`` by autograd."""
    x = x.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(energy(x).sum(), [x], retain_graph=True)
    return -gradient


def jem_sgld(energy: EnergyFn, x: Tensor, *, steps: int, step_size: float, noise: float) -> Tensor:
    """The sampling loop as JEM's public code has it: one leaf tensor, its data changed in place, the graph retained.

    Source: Grathwohl et al., "Your classifier is secretly an energy based model", 2020.
    """
    x = x.clone().requires_grad_(True)
    for _ in range(steps):
        (f_prime,) = torch.autograd.grad((-energy(x)).sum(), [x], retain_graph=True)
        x.data += step_size * f_prime + noise * torch.randn_like(x)
    return x.detach()


def sinkhorn(scores: Tensor, epsilon: float = 0.05, iterations: int = 3) -> Tensor:
    """Balanced assignments (n, c), in probability space, the largest score taken off to keep ``exp`` finite."""
    q = torch.exp((scores - scores.max()) / epsilon)
    for _ in range(iterations):
        q = q / q.sum(dim=0, keepdim=True)
        q = q / q.sum(dim=1, keepdim=True)
    return q


def swapped_prediction(
    logits: Tensor, other: Tensor, *, temperature: float = 0.1, epsilon: float = 0.05, iterations: int = 3
) -> Tensor:
    """Each view predicts the assignment of the other, one view at a time."""
    with torch.no_grad():
        q = sinkhorn(logits * temperature, epsilon, iterations)
        q_other = sinkhorn(other * temperature, epsilon, iterations)
    first = -(q_other * F.log_softmax(logits, dim=1)).sum(dim=1).mean()
    second = -(q * F.log_softmax(other, dim=1)).sum(dim=1).mean()
    return (first + second) / 2


def negative_free(embedding: Tensor, latent: Tensor, latent_view: Tensor, ridge: float = 1e-4) -> Tensor:
    """The trace and log determinant of the d x d matrix, whatever n is."""
    w = embedding - embedding.mean(dim=0)
    s = w.t() @ w + ridge * torch.eye(w.shape[1], dtype=w.dtype)
    return (s.trace() - torch.logdet(s)) / 2 + (latent - latent_view).square().sum() / 2


def denoising(score: Tensor, noise: Tensor, sigma: float) -> Tensor:
    """The squared distance of the score from ``-noise / sigma``, scaled by ``sigma^2``."""
    return sigma**2 * ((score + noise / sigma) ** 2).flatten(1).sum(dim=1).mean()


def generative(energy_data: Tensor, energy_samples: Tensor) -> Tensor:
    """The energy gap."""
    return torch.mean(energy_data) - torch.mean(energy_samples)


def energy_penalty(energy_data: Tensor, energy_samples: Tensor) -> Tensor:
    """Squared energies."""
    return (energy_data**2).mean() + (energy_samples**2).mean()


def agreement(logits: Tensor, other: Tensor) -> Tensor:
    """The two cross-entropies, by probabilities and their logarithms."""
    p, q = F.softmax(logits, dim=1), F.softmax(other, dim=1)
    first = -(q * F.log_softmax(logits, dim=1)).sum(dim=1).mean()
    second = -(p * F.log_softmax(other, dim=1)).sum(dim=1).mean()
    return (first + second) / 2


def balance(logits: Tensor) -> Tensor:
    """Cross-entropy from the uniform shares to those of the batch."""
    return -F.softmax(logits, dim=1).mean(dim=0).log().mean()


def barlow_twins(embedding: Tensor, other: Tensor, off_diagonal: float = 5e-3) -> Tensor:
    """Batch norm without scale and shift, the cross-correlation, and a mask of its diagonal.

    Source: Zbontar et al., "Barlow Twins: self-supervised learning via redundancy reduction", 2021.
    """
    z, z_other = (F.batch_norm(w, None, None, training=True) for w in (embedding, other))
    correlation = z.t() @ z_other / len(z)
    identity = torch.eye(len(correlation), dtype=correlation.dtype)
    difference = (correlation - identity) ** 2
    return (difference * identity).sum() + off_diagonal * (difference * (1 - identity)).sum()


def contrastive(embedding: Tensor, other: Tensor, temperature: float = 0.1) -> Tensor:
    """InfoNCE by exponentials of cosines: a pair's own over the sum of its row, and of its column."""
    e = torch.exp(F.cosine_similarity(embedding[:, None], other[None], dim=2) / temperature)  # (n, n)
    own = torch.diagonal(e)
    return -(torch.log(own / e.sum(dim=1)).mean() + torch.log(own / e.sum(dim=0)).mean()) / 2


def plain_encoder(encoder: nn.Module) -> nn.Module:
    """An image encoder of ours, copied, as one would write it down: torch's default layout, nothing in place."""
    copied = copy.deepcopy(encoder).to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    for layer in copied.modules():
        if isinstance(layer, nn.LeakyReLU):
            layer.inplace = False
    return _PlainResNet8(copied) if isinstance(copied, ResNet8) else nn.Sequential(*copied.children())


class _PlainResNet8(nn.Module):
    """The passes of :class:`gedi.nn.ResNet8`."""

    def __init__(self, encoder: ResNet8) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: Tensor) -> Tensor:
        """The latent of each image."""
        e = self.encoder
        here = F.avg_pool2d(e.second(F.leaky_relu(e.first(x), LEAK)), 2)
        here = here + e.shortcut(F.avg_pool2d(x, 2 * e.stem))
        for i, block in enumerate(e.blocks):
            here = here + block(here)
            if i == 0:
                here = F.avg_pool2d(here, 2)
        return F.leaky_relu(here, LEAK).mean(dim=(2, 3))
