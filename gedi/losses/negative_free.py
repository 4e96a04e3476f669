"""The negative-free term: embeddings spread, latents agree between views."""

import torch
from torch import Tensor


def negative_free(embedding: Tensor, latent: Tensor, latent_view: Tensor, ridge: float = 1e-4) -> Tensor:
    r"""Keeps the embeddings from collapsing and the latents invariant, with no negative pairs.

    .. math:: \tfrac12 (\mathrm{tr}\, S - \log\det S) + \tfrac12 \sum_i \lVert \xi_i - \xi'_i \rVert^2,
              \qquad S = \sum_i (w_i - \bar w)(w_i - \bar w)^T + \beta I

    ``S`` is *not* divided by n, as in the paper. With fewer samples than dimensions the determinant is
    taken of the n x n Gram matrix, which has the same non-zero spectrum.

    Args:
        embedding: ``w``, (n, d).
        latent: ``xi = enc(x)``, (n, h).
        latent_view: ``xi' = enc(x')``, (n, h).
        ridge: ``beta``.

    Source: the paper, section 3 (the KL divergence of two Gaussians, up to a constant).

    Example:
        >>> xi = torch.zeros(4, 3)
        >>> negative_free(torch.zeros(4, 2), xi, xi, ridge=1.0)   # S = I: tr 2, log det 0
        tensor(1.)
    """
    n, d = embedding.shape
    centred = embedding - embedding.mean(dim=0)
    trace = centred.square().sum() + ridge * d
    if n < d:
        gram = centred @ centred.t() + ridge * torch.eye(n, dtype=embedding.dtype, device=embedding.device)
        log_det = _log_det(gram) + (d - n) * torch.log(embedding.new_tensor(ridge))
    else:
        log_det = _log_det(centred.t() @ centred + ridge * torch.eye(d, dtype=embedding.dtype, device=embedding.device))
    return (trace - log_det) / 2 + (latent - latent_view).square().sum() / 2


def _log_det(matrix: Tensor) -> Tensor:
    log_det: Tensor = 2 * torch.linalg.cholesky(matrix).diagonal().log().sum()
    return log_det
