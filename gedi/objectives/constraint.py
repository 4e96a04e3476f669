"""What is known of groups of symbols: the semantic loss."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from gedi.errors import UserError
from gedi.objectives.objective import Carried, Context, Objective, Seen


class Rule(Objective):
    """``-mean log P(C)`` over the groups of the batch, each seen as data and as augmented view.

    Of a constraint with several queries, P is that of the query that was observed for the group.
    """

    kind: ClassVar[str] = "constraint"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "clusters"

    def bind(self, context: Context) -> "Rule":
        """Refused where nothing is known."""
        if context.constraint is None:
            raise UserError("a weight on the constraint needs a constraint: see constraint.rule")
        if context.answers is None:
            context.constraint.one_query("training")
        return super().bind(context)

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The semantic loss."""
        rule = self._context.constraint
        assert rule is not None
        log_p = seen.both(seen.grouped).log_softmax(dim=1)
        groups = log_p.view(-1, len(rule.domains), log_p.shape[1])
        answers = None if seen.answers is None else torch.cat([seen.answers, seen.answers])
        # a log_softmax needs no check at each step
        return -rule.log_prob(groups, normalised=False, answers=answers).mean()
