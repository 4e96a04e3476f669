"""New prototypes that some search proposes during training, and whether they are better."""

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Proposal(NamedTuple):
    """New prototypes, and a loss under the old and the new ones. No label takes part.

    Attributes:
        loss: the name of the loss, for the log.
        prototypes: (c, d).
        permutation: (c,) if they are a renaming of the old ones, else None.
        before, after: the loss of the old and of the new ones.
    """

    loss: str
    prototypes: Tensor
    permutation: Tensor | None
    before: float
    after: float

    def to(self, device: torch.device | str) -> "Proposal":
        """The same on a device."""
        order = None if self.permutation is None else self.permutation.to(device)
        return self._replace(prototypes=self.prototypes.to(device), permutation=order)

    @property
    def improves(self) -> bool:
        """Whether the loss drops by more than rounding."""
        return self.after < self.before - 1e-4

    def record(self) -> dict[str, Any]:
        """What the log keeps."""
        how = "kept" if not self.improves else "redrawn" if self.permutation is None else "renamed"
        return {f"{self.loss}_before": self.before, f"{self.loss}_after": self.after, "prototypes": how}
