"""Embeddings spread out, and latents that agree with the augmented view: the paper's negative-free term."""

from typing import ClassVar, Literal

from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Objective, Seen
from gedi.settings import Width


class NegativeFree(Objective):
    """See :func:`gedi.losses.negative_free`."""

    ridge: Width = 1e-4  # beta

    kind: ClassVar[str] = "negative_free"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "embedding"

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The negative-free term of data and view."""
        return losses.negative_free(seen.data.embedding, seen.data.latent, seen.looks["view"].latent, self.ridge)
