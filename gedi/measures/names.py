"""Whether the training groups tell the names of the symbols; no labels."""

from typing import ClassVar

from gedi.logic import align
from gedi.measures.measure import Measure, Trained, seen_of

_GROUPS = 300  # enough to tell the names; more only cost time


class NamesTold(Measure):
    """How sure each name is by the groups and the rule: few groups leave some open, whatever the clusters."""

    kind: ClassVar[str] = "names"
    order: ClassVar[int] = 41
    about: ClassVar[dict[str, str]] = {
        "name_confidence": "the least probability of a symbol's name, given the training groups and the rule",
        "names_open": "symbols whose name is less than 0.9 sure by the training groups",
    }

    def applies(self, trained: Trained) -> bool:
        """A rule over one set of symbols, and clusters to name."""
        rule, data = trained.constraint, trained.data
        if rule is None or not trained.has_clusters or len(set(rule.sizes)) > 1:
            return False
        return rule.queries is None or data.answers is not None

    def __call__(self, trained: Trained) -> dict[str, float]:
        """Alignment of the trained clusters: a name that it would change is as unsure as its choice is sure.

        Symbols of which labels were seen are called what these say.
        """
        constraint, data = trained.constraint, trained.data
        assert constraint is not None
        groups = min(_GROUPS, data.groups)
        answers = None if data.answers is None else constraint.numbered(data.answers)[:groups]
        logits = seen_of(trained.model, data.train[: groups * data.group_size]).logits
        log_p = logits.double().log_softmax(dim=1).view(groups, data.group_size, -1)
        found = align(constraint, log_p, generator=trained.streams["names"], answers=answers, named=sorted(trained.few))
        kept = found.permutation == found.permutation.new_tensor(range(len(found.permutation)))
        sure = found.confidence.where(kept, 1 - found.confidence)
        return {"name_confidence": float(sure.min()), "names_open": float((sure < 0.9).sum())}
