"""VICReg: embeddings of data and look are close, dimensions keep their spread and do not repeat each other."""

import math
from typing import ClassVar

from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Seen
from gedi.objectives.paired import Paired
from gedi.settings import Amount


class Vicreg(Paired):
    """See :func:`gedi.losses.vicreg`; unit vectors come in times the root of their dimension."""

    invariance: Amount = 25.0
    variance: Amount = 25.0
    covariance: Amount = 1.0

    kind: ClassVar[str] = "vicreg"

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The loss of data and look."""
        first, second = self.embeddings(seen)
        scale = math.sqrt(first.shape[1])
        return losses.vicreg(
            scale * first,
            scale * second,
            invariance=self.invariance,
            variance=self.variance,
            covariance=self.covariance,
        )
