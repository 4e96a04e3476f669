"""K-shot contrastive learning: a point is told apart by the space that several views of it span."""

from typing import ClassVar, Literal

from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Objective, Seen, view_names
from gedi.settings import Positive, Width


class KShot(Objective):
    """See :func:`gedi.losses.k_shot`; every view is an augmentation of its own."""

    shots: Positive = 3
    temperature: Width = 0.1
    ridge: Width = 1e-2

    kind: ClassVar[str] = "k_shot"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "embedding"

    @property
    def looks(self) -> tuple[str, ...]:
        """As many views as shots."""
        return view_names(self.shots)

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The loss of data and views."""
        shots = [seen.looks[name].embedding for name in self.looks]
        return losses.k_shot(seen.data.embedding, *shots, temperature=self.temperature, ridge=self.ridge)
