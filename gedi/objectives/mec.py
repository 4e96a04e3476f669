"""MEC: the code of data and look together is as long as can be."""

from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Seen
from gedi.objectives.paired import Paired
from gedi.settings import Positive, Real


class Mec(Paired):
    """See :func:`gedi.losses.mec`."""

    rate: Annotated[Real, Field(gt=0, lt=1)] = 0.9  # the series of the logarithm ends at 1
    order: Positive = 4

    kind: ClassVar[str] = "mec"

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The loss of data and look."""
        return losses.mec(*self.embeddings(seen), self.rate, self.order)
