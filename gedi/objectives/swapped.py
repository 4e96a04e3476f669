"""Swapped prediction: each look predicts the other's balanced assignment."""

import math
from typing import ClassVar, Literal

from torch import Tensor

from gedi import losses
from gedi.errors import UserError
from gedi.objectives.objective import Carried, Context, Look, Seen
from gedi.objectives.shared import SharesOut
from gedi.settings import Positive, Share, Width


class Swapped(SharesOut):
    """The cluster term of the data and one look.

    Sinkhorn's epsilon goes from ``epsilon_start`` to ``epsilon`` geometrically over the first ``anneal`` of the stage:
    soft targets while the clusters form, hard ones when they have.
    """

    look: Look = "view"
    epsilon_start: Width = 0.2  # at the temperature: above it the uniform state is stable and nothing forms
    epsilon: Width = 0.1
    anneal: Share = 0.5
    iterations: Positive = 3

    kind: ClassVar[str] = "swapped"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "clusters"

    @property
    def looks(self) -> tuple[Look, ...]:
        """The one it is held against."""
        return (self.look,)

    def bind(self, context: Context) -> "Swapped":
        """Refused where no cluster could ever form."""
        if self.epsilon >= context.temperature:
            raise UserError(
                f"epsilon of swapped must be below model.temperature, or no cluster ever leaves the uniform state; "
                f"got {self.epsilon} and {context.temperature}"
            )
        return super().bind(context)

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The cluster term."""
        logits = seen.data.logits
        return losses.swapped_prediction(
            logits,
            seen.looks[self.look].logits,
            temperature=self._context.temperature,
            epsilon=self.epsilon_at(seen.progress),
            iterations=self.iterations,
            log_prior=self.log_shares(carried, logits),
        )

    def epsilon_at(self, progress: float) -> float:
        """Sinkhorn's epsilon at a share of the stage."""
        way = min(1.0, progress / self.anneal) if self.anneal > 0 else 1.0
        epsilon: float = self.epsilon_start * (self.epsilon / self.epsilon_start) ** way
        return epsilon

    def loss_range(self) -> tuple[float, float]:
        """See :func:`perfect_cluster_loss`; whoever knows nothing gives every cluster the same probability."""
        c = self._context
        return perfect_cluster_loss(c.clusters, c.embedding, c.temperature), math.log(c.clusters)


def perfect_cluster_loss(clusters: int, dimension: int, temperature: float) -> float:
    r"""The cluster term of a perfect clustering: what a restart can reach at best.

    With c balanced clusters that no look ever leaves, the best prototypes form a simplex: cosine 1 to one's
    own and :math:`-1/(c-1)` to the others (where the dimension allows it), so

    .. math:: -\log \frac{e^{1/\tau}}{e^{1/\tau} + (c-1)\, e^{-1/((c-1)\tau)}}

    A run that comes down to this has found clusters that no walk crosses, whatever the data: an absolute
    yardstick that needs no labels.

    Example:
        >>> round(perfect_cluster_loss(2, 8, 0.5), 4)
        0.0181
    """
    if clusters < 2:
        return 0.0
    other: float = -1 / (clusters - 1) if clusters <= dimension + 1 else 0.0
    rest = math.log(clusters - 1) + other / temperature
    return math.log1p(math.exp(rest - 1 / temperature))
