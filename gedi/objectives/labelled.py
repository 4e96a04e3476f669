"""A few labels beside a rule: they tell apart the names that the rule cannot."""

from typing import ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor

from gedi.errors import UserError
from gedi.objectives.objective import Carried, Context, Objective, Seen


class Labelled(Objective):
    """Cross-entropy with the labels of the few images that have one; some of them are in every batch, at its end."""

    kind: ClassVar[str] = "labelled"
    needs_few: ClassVar[bool] = True
    shapes: ClassVar[Literal["clusters", "embedding"]] = "embedding"  # how well a few are fitted is no sign of good

    def bind(self, context: Context) -> "Labelled":
        """Refused where nothing is labelled."""
        if context.few is None:
            raise UserError("a weight on the labelled images needs some: see data.label_these")
        return super().bind(context)

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The cross-entropy of the labelled rows, as data and as view."""
        assert seen.few is not None
        rows = slice(len(seen.data.logits) - len(seen.few), None)
        both = (
            F.cross_entropy(seen.data.logits[rows], seen.few),
            F.cross_entropy(seen.looks["view"].logits[rows], seen.few),
        )
        return sum(both, start=seen.data.logits.new_zeros(())) / 2
