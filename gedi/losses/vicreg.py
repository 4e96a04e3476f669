"""VICReg: views are close, dimensions keep their spread and do not repeat each other."""

import torch.nn.functional as F
from torch import Tensor

from gedi.precision import full_precision

_EPSILON = 1e-4  # under the root


@full_precision
def vicreg(
    embedding: Tensor, other: Tensor, *, invariance: float = 25.0, variance: float = 25.0, covariance: float = 1.0
) -> Tensor:
    r"""Three sums of squares, none of which needs the other view's statistics.

    .. math:: \lambda \frac1{nd} \sum_i \lVert z_i - z'_i \rVert^2
              + \mu \left[ v(z) + v(z') \right] / 2 + \nu \left[ c(z) + c(z') \right]

    with :math:`v(z) = \frac1d \sum_j \max(0, 1 - \sqrt{\mathrm{Var}\, z_{\cdot j} + 10^{-4}})` and
    :math:`c(z) = \frac1d \sum_{j \neq k} \mathrm{Cov}(z)_{jk}^2`. The scale counts: dimensions are to have a standard
    deviation of 1, so unit vectors come in times :math:`\sqrt d`.

    Args:
        embedding: of one view, (n, d).
        other: of the other view, (n, d), row for row.
        invariance: ``lambda``.
        variance: ``mu``.
        covariance: ``nu``.

    Source: Bardes, Ponce and LeCun, "VICReg: variance-invariance-covariance regularization", 2022.

    Example:
        >>> import torch
        >>> w = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
        >>> vicreg(w, w), vicreg(w, -w)
        (tensor(0.), tensor(100.))
    """
    loss = invariance * F.mse_loss(embedding, other)
    for z in (embedding, other):
        n, d = z.shape
        centred = z - z.mean(dim=0)
        spread = centred.t() @ centred / max(n - 1, 1)  # (d, d)
        own = spread.diagonal()
        short = (1 - (own + _EPSILON).sqrt()).clamp_min(0).mean()
        loss = loss + variance / 2 * short + covariance * (spread.square().sum() - own.square().sum()) / d
    return loss
