"""InfoNCE: embeddings of the data and of the augmented view find one another in the batch."""

from typing import ClassVar, Literal

from torch import Tensor

from gedi import losses
from gedi.losses.contrastive import Similarity
from gedi.objectives.objective import Carried, Objective, Seen
from gedi.settings import Width


class Contrastive(Objective):
    """See :func:`gedi.losses.contrastive`."""

    temperature: Width = 0.1
    similarity: Similarity = "cosine"

    kind: ClassVar[str] = "contrastive"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "embedding"

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """InfoNCE of data and view."""
        data, view = seen.data.embedding, seen.looks["view"].embedding
        return losses.contrastive(data, view, self.temperature, self.similarity)
