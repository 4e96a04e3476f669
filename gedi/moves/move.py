"""What a move is: now and then during training it proposes new prototypes, which are taken if a loss drops."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import torch
from pydantic import PrivateAttr
from torch import Tensor

from gedi.nn import Model
from gedi.objectives.objective import Context
from gedi.settings import Section, Share
from gedi.types import Points

#: One augmented look at points.
Augment = Callable[[Tensor, torch.Generator], Tensor]


class Proposal(NamedTuple):
    """New prototypes, and a loss under the old and the new ones. No label takes part.

    Attributes:
        loss: the name of the loss, for the log.
        prototypes: (c, d).
        permutation: (c,) if they are a renaming of the old ones, else None.
        before, after: the loss of the old and of the new ones.
        log_shares: (c,), how many points the new clusters have, where the move knows.
    """

    loss: str
    prototypes: Tensor
    permutation: Tensor | None
    before: float
    after: float
    log_shares: Tensor | None = None

    def to(self, device: torch.device | str) -> "Proposal":
        """The same on a device."""
        order = None if self.permutation is None else self.permutation.to(device)
        shares = None if self.log_shares is None else self.log_shares.to(device)
        return self._replace(prototypes=self.prototypes.to(device), permutation=order, log_shares=shares)

    @property
    def improves(self) -> bool:
        """Whether the loss drops by more than rounding."""
        return self.after < self.before - 1e-4

    def record(self) -> dict[str, Any]:
        """What the log keeps."""
        how = "kept" if not self.improves else "redrawn" if self.permutation is None else "renamed"
        shares = {} if self.log_shares is None else {"shares": [round(s, 4) for s in self.log_shares.exp().tolist()]}
        return {f"{self.loss}_before": self.before, f"{self.loss}_after": self.after, "prototypes": how, **shares}


class Move(Section):
    """A move; its settings are the part. A subclass is one file and nothing else.

    Attributes:
        moments: shares of the stage at which it is tried.
        kind: what settings and the log call it; its random stream too.
        needs_few: looks at the few labels that are told.
    """

    moments: tuple[Share, ...] = ()

    kind: ClassVar[str]
    needs_few: ClassVar[bool] = False
    _context: Context = PrivateAttr()

    def bind(self, context: Context) -> Self:
        """The same move for one run; what cannot be is refused here."""
        bound = self.model_copy()
        bound._context = context
        return bound

    @property
    def finds_shares(self) -> bool:
        """Whether its proposals say how many points their clusters have."""
        return False

    def due(self, iteration: int, iterations: int) -> bool:
        """Whether an iteration is at one of the moments, which are shares of the stage."""
        return iteration in {round(moment * iterations) for moment in self.moments}

    def propose(
        self, model: Model, points: Points, grouped: int, look: Augment, generator: torch.Generator
    ) -> Proposal:
        """New prototypes, from the training points, the first ``grouped`` of which come in groups. No labels."""
        raise TypeError(f"{type(self).__name__} must define propose(model, points, grouped, look, generator)")
