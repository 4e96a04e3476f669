"""Collapse: representations that use fewer dimensions or clusters than they have."""

import torch
from torch import Tensor


def effective_rank(embedding: Tensor) -> float:
    """``exp`` of the entropy of the normalised singular values of the centred embeddings, 1 to d.

    Source: Roy & Vetterli, "The effective rank", 2007.

    Example:
        >>> round(effective_rank(torch.cat([torch.eye(3), -torch.eye(3)])), 3)
        3.0
    """
    values = torch.linalg.svdvals(embedding - embedding.mean(dim=0))
    share = values / values.sum().clamp_min(torch.finfo(values.dtype).tiny)
    return float(torch.special.entr(share).sum().exp())


def cluster_entropy(logits: Tensor) -> float:
    """Entropy of the mean assignment over ``log c``: 1 when clusters share the data equally, 0 collapsed.

    Example:
        >>> round(cluster_entropy(torch.tensor([[9.0, -9.0], [-9.0, 9.0]])), 3)
        1.0
    """
    mean = logits.softmax(dim=1).mean(dim=0)
    return float(torch.special.entr(mean).sum() / torch.log(torch.tensor(float(len(mean)))).clamp_min(1e-12))


def cluster_usage(predicted: Tensor, clusters: int) -> dict[str, float]:
    """Clusters that hold a point, their effective number ``exp H(share)``, and the share of the largest.

    Args:
        predicted: clusters 0 to ``clusters - 1``, (n,).
        clusters: how many there are.

    Example:
        >>> cluster_usage(torch.tensor([0, 0, 2, 2]), 3)
        {'clusters_used': 2, 'effective_clusters': 2.0, 'largest_share': 0.5}
    """
    share = torch.bincount(predicted, minlength=clusters).double() / len(predicted)
    return {
        "clusters_used": int((share > 0).sum()),
        "effective_clusters": float(torch.special.entr(share).sum().exp()),
        "largest_share": float(share.max()),
    }


def energy_gap(energy_data: Tensor, energy_samples: Tensor) -> float:
    """``mean E(samples) - mean E(data)``: 0 in balance; far from it, samples or energy ran away.

    Example:
        >>> energy_gap(torch.tensor([1.0, 2.0]), torch.tensor([2.0, 3.0]))
        1.0
    """
    return float(energy_samples.double().mean() - energy_data.double().mean())


def collapse_metrics(embedding: Tensor, logits: Tensor) -> dict[str, float]:
    """Every sign of collapse: of the embeddings (n, d) and of the assignments ``softmax(logits)``, (n, c).

    Returns:
        :func:`effective_rank`, :func:`cluster_entropy`, :func:`cluster_usage` of the likeliest clusters, and
        ``mean_confidence``, the mean of ``max_y p(y|x)`` (1/c when the head says nothing).

    Example:
        >>> collapse_metrics(torch.eye(2), 50 * torch.eye(2))["clusters_used"]
        2
    """
    return {
        "effective_rank": effective_rank(embedding),
        "cluster_entropy": cluster_entropy(logits),
        **cluster_usage(logits.argmax(dim=1), logits.shape[1]),
        "mean_confidence": float(logits.softmax(dim=1).amax(dim=1).mean()),
    }
