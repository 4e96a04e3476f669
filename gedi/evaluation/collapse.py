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
