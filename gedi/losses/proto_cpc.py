"""ProtoCPC: a view's symbols are told apart from those of the batch, with prototypes in place of negatives."""

import torch
from torch import Tensor

from gedi.precision import full_precision


@full_precision
def proto_cpc(logits: Tensor, other: Tensor, sharpening: float = 2.0) -> Tensor:
    r"""Contrastive predictive coding over prototypes, symmetric over two views.

    .. math:: \frac1n \sum_i \left[ \log \sum_k \pi_k e^{s_{ik}} - \sum_k q_{ik} s_{ik} \right],
              \qquad \pi = \frac1n \sum_i q_i

    with ``q`` the sharpened symbols of the other view, taken as given. It bounds InfoNCE of the critic
    :math:`q_j^T s_i` from above (the exponential is convex, and the sum over the batch comes down to its shares
    ``pi``), and needs no pairs of points. All points in one cluster have it at 0; c clusters of equal shares come down
    to :math:`-\log c`.

    Args:
        logits: ``s`` of one view, (n, c).
        other: of the other view, (n, c), row for row.
        sharpening: factor of the logits that ``q`` is made of.

    Source: Lee, "Prototypical contrastive predictive coding", 2022, without its teacher's running average.

    Example:
        >>> sure = torch.tensor([[30.0, 0.0], [0.0, 30.0]])
        >>> proto_cpc(sure, sure).exp()
        tensor(0.5000)
    """
    with torch.no_grad():
        q = (sharpening * torch.stack([other, logits])).softmax(dim=2)  # (2, n, c)
        log_shares = q.mean(dim=1, keepdim=True).log()  # of a share that is none: -inf, which counts for nothing
    s = torch.stack([logits, other])
    return (torch.logsumexp(s + log_shares, dim=2) - (q * s).sum(dim=2)).mean()
