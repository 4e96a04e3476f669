"""CorInfoMax: the information that two views share, by the second moments of each."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.precision import full_precision


@full_precision
def cor_info_max(
    embedding: Tensor,
    other: Tensor,
    *,
    ridge: float = 1e-3,
    invariance: float = 1.0,
    past: Sequence[Tensor] | None = None,
    keep: float = 0.0,
) -> Tensor:
    r"""Spread by the determinant of each view's covariance, closeness by the distance between views.

    .. math:: - \frac1{2d} \left[ \log\det (R + \rho I) + \log\det (R' + \rho I) \right]
              + \frac{\alpha}{n} \sum_i \lVert z_i - z'_i \rVert^2

    with unit rows, :math:`R = \gamma R_{past} + (1 - \gamma)\, \mathrm{Cov}(z)`. The determinants are computed in
    float64.

    Args:
        embedding: of one view, (n, d).
        other: of the other view, (n, d), row for row.
        ridge: ``rho``.
        invariance: ``alpha``.
        past: covariances of both views that earlier batches had, (d, d) each, taken as given.
        keep: ``gamma``, what they count.

    Source: Ozsoy et al., "Self-supervised learning with an information maximization criterion", 2022.

    Example:
        >>> z = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])      # covariance I / 2
        >>> bool(cor_info_max(z, z, ridge=0.5).abs() < 1e-6), cor_info_max(z, -z, ridge=0.5)
        (True, tensor(4.))
    """
    z = F.normalize(torch.stack([embedding, other]), dim=2)  # (2, n, d)
    _, n, d = z.shape
    close = (z[0] - z[1]).square().sum(dim=1).mean()
    rows = _centred(z)
    if past is None and n < d:  # the n x n matrix has the same spectrum, but for zeros
        log_dets = _log_dets(rows @ rows.transpose(1, 2) / n, ridge) + (d - n) * math.log(ridge)
    else:
        moments = rows.transpose(1, 2) @ rows / n
        if past is not None:
            moments = keep * torch.stack(list(past)).to(moments) + (1 - keep) * moments
        log_dets = _log_dets(moments, ridge)
    return invariance * close - (log_dets.sum() / (2 * d)).to(close)


def second_moments(rows: Tensor) -> Tensor:
    """The covariance of rows around their mean, (..., n, d) -> (..., d, d), in float64."""
    centred = _centred(rows)
    return centred.transpose(-2, -1) @ centred / rows.shape[-2]


def _centred(rows: Tensor) -> Tensor:
    exact = rows.to("cpu" if rows.device.type == "mps" else None, torch.float64)  # mps has no float64
    return exact - exact.mean(dim=-2, keepdim=True)


def _log_dets(matrices: Tensor, ridge: float) -> Tensor:
    ridged = matrices + ridge * torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
    log_dets: Tensor = 2 * torch.linalg.cholesky(ridged).diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
    return log_dets
