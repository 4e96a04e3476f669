"""Clusters begin as those proposed by a cut of the points' graph, and then are free."""

from typing import ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor

from gedi.errors import UserError
from gedi.objectives.objective import Carried, Context, Look, Objective, Seen
from gedi.settings import Share


class Proposed(Objective):
    """Cross-entropy with the proposal, until a share of the stage is over. No label takes part."""

    until: Share = 1.0

    kind: ClassVar[str] = "proposed"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "embedding"  # how close one stays to it is no sign of good

    @property
    def looks(self) -> tuple[Look, ...]:
        """Only the data themselves."""
        return ()

    def bind(self, context: Context) -> "Proposed":
        """Refused where nothing was proposed."""
        if not context.proposed:
            raise UserError("clusters are proposed by the graph of a table's points: see walk.energy=graph")
        return super().bind(context)

    def at(self, progress: float) -> float:
        """The weight at a share of the stage: none later than ``until``."""
        return super().at(progress) if progress <= self.until else 0.0

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The cross-entropy of the data."""
        assert seen.proposed is not None
        return F.cross_entropy(seen.data.logits, seen.proposed)
