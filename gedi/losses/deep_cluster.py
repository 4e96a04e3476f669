"""DeepCluster: symbols predict pseudo-labels that some clustering gave."""

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.precision import full_precision


@full_precision
def deep_cluster(logits: Tensor, assigned: Tensor) -> Tensor:
    r"""Cross-entropy with pseudo-labels, each pseudo-label counting as much as every other.

    .. math:: - \frac1{|K|} \sum_{k \in K} \frac1{n_k} \sum_{i : k_i = k} \log p(k | x_i)

    over the pseudo-labels ``K`` that occur. Equal counts keep the largest cluster from being the answer to everything;
    the source draws its batches so.

    Args:
        logits: (n, c).
        assigned: pseudo-labels ``k_i``, whole numbers below c, (n,).

    Source: Caron et al., "Deep clustering for unsupervised learning of visual features", 2018.

    Example:
        >>> deep_cluster(torch.zeros(5, 4), torch.tensor([0, 0, 0, 0, 3])).exp()
        tensor(4.)
    """
    sizes = torch.bincount(assigned, minlength=logits.shape[1]).to(logits)
    return F.cross_entropy(logits, assigned, weight=1 / sizes.clamp_min(1))
