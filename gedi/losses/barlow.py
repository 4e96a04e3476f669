"""Barlow Twins: each dimension agrees between views, and no two say the same."""

import torch
from torch import Tensor

from gedi.precision import full_precision

_EPSILON = 1e-5  # under the root, as in batch norm: a constant dimension correlates with nothing


@full_precision
def barlow_twins(embedding: Tensor, other: Tensor, off_diagonal: float = 5e-3) -> Tensor:
    r"""Makes the cross-correlation of two views the identity.

    .. math:: \sum_i (1 - C_{ii})^2 + \lambda \sum_{i \neq j} C_{ij}^2, \qquad C = \tfrac1n \sum_b z_b z_b'^T

    with ``z`` and ``z'`` the embeddings standardised over the batch, each dimension on its own.

    Args:
        embedding: of one view, (n, d).
        other: of the other view, (n, d), row for row.
        off_diagonal: ``lambda``.

    Source: Zbontar et al., "Barlow Twins: self-supervised learning via redundancy reduction", 2021.

    Example:
        >>> w = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
        >>> bool(barlow_twins(w, w) < 1e-6), round(float(barlow_twins(w, -w)), 2)     # C = I, C = -I
        (True, 8.0)
    """
    correlation = _standardised(embedding).t() @ _standardised(other) / len(embedding)  # (d, d)
    all_entries, same = correlation.flatten(), correlation.diagonal()
    short = 1 - same
    return short.dot(short) + off_diagonal * (all_entries.dot(all_entries) - same.dot(same))


def _standardised(embedding: Tensor) -> Tensor:
    """By batch norm's own kernel, which takes a batch of one too."""
    return torch.batch_norm(embedding, None, None, None, None, True, 0.0, _EPSILON, False)
