"""ProtoCPC: the symbols of a look are told apart from those of the batch."""

import math
from typing import ClassVar, Literal

from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Look, Objective, Seen
from gedi.settings import Width


class ProtoCpc(Objective):
    """See :func:`gedi.losses.proto_cpc`."""

    look: Look = "view"
    sharpening: Width = 2.0

    kind: ClassVar[str] = "proto_cpc"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "clusters"
    shares_out: ClassVar[bool] = True

    @property
    def looks(self) -> tuple[Look, ...]:
        """The one it is held against."""
        return (self.look,)

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The loss of data and look."""
        return losses.proto_cpc(seen.data.logits, seen.looks[self.look].logits, self.sharpening)

    def loss_range(self) -> tuple[float, float]:
        """Clusters of equal shares that are sure, and all points in one."""
        return -math.log(self._context.clusters), 0.0
