"""Two views agree on a symbol, and the symbols share the data: the cluster terms without targets."""

import math

from torch import Tensor

from gedi.precision import full_precision


@full_precision
def agreement(logits: Tensor, other: Tensor) -> Tensor:
    r"""Symmetric cross-entropy between two views; the gradient flows through both.

    .. math:: \tfrac12 \left[ CE(p(\cdot|x'), p(\cdot|x)) + CE(p(\cdot|x), p(\cdot|x')) \right]

    It is low where both views are sure of the same symbol. One symbol for everything has it at 0, so it needs
    :func:`balance` beside it.

    Args:
        logits: of one view, (n, c).
        other: of the other view, (n, c), row for row.

    Example:
        >>> import torch
        >>> sure = torch.tensor([[30.0, 0.0], [0.0, 30.0]])
        >>> bool(agreement(sure, sure) < 1e-9), bool(agreement(sure, sure.flip(0)) > 20)
        (True, True)
    """
    log_p, log_q = logits.log_softmax(dim=1), other.log_softmax(dim=1)
    return -((log_p.exp() * log_q).sum(dim=1) + (log_q.exp() * log_p).sum(dim=1)).mean() / 2


@full_precision
def balance(logits: Tensor, log_prior: Tensor | None = None) -> Tensor:
    r"""Cross-entropy from the share each symbol should have to the share it has in the batch.

    .. math:: - \sum_d \pi_d \log \frac1n \sum_i p(d | x_i)

    The value is right to the rounding of the largest ``-log p``, in float32 a ten-millionth of it; the gradient to that
    of 1, however large the logits.

    Args:
        logits: (n, c).
        log_prior: ``log pi``, (c,); uniform if None. A rule implies one: :meth:`gedi.logic.Constraint.marginals`.

    Example:
        >>> import torch
        >>> balance(torch.zeros(5, 4)).exp()                 # at its least, the entropy of the prior
        tensor(4.)
    """
    c = logits.shape[1]
    log_p = logits.log_softmax(dim=1)
    # what a symbol's column loses when it is made to sum to one is the log of its sum: one fused pass each way
    log_sums = log_p - log_p.log_softmax(dim=0)  # every row the same
    if log_prior is None:
        return math.log(len(logits)) - log_sums.mean()
    if log_prior.shape != (c,):
        raise ValueError(f"log_prior must hold one share for each of {c} clusters, got {tuple(log_prior.shape)}")
    return -(log_prior.to(logits).exp() * (log_sums.mean(dim=0) - math.log(len(logits)))).sum()
