"""The cluster term: each view predicts the balanced assignment of the other."""

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.precision import full_precision


@full_precision
def log_sinkhorn(scores: Tensor, epsilon: float = 0.05, iterations: int = 3, log_prior: Tensor | None = None) -> Tensor:
    r"""Balanced soft assignments by Sinkhorn-Knopp, in log space so that no temperature overflows.

    .. math:: Q = \arg\max_Q \langle Q, s \rangle + \epsilon H(Q), \quad Q 1 = 1,\; Q^T 1 = n \pi

    Args:
        scores: ``s``, (n, c), or several such tables stacked, (..., n, c).
        epsilon: the entropy's weight; small is hard.
        iterations: sweeps over columns and rows; the rows are exact, the columns close.
        log_prior: ``log pi``, (c,), the share of each cluster; uniform if None.

    Returns:
        ``log Q``, shaped as the scores, every row a distribution.

    Source: Cuturi 2013; Caron et al. 2020 (SwAV).

    Example:
        >>> log_sinkhorn(torch.zeros(4, 2)).exp()[0]
        tensor([0.5000, 0.5000])
    """
    if log_prior is not None and not bool(torch.isfinite(log_prior).all()):
        raise ValueError("every cluster needs a share > 0: log_prior must be finite; leave empty clusters out")
    if iterations < 1:
        raise ValueError(f"Sinkhorn needs at least one iteration, got {iterations}")
    log_q = scores / epsilon
    for _ in range(iterations):
        log_q = log_q.log_softmax(dim=-2)  # clusters get their share
        log_q = log_q if log_prior is None else log_q + log_prior
        log_q = log_q.log_softmax(dim=-1)  # each sample sums to one
    return log_q


@full_precision
def swapped_prediction(
    logits: Tensor,
    other: Tensor,
    *,
    temperature: float = 0.1,
    epsilon: float = 0.05,
    iterations: int = 3,
    log_prior: Tensor | None = None,
) -> Tensor:
    r"""The cluster term, symmetric over two views.

    .. math:: \tfrac12 \left[ CE(q(\cdot|x'), p(\cdot|x)) + CE(q(\cdot|x), p(\cdot|x')) \right]

    with ``p = softmax(s)`` of one view and ``q`` the Sinkhorn assignment of the other, taken as given
    (no gradient flows through it).

    Args:
        logits: ``s = cos / tau`` of one view, (n, c).
        other: the same of the other view, (n, c), row for row.
        temperature: ``tau``; Sinkhorn sees the cosines ``tau * s``.
        epsilon: Sinkhorn's entropy weight, on the scale of cosines.
        iterations: Sinkhorn's sweeps.
        log_prior: log share of each cluster, (c,).

    Source: Caron et al. 2020; the paper, eq. (discriminative_obj2).

    Example:
        >>> agree = torch.tensor([[9.0, -9.0], [-9.0, 9.0]])
        >>> bool(swapped_prediction(agree, agree) < 1e-6)
        True
    """
    with torch.no_grad():
        scores = torch.stack([logits, other]) * temperature
        q, q_other = log_sinkhorn(scores, epsilon, iterations, log_prior).exp()
    return (F.cross_entropy(logits, q_other) + F.cross_entropy(other, q)) / 2
