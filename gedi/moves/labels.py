"""A few labels choose between names that the rule cannot tell apart."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.errors import UserError
from gedi.moves.move import Augment, Move, Proposal
from gedi.nn import Model, Prototypes
from gedi.objectives.objective import Context
from gedi.precision import full_precision
from gedi.types import Points


class Labels(Move):
    """Exchanges names as the rule allows, where the labelled images then fit better.

    Gradients cannot exchange two names, and the alignment by the rule may take either of two namings that satisfy it
    alike. It stands after the alignment, at the same moments.
    """

    kind: ClassVar[str] = "labels"
    needs_few: ClassVar[bool] = True

    def bind(self, context: Context) -> "Labels":
        """Refused where nothing is labelled."""
        if context.few is None:
            raise UserError("names are chosen by labelled images, and there are none: see data.label_these")
        return super().bind(context)

    @torch.no_grad()
    @full_precision
    def propose(
        self, model: Model, points: Points, grouped: int, look: Augment, generator: torch.Generator
    ) -> Proposal:
        """The prototypes under the naming, of those that the rule allows, that fits the labelled images best."""
        few = self._context.few
        assert few is not None
        if not isinstance(model.prototypes, Prototypes):
            raise UserError("names are exchanged by prototypes: the move labels needs model.head=prototypes")
        was_training = model.training
        logits = model.eval().clustered(points[few.rows]).logits
        model.train(was_training)
        labels = few.labels.to(logits.device)
        orders = namings(few.swaps, logits.shape[1])
        losses = [float(F.cross_entropy(logits[:, order], labels)) for order in orders]
        best = min(range(len(orders)), key=losses.__getitem__)
        weight = model.prototypes.weight
        assert isinstance(weight, Tensor)
        order = orders[best].to(weight.device)
        return Proposal("labels", weight[order], order, losses[0], losses[best])


def namings(swaps: tuple[tuple[int, ...], ...], symbols: int) -> list[Tensor]:
    """The identity, every swap and its inverse, as orders of prototypes.

    Example:
        >>> [order.tolist() for order in namings(((1, 2, 0),), 3)]
        [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    """
    found = [tuple(range(symbols)), *swaps]
    found += [tuple(torch.tensor(swap).argsort().tolist()) for swap in swaps]
    return [torch.tensor(order) for order in dict.fromkeys(found)]
