"""A part of one's own, in a package of one's own: what settings name by its import path.

    PYTHONPATH=examples gedi run circles --set stage2.terms.my_package.MyLoss.weight=0.1

Nothing of GEDI is changed or registered. It is one class: its fields are its settings, checked and kept with the run; what
it carries from step to step is checkpointed and rolled back with everything else.
"""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from gedi.objectives.objective import Carried, Objective, Seen
from gedi.settings import Width


class MyLoss(Objective):
    """Every dimension of the embedding keeps some spread: a hinge on its standard deviation, as in VICReg.

    The spread is that of the last steps, a running mean of squares, so that small batches do not make it jump.
    """

    floor: Width = 0.35  # of a dimension's standard deviation
    memory: Width = 0.9  # share of the running mean that a step keeps

    kind: ClassVar[str] = "my_loss"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "embedding"

    def begin(self) -> Carried:
        """No step yet. Shapes stay what they are here: a checkpoint of other shapes is refused."""
        return {"squares": torch.zeros(self._context.embedding), "weight": torch.zeros(())}

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The mean shortfall below the floor."""
        mixed = self._mixed(seen, carried)
        spread = (mixed["squares"] / mixed["weight"]).clamp_min(1e-12).sqrt()
        return (self.floor - spread).clamp_min(0).mean()

    def after(self, seen: Seen, carried: Carried) -> Carried:
        """The running mean, one step on."""
        return {name: x.detach() for name, x in self._mixed(seen, carried).items()}

    def _mixed(self, seen: Seen, carried: Carried) -> dict[str, Tensor]:
        squares = seen.data.embedding.var(dim=0)
        new = {"squares": squares, "weight": torch.ones_like(squares[0])}
        return {name: self.memory * carried[name].to(x) + (1 - self.memory) * x for name, x in new.items()}
