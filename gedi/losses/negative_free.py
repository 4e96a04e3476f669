"""The negative-free term: embeddings spread, latents agree between views."""

import math
from functools import lru_cache

import torch
from torch import Tensor

from gedi.precision import full_precision


@full_precision
def negative_free(embedding: Tensor, latent: Tensor, latent_view: Tensor, ridge: float = 1e-4) -> Tensor:
    r"""Keeps the embeddings from collapsing and the latents invariant, with no negative pairs.

    .. math:: \tfrac12 (\mathrm{tr}\, S - \log\det S) + \tfrac12 \sum_i \lVert \xi_i - \xi'_i \rVert^2,
              \qquad S = \sum_i (w_i - \bar w)(w_i - \bar w)^T + \beta I

    ``S`` is *not* divided by n, as in the paper. With fewer samples than dimensions the determinant is
    taken of the n x n Gram matrix, which has the same non-zero spectrum. The determinant is computed in float64.

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
    # Where clusters are tight the scatter has n in one direction and little but the ridge in the others. float32 cannot
    # hold both from n = 512 on: rounding alone makes it indefinite.
    exact = embedding.to("cpu" if embedding.device.type == "mps" else None, torch.float64)  # mps has no float64
    centred = exact - exact.mean(dim=0)
    trace = centred.square().sum() + ridge * d
    if n < d:
        log_det = _log_det(centred @ centred.t(), ridge) + (d - n) * math.log(ridge)
    else:
        log_det = _log_det(centred.t() @ centred, ridge)
    return ((trace - log_det) / 2).to(latent) + (latent - latent_view).square().sum() / 2


def _log_det(matrix: Tensor, ridge: float) -> Tensor:
    ridged = matrix + _ridge(len(matrix), ridge, matrix.device)
    log_det: Tensor = 2 * torch.linalg.cholesky(ridged).diagonal().log().sum()
    return log_det


@lru_cache(maxsize=16)
def _ridge(size: int, ridge: float, device: torch.device) -> Tensor:
    """A multiple of the identity; the same few are asked for at every step."""
    return ridge * torch.eye(size, dtype=torch.float64, device=device)
