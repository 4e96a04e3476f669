"""Cross-entropy with the labels: the upper bound that the others are held against, never part of a method."""

from typing import ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor

from gedi.errors import UserError
from gedi.objectives.objective import Carried, Context, Objective, Seen


class Supervised(Objective):
    """Looks at labels."""

    kind: ClassVar[str] = "supervised"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "clusters"
    needs_labels: ClassVar[bool] = True

    def bind(self, context: Context) -> "Supervised":
        """Refused where there are no labels."""
        if not context.labelled:
            raise UserError("method supervised needs labelled training data")
        return super().bind(context)

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The cross-entropy of data and view."""
        assert seen.labels is not None
        logits = seen.both()
        return F.cross_entropy(logits, seen.labels.repeat(len(logits) // len(seen.labels)))
