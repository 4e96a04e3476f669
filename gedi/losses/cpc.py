"""CPC's form of InfoNCE: a prediction finds its target, and not the other way round."""

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.precision import full_precision


@full_precision
def cpc(prediction: Tensor, target: Tensor, temperature: float = 1.0) -> Tensor:
    r"""InfoNCE from one side, with products in place of cosines.

    .. math:: -\frac1n \sum_i \log \frac{e^{c_i^T z_i / \tau}}{\sum_k e^{c_i^T z_k / \tau}}

    It differs from :func:`contrastive` in both: lengths count, since a critic :math:`c = W x` may be sure or unsure,
    and only the targets are told apart.

    Args:
        prediction: ``c``, what is expected of each target, (n, d).
        target: ``z``, (n, d), row for row.
        temperature: ``tau``; the paper has 1.

    Source: van den Oord, Li and Vinyals, "Representation learning with contrastive predictive coding", 2018.

    Example:
        >>> cpc(torch.zeros(5, 2), torch.randn(5, 2)).exp()        # nothing is predicted
        tensor(5.)
    """
    s = prediction @ target.t() / temperature  # (n, n)
    return F.cross_entropy(s, torch.arange(len(s), device=s.device))
