"""The contrastive term: each sample's two views find one another among all others."""

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.errors import unknown
from gedi.precision import full_precision

Similarity = Literal["cosine", "distance"]


@full_precision
def contrastive(
    embedding: Tensor, other: Tensor, temperature: float = 0.1, similarity: Similarity = "cosine"
) -> Tensor:
    r"""InfoNCE, symmetric over two views.

    .. math:: -\frac1{2n} \sum_i \left[ \log \frac{e^{s(z_i, z'_i)/\tau}}{\sum_k e^{s(z_i, z'_k)/\tau}}
              + \log \frac{e^{s(z_i, z'_i)/\tau}}{\sum_k e^{s(z_k, z'_i)/\tau}} \right]

    Args:
        embedding: ``z``, of one view, (n, d).
        other: ``z'``, of the other view, (n, d), row for row.
        temperature: ``tau``.
        similarity: ``s``: the ``cosine``, or ``distance``, :math:`-\lVert z - z' \rVert^2`, with which the sum over k
            is a density of x' by its neighbours (EBCLR).

    Source: van den Oord et al. 2018; the paper, section on contrastive learning; Kim & Ye 2022 (EBCLR).

    Example:
        >>> z = torch.eye(3)
        >>> contrastive(torch.ones(3, 3), z).exp()            # nothing tells the three apart
        tensor(3.)
        >>> bool(contrastive(z, z) < 1e-3)
        True
    """
    if similarity not in get_args(Similarity):
        raise unknown("similarity", similarity, get_args(Similarity))
    if similarity == "cosine":
        s = F.normalize(embedding, dim=1) @ F.normalize(other, dim=1).t()  # (n, n)
    else:  # written out: cdist has no second derivative, and its root has none at 0
        s = 2 * embedding @ other.t() - embedding.square().sum(dim=1, keepdim=True) - other.square().sum(dim=1)
    pairs = torch.arange(len(s), device=s.device)
    return (F.cross_entropy(s / temperature, pairs) + F.cross_entropy(s.t() / temperature, pairs)) / 2
