"""Every symbol has its share of the points."""

from typing import ClassVar, Literal

from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Objective, Seen


class Balance(Objective):
    """Cross-entropy of the shares, over data and augmented view together."""

    kind: ClassVar[str] = "balance"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "clusters"
    shares_out: ClassVar[bool] = True

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The cross-entropy of the shares."""
        logits, shares = seen.both(), self._context.log_shares
        return losses.balance(logits, None if shares is None else shares.to(logits))
