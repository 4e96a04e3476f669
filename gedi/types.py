"""The few types that cross rooms."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

#: An energy E(x), lower where the data are denser: (n, *shape) -> (n,).
EnergyFn = Callable[[Tensor], Tensor]


class Points(Protocol):
    """Many points (n, *shape): a tensor, or something that makes a tensor of what is asked for."""

    @property
    def shape(self) -> torch.Size:
        """(n, *shape)."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Tensor | slice, /) -> Tensor: ...


class Spread(NamedTuple):
    """Rows that the processes of a run share out: those of this one, and how many there are in all."""

    rows: Tensor
    total: int


class Clustered(NamedTuple):
    """What the cluster side says of a batch: see :class:`Outputs`."""

    latent: Tensor
    embedding: Tensor
    logits: Tensor
    finer: Tensor | None = None  # logits of finer clusters, where the model has them


class Outputs(NamedTuple):
    """What one network says of a batch.

    Attributes:
        latent: ``xi = enc(x)``, (n, h).
        embedding: ``w = proj(xi)`` on the unit sphere, (n, d).
        logits: ``s = U^T w / tau``, (n, c); ``p(y|x) = softmax(s)``.
        energy: ``E(x) = -u^T enc(x)``, (n,); ``log p(x) = -E(x) - log Z``; None where the density is no such energy.
    """

    latent: Tensor
    embedding: Tensor
    logits: Tensor
    energy: Tensor | None
