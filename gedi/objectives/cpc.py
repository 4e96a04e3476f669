"""CPC's form: embeddings of the data predict those of a look, and not the other way round."""

from typing import ClassVar

from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Seen
from gedi.objectives.paired import Paired
from gedi.settings import Width


class Cpc(Paired):
    """See :func:`gedi.losses.cpc`."""

    temperature: Width = 0.1  # of unit vectors; CPC's critic has none, and lengths of its own

    kind: ClassVar[str] = "cpc"

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The loss of data and look."""
        return losses.cpc(*self.embeddings(seen), self.temperature)
