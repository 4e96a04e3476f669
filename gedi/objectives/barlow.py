"""Barlow Twins: dimensions of the embedding agree between looks and do not repeat each other."""

from typing import ClassVar, Literal

from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Objective, Seen
from gedi.settings import Amount


class Barlow(Objective):
    """See :func:`gedi.losses.barlow_twins`."""

    off_diagonal: Amount = 5e-3  # weight of the redundancy

    kind: ClassVar[str] = "barlow"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "embedding"

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The Barlow Twins loss of data and view."""
        return losses.barlow_twins(seen.data.embedding, seen.looks["view"].embedding, self.off_diagonal)
