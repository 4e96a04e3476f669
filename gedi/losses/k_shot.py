"""K-shot contrastive learning: a point is told apart by the space that several views of it span."""

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.precision import full_precision

_TINY = 1e-12  # under the root, whose slope at 0 is infinite


@full_precision
def k_shot(query: Tensor, *shots: Tensor, temperature: float = 0.1, ridge: float = 1e-2) -> Tensor:
    r"""InfoNCE between a point and the spaces that K views of each point span.

    .. math:: -\frac1n \sum_i \log \frac{e^{s_{ii}/\tau}}{\sum_j e^{s_{ij}/\tau}}, \qquad
              s_{ij} = \sqrt{ z_i^T V_j (V_j^T V_j + \rho I)^{-1} V_j^T z_i }

    :math:`s_{ij}` is the length of ``z_i`` projected onto the span of the K unit vectors ``V_j``, 1 within it and 0
    across; directions of a spread far below ``rho`` do not count, so that equal views span a line. With one view it is
    the size of the cosine.

    Args:
        query: ``z``, (n, d).
        shots: the K views of every point, each (n, d), row for row.
        temperature: ``tau``.
        ridge: ``rho``.

    Source: Xu, Xiong and Qi, "K-shot contrastive learning of visual features with multiple instance augmentations",
    2022; there the span is cut off by eigenvalues, here by the ridge.

    Example:
        >>> z = torch.eye(3)
        >>> bool(k_shot(z, z, z) < 1e-3), k_shot(torch.ones(3, 3), z, z).exp()
        (True, tensor(3.))
    """
    if not shots:
        raise ValueError("k_shot needs at least one view beside the query")
    z = F.normalize(query, dim=1)
    v = F.normalize(torch.stack(shots, dim=1), dim=2)  # (n, K, d)
    gram = v @ v.transpose(1, 2) + ridge * torch.eye(len(shots), dtype=v.dtype, device=v.device)
    within = v @ z.t()  # (n, K, n): spaces, shots, queries
    squared = (within * (torch.linalg.inv(gram) @ within)).sum(dim=1).clamp_min(0)  # rounding may be below
    s = (squared.t() + _TINY).sqrt()  # (n, n): queries, spaces
    return F.cross_entropy(s / temperature, torch.arange(len(s), device=s.device))
