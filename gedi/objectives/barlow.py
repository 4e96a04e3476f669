"""Barlow Twins: dimensions of the embedding agree between looks and do not repeat each other."""

from typing import ClassVar

from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Seen
from gedi.objectives.paired import Paired
from gedi.settings import Amount


class Barlow(Paired):
    """See :func:`gedi.losses.barlow_twins`."""

    off_diagonal: Amount = 5e-3  # weight of the redundancy

    kind: ClassVar[str] = "barlow"

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The Barlow Twins loss of data and look."""
        return losses.barlow_twins(*self.embeddings(seen), self.off_diagonal)
