"""The data and a look at them are sure of the same symbol."""

from typing import ClassVar, Literal

from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Look, Objective, Seen


class Agreement(Objective):
    """Symmetric cross-entropy; it needs something beside it that shares the points out."""

    look: Look = "view"

    kind: ClassVar[str] = "agreement"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "clusters"

    @property
    def looks(self) -> tuple[Look, ...]:
        """The one it is held against."""
        return (self.look,)

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The symmetric cross-entropy."""
        return losses.agreement(seen.data.logits, seen.looks[self.look].logits)
