"""NT-Xent, the loss of SimCLR: a pair against all other points of both views."""

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.precision import full_precision


@full_precision
def nt_xent(embedding: Tensor, other: Tensor, temperature: float = 0.2) -> Tensor:
    r"""InfoNCE in which a point's own view holds negatives too.

    .. math:: -\frac1{2n} \sum_{i=1}^{2n}
              \log \frac{e^{\cos(z_i, z_{\bar i})/\tau}}{\sum_{k \neq i} e^{\cos(z_i, z_k)/\tau}}

    over the 2n points of both views, :math:`\bar i` being the other view of i.

    Args:
        embedding: of one view, (n, d).
        other: of the other view, (n, d), row for row.
        temperature: ``tau``.

    Source: Chen et al., "A simple framework for contrastive learning of visual representations" (SimCLR), 2020.

    Example:
        >>> nt_xent(torch.ones(4, 3), torch.ones(4, 3)).exp()      # one among the seven others
        tensor(7.0000)
    """
    n = len(embedding)
    z = F.normalize(torch.cat([embedding, other]), dim=1)
    s = (z @ z.t() / temperature).fill_diagonal_(-torch.inf)  # (2n, 2n): nobody is told from oneself
    return F.cross_entropy(s, torch.arange(2 * n, device=z.device).roll(n))
