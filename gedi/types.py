"""The few types that cross rooms."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

#: An energy E(x), lower where the data are denser: (n, *shape) -> (n,).
EnergyFn = Callable[[Tensor], Tensor]


class Clustered(NamedTuple):
    """What the cluster side says of a batch: see :class:`Outputs`."""

    latent: Tensor
    embedding: Tensor
    logits: Tensor


class Outputs(NamedTuple):
    """What one network says of a batch.

    Attributes:
        latent: ``xi = enc(x)``, (n, h).
        embedding: ``w = proj(xi)`` on the unit sphere, (n, d).
        logits: ``s = U^T w / tau``, (n, c); ``p(y|x) = softmax(s)``.
        energy: ``E(x) = -u^T enc(x)``, (n,); ``log p(x) = -E(x) - log Z``.
    """

    latent: Tensor
    embedding: Tensor
    logits: Tensor
    energy: Tensor
