"""MEC: maximum entropy coding, the length of a code for what two views share."""

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.precision import full_precision


@full_precision
def mec(embedding: Tensor, other: Tensor, rate: float = 0.9, order: int = 4) -> Tensor:
    r"""The negative length of a code of both views, by the first terms of the logarithm's series.

    .. math:: - \frac{n + d}{2 n} \log\det\left(I + \frac{r}{n} Z^T Z'\right)
              \approx - \frac{n + d}{2 n} \sum_{k=1}^{m} \frac{(-1)^{k+1}}{k}
              \mathrm{tr} \left(\frac{r}{n} Z^T Z'\right)^k

    with unit rows. The series needs ``r < 1``; its first term draws views together, its second spreads the points.

    Args:
        embedding: ``Z``, of one view, (n, d).
        other: ``Z'``, of the other view, (n, d), row for row.
        rate: ``r``; the paper's distortion is :math:`\epsilon^2 = d / r`.
        order: ``m``, terms of the series.

    Source: Liu et al., "Self-supervised learning via maximum entropy coding", 2022.

    Example:
        >>> z = torch.eye(2)
        >>> bool(mec(z, z, order=40).isclose(-2 * torch.tensor(1.45).log()))      # n = d = 2: det (1 + 0.9 / 2)^2
        True
    """
    if order < 1:
        raise ValueError(f"the series needs at least one term, got order {order}")
    n, d = embedding.shape
    first, second = F.normalize(embedding, dim=1), F.normalize(other, dim=1)
    # the two products have the same traces of powers: the smaller is cheaper
    product = (second @ first.t() if n < d else first.t() @ second) * (rate / n)
    power, total = product, product
    for k in range(2, order):
        power = power @ product
        total = torch.add(total, power, alpha=(-1) ** (k + 1) / k)
    traces = total.diagonal().sum()
    if order > 1:  # of the last power only the trace is needed
        traces = traces + (-1) ** (order + 1) / order * (power * product.t()).sum()
    return -(n + d) / (2 * n) * traces
