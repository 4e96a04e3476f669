"""The family's losses as a reader of their papers would write them first: see :mod:`gedi.bench.textbook`."""

import torch
import torch.nn.functional as F
from torch import Tensor


def nt_xent(embedding: Tensor, other: Tensor, temperature: float = 0.2) -> Tensor:
    """By exponentials, the diagonal taken off."""
    z = torch.cat([F.normalize(embedding, dim=1), F.normalize(other, dim=1)])
    e = torch.exp(z @ z.t() / temperature)
    negatives = e.sum(dim=1) - e.diagonal()
    pairs = torch.cat([(embedding * other).sum(dim=1) / embedding.norm(dim=1) / other.norm(dim=1)] * 2)
    return -torch.log(torch.exp(pairs / temperature) / negatives).mean()


def cpc(prediction: Tensor, target: Tensor, temperature: float = 1.0) -> Tensor:
    """By exponentials."""
    e = torch.exp(prediction @ target.t() / temperature)
    return -torch.log(e.diagonal() / e.sum(dim=1)).mean()


def proto_cpc(logits: Tensor, other: Tensor, sharpening: float = 2.0) -> Tensor:
    """By probabilities, one view at a time."""
    total = torch.zeros((), dtype=logits.dtype)
    for given, seen in ((logits, other), (other, logits)):
        q = F.softmax(sharpening * seen.detach(), dim=1)
        shares = q.mean(dim=0)
        total = total + (torch.log((shares * torch.exp(given)).sum(dim=1)) - (q * given).sum(dim=1)).mean()
    return total / 2


def k_shot(query: Tensor, *shots: Tensor, temperature: float = 0.1, ridge: float = 1e-2) -> Tensor:
    """The projection by an inverse."""
    z, v = F.normalize(query, dim=1), F.normalize(torch.stack(shots, dim=1), dim=2)
    inverse = torch.linalg.inv(v @ v.transpose(1, 2) + ridge * torch.eye(len(shots), dtype=v.dtype))  # (n, K, K)
    within = v @ z.t()  # (n, K, n)
    s = torch.sqrt((within * (inverse @ within)).sum(dim=1).t() + 1e-12)
    return F.cross_entropy(s / temperature, torch.arange(len(s)))


def deep_cluster(logits: Tensor, assigned: Tensor) -> Tensor:
    """One pseudo-label after the other."""
    log_p = F.log_softmax(logits, dim=1)
    present = torch.unique(assigned)
    return -torch.stack([log_p[assigned == k, k].mean() for k in present]).mean()


def vicreg(embedding: Tensor, other: Tensor) -> Tensor:
    """As its public code has it: standard deviations, and the covariance without its diagonal."""
    n, d = embedding.shape
    loss = 25 * F.mse_loss(embedding, other)
    x, y = embedding - embedding.mean(dim=0), other - other.mean(dim=0)
    spread = sum(F.relu(1 - torch.sqrt(z.var(dim=0) + 1e-4)).mean() / 2 for z in (x, y))
    total = loss + 25 * spread
    for z in (x, y):
        covariance = z.t() @ z / (n - 1)
        total = total + (covariance * (1 - torch.eye(d, dtype=z.dtype))).pow(2).sum() / d
    return total


def w_mse(embedding: Tensor, other: Tensor, ridge: float = 1e-3) -> Tensor:
    """Whitening by the inverse of the factor, in the precision given."""
    white = []
    for z in (embedding, other):
        x = z - z.mean(dim=0)
        covariance = x.t() @ x / (len(x) - 1)
        level = ridge * covariance.trace() / len(covariance) + 1e-12
        factor = torch.linalg.cholesky(covariance + level * torch.eye(len(covariance), dtype=z.dtype))
        white.append(F.normalize(x @ torch.linalg.inv(factor).t(), dim=1))
    return (2 - 2 * (white[0] * white[1]).sum(dim=1)).mean()


def mec(embedding: Tensor, other: Tensor, rate: float = 0.9, order: int = 4) -> Tensor:
    """As its public code has it: powers of the d x d matrix, and the trace of their sum."""
    n, d = embedding.shape
    c = rate / n * F.normalize(embedding, dim=1).t() @ F.normalize(other, dim=1)
    power, total = c, c
    for k in range(2, order + 1):
        power = power @ c
        total = total + (-1) ** (k + 1) / k * power
    return -(n + d) / (2 * n) * total.trace()


def cor_info_max(embedding: Tensor, other: Tensor, ridge: float = 1e-3) -> Tensor:
    """Log determinants of both covariances, in the precision given."""
    d = embedding.shape[1]
    first, second = F.normalize(embedding, dim=1), F.normalize(other, dim=1)
    total = (first - second).square().sum(dim=1).mean()
    for z in (first, second):
        x = z - z.mean(dim=0)
        total = total - torch.logdet(x.t() @ x / len(x) + ridge * torch.eye(d, dtype=z.dtype)) / (2 * d)
    return total
