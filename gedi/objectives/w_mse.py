"""W-MSE: whitened embeddings of data and look are close."""

from typing import ClassVar

from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Seen
from gedi.objectives.paired import Paired
from gedi.settings import Width


class WMse(Paired):
    """See :func:`gedi.losses.w_mse`."""

    ridge: Width = 1e-3  # in mean variances of a dimension

    kind: ClassVar[str] = "w_mse"

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The loss of data and look."""
        return losses.w_mse(*self.embeddings(seen), self.ridge)
