"""Finer clusters, which shape the embedding that symbols are merged in."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from gedi import losses
from gedi.errors import UserError
from gedi.objectives.objective import Carried, Context, Objective, Seen
from gedi.settings import Amount


class Finer(Objective):
    """Agreement and balance of the finer clusters."""

    balance: Amount = 4.0  # weight of the balance within the term

    kind: ClassVar[str] = "finer"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "embedding"

    def bind(self, context: Context) -> "Finer":
        """Refused where the model has none."""
        if context.finer == 0:
            raise UserError("a weight on the finer clusters needs some: see model.finer")
        return super().bind(context)

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The two terms, the second weighted."""
        data, view = seen.data.finer, seen.looks["view"].finer
        assert data is not None
        assert view is not None
        return losses.agreement(data, view) + self.balance * losses.balance(torch.cat([data, view]))
