"""SimCLR's NT-Xent: embeddings of data and look find one another among all others of both."""

from typing import ClassVar

from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Seen
from gedi.objectives.paired import Paired
from gedi.settings import Width


class NtXent(Paired):
    """See :func:`gedi.losses.nt_xent`."""

    temperature: Width = 0.2

    kind: ClassVar[str] = "nt_xent"

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The loss of data and look."""
        return losses.nt_xent(*self.embeddings(seen), self.temperature)
