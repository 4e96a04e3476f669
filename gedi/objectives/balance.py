"""Every symbol has its share of the points."""

from typing import ClassVar, Literal

from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Seen
from gedi.objectives.shared import SharesOut


class Balance(SharesOut):
    """Cross-entropy of the shares, over data and augmented view together."""

    kind: ClassVar[str] = "balance"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "clusters"

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The cross-entropy of the shares."""
        logits = seen.both()
        return losses.balance(logits, self.log_shares(carried, logits))
