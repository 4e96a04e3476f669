"""How well groups of points satisfy the rule; no labels."""

from typing import Any, ClassVar

import torch.nn.functional as F

from gedi.measures.measure import Measure, Trained, seen_of
from gedi.types import Points


class RuleHolds(Measure):
    """Of the training groups, and of groups held out. A collapse satisfies a rule too."""

    kind: ClassVar[str] = "rule"
    order: ClassVar[int] = 40
    about: ClassVar[dict[str, str]] = {
        "constraint_loss": "-log P(constraint) of the training groups",
        "constraint_satisfied": "share of training groups that satisfy the constraint; no proof: a collapse does too",
        "validation_constraint_loss": "-log P(constraint) of groups held out",
        "validation_constraint_satisfied": "share of groups held out that satisfy the constraint",
    }

    def applies(self, trained: Trained) -> bool:
        """A rule."""
        return trained.constraint is not None

    def __call__(self, trained: Trained) -> dict[str, float]:
        """The semantic loss, and the share of groups whose likeliest symbols satisfy the rule."""
        constraint, data = trained.constraint, trained.data
        assert constraint is not None
        parts: dict[str, tuple[Points, Any]] = {"": (data.grouped.flatten(0, 1), data.answers)}
        if data.validation is not None:
            parts["validation_"] = (data.validation, data.validation_answers)
        found = {}
        for part, (points, given) in parts.items():
            answers = None if given is None else constraint.numbered(given)
            logits = seen_of(trained.model, points).logits
            log_p = logits.log_softmax(dim=1).double().view(-1, data.group_size, logits.shape[1])
            likeliest = F.one_hot(log_p.argmax(dim=2), log_p.shape[2]).double().log()
            loss = -constraint.log_prob(log_p, normalised=False, answers=answers)
            holds = constraint.log_prob(likeliest, normalised=False, answers=answers) > -1e-9
            found[f"{part}constraint_loss"] = float(loss.mean())
            found[f"{part}constraint_satisfied"] = float(holds.float().mean())
        return found
