"""InfoNCE: embeddings of the data and of the augmented view find one another in the batch."""

from typing import ClassVar

from torch import Tensor

from gedi import losses
from gedi.losses.contrastive import Similarity
from gedi.objectives.objective import Carried, Seen
from gedi.objectives.paired import Paired
from gedi.settings import Width


class Contrastive(Paired):
    """See :func:`gedi.losses.contrastive`."""

    temperature: Width = 0.1
    similarity: Similarity = "cosine"

    kind: ClassVar[str] = "contrastive"

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """InfoNCE of data and look."""
        return losses.contrastive(*self.embeddings(seen), self.temperature, self.similarity)
