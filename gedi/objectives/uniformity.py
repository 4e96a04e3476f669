"""Every symbol is used: the later GEDI's term in place of Sinkhorn's assignments."""

from typing import ClassVar, Literal

from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Objective, Seen


class Uniformity(Objective):
    r""":math:`-\sum_k \log \frac1n \sum_i p(k|x_i)` over data and augmented view, with no prior but equal shares.

    It is the number of clusters times :func:`gedi.losses.balance`: every cluster adds one more cost of being left out,
    so that one weight fits few clusters and many.

    Source: Sansone and Manhaeve, "Unifying self-supervised clustering and energy-based models", 2024.
    """

    kind: ClassVar[str] = "uniformity"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "clusters"
    shares_out: ClassVar[bool] = True

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The sum over clusters."""
        logits = seen.both()
        return logits.shape[1] * losses.balance(logits)
