"""W-MSE: whitened views are close."""

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.precision import full_precision

_TINY = 1e-12  # of the whitening where nothing is spread


@full_precision
def w_mse(embedding: Tensor, other: Tensor, ridge: float = 1e-3) -> Tensor:
    r"""The squared distance between whitened views on the unit sphere.

    .. math:: \frac1n \sum_i \left\lVert \frac{u_i}{\lVert u_i \rVert} - \frac{u'_i}{\lVert u'_i \rVert} \right\rVert^2,
              \qquad u_i = L^{-1} (z_i - \bar z), \quad L L^T = \mathrm{Cov}(z) + \rho\, \overline{\mathrm{Var}}\, I

    Whitening leaves nothing to collapse, so closeness is all that is asked. It wants more points than dimensions: with
    fewer, whitened points are far from each other whatever they were. Factors are computed in float64.

    Args:
        embedding: of one view, (n, d).
        other: of the other view, (n, d), row for row.
        ridge: ``rho``, in mean variances of a dimension.

    Source: Ermolov et al., "Whitening for self-supervised representation learning", 2021.

    Example:
        >>> w = torch.randn(8, 2, generator=torch.Generator().manual_seed(0))
        >>> bool(w_mse(w, w @ torch.tensor([[2.0, 0.0], [0.0, 5.0]])) < 1e-2), w_mse(w, -w)
        (True, tensor(4.))
    """
    first, second = (F.normalize(_whitened(z, ridge), dim=1) for z in (embedding, other))
    return (first - second).square().sum(dim=1).mean().to(embedding.dtype)


def _whitened(embedding: Tensor, ridge: float) -> Tensor:
    """Rows of mean 0 and covariance 1, (n, d), by the Cholesky factor of the covariance."""
    exact = embedding.to("cpu" if embedding.device.type == "mps" else None, torch.float64)  # mps has no float64
    n, d = exact.shape
    centred = exact - exact.mean(dim=0)
    covariance = centred.t() @ centred / max(n - 1, 1)
    level = ridge * covariance.diagonal().mean() + _TINY
    factor = torch.linalg.cholesky(covariance + level * torch.eye(d, dtype=exact.dtype, device=exact.device))
    white: Tensor = torch.linalg.solve_triangular(factor, centred.t(), upper=False).t()
    return white.to(embedding.device)
