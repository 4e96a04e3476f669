"""How often the likeliest answer is the observed one: of groups held out, and of test images put together at random."""

from typing import ClassVar

import torch
from torch import Tensor

from gedi.logic import Constraint
from gedi.measures.measure import Measure, Trained, seen_of

_GROUPS = 5000  # of test images


class AnswerAccuracy(Measure):
    """Where each group has an answer: what a user of the answers alone would see, and what is behind it."""

    kind: ClassVar[str] = "answers"
    order: ClassVar[int] = 42
    about: ClassVar[dict[str, str]] = {
        "answer_accuracy": "share of groups held out whose likeliest answer is the observed one",
        "answer_accuracy_anew": "the same of test images put together at random: combinations that training need not "
        "have had",
    }

    def applies(self, trained: Trained) -> bool:
        """Groups with answers, by a rule that the clusters stand for."""
        rule = trained.constraint
        return rule is not None and rule.queries is not None and trained.data.answers is not None

    def __call__(self, trained: Trained) -> dict[str, float]:
        """Both, where there are groups held out, and labels of test images that number the symbols."""
        rule, data = trained.constraint, trained.data
        assert rule is not None
        found = {}
        if data.validation is not None and data.validation_answers is not None:
            log_p = seen_of(trained.model, data.validation).logits.log_softmax(dim=1)
            given = rule.numbered(data.validation_answers)
            if not given.is_floating_point():
                found["answer_accuracy"] = right_answers(rule, log_p, given)
        labels = data.test_labels
        symbols = trained.seen.logits.shape[1]
        if labels is not None and bool(((labels >= 0) & (labels < symbols)).all()):
            size = len(rule.domains)
            order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
            order = order[: min(len(order) // size, _GROUPS) * size]
            truth = torch.full((len(order), symbols), -torch.inf).scatter_(1, labels[order].long()[:, None], 0.0)
            true = _log_p(rule, truth).max(dim=1)
            has = true.values > -1e-3  # some groups may have no answer at all
            log_p = trained.seen.logits.log_softmax(dim=1)[order]
            if bool(has.any()):
                log_p = log_p.view(-1, size, symbols)[has].flatten(0, 1)
                found["answer_accuracy_anew"] = right_answers(rule, log_p, true.indices[has])
        return found


def right_answers(rule: Constraint, log_p: Tensor, given: Tensor) -> float:
    """The share of groups, members one below the other, whose likeliest answer is the given one; -1 are left out."""
    said = _log_p(rule, log_p).argmax(dim=1)
    known = given >= 0
    return float((said[known] == given[known]).double().mean())


def _log_p(rule: Constraint, log_p: Tensor) -> Tensor:
    """Of each answer, (groups, answers)."""
    return rule.log_prob(log_p.double().view(-1, len(rule.domains), log_p.shape[1]), normalised=False)
