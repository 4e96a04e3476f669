"""What the rule leaves open among the groups that really occur, as far as the network can read them."""

from typing import ClassVar

import torch
from torch import Tensor

from gedi.errors import UserError
from gedi.logic import Constraint
from gedi.measures.measure import Measure, Trained, seen_of

_COVERED = 0.9  # of the groups, by the combinations that are read most often: the rest may be misread
_FEWEST = 20  # groups


class Namings(Measure):
    """A rule names more before the data are seen than it can where only some combinations occur."""

    kind: ClassVar[str] = "namings"
    order: ClassVar[int] = 43
    about: ClassVar[dict[str, str]] = {
        "namings_open": "other one-to-one namings that fit the training groups as the network reads them",
    }

    def applies(self, trained: Trained) -> bool:
        """A rule that the clusters stand for, and groups."""
        return trained.constraint is not None and trained.has_clusters and trained.data.groups >= _FEWEST

    def __call__(self, trained: Trained) -> dict[str, float]:
        """How many there are; nothing where they cannot be searched."""
        rule, data = trained.constraint, trained.data
        assert rule is not None
        answers = None if data.answers is None else rule.numbered(data.answers)
        said = seen_of(trained.model, data.grouped.flatten(0, 1)).logits.argmax(dim=1).cpu()
        found = open_namings(rule, said.view(-1, data.group_size), answers)
        return {} if found is None else {"namings_open": float(found)}


def open_namings(rule: Constraint, groups: Tensor, answers: Tensor | None = None) -> int | None:
    """Other one-to-one namings that fit groups of value numbers, (groups, variables), as well; None: not known.

    Groups that break the rule were misread and do not count, nor do the combinations that are read least often: those
    that are left cover nine tenths of the groups.

    Args:
        rule: what is known.
        groups: as a network reads them.
        answers: what was observed of each, as the rule numbers it, -1 where nothing was.

    Example:
        >>> from gedi.logic import Constraint
        >>> total = Constraint.from_function(lambda a, b: a + b, [range(3)] * 2)
        >>> pairs = torch.tensor([[0, 2], [1, 1], [2, 0]]).repeat(20, 1)       # 0 and 2 never meet another sum
        >>> open_namings(total, pairs, total.numbered([2] * 60))
        1
    """
    domains = rule.domains
    named = [tuple(domain[k] for domain, k in zip(domains, row, strict=True)) for row in groups.tolist()]
    try:
        if answers is None:
            fits = rule.is_satisfied(named)
        else:
            log_p = torch.full((len(groups), len(domains), max(rule.sizes)), -torch.inf, dtype=torch.float64)
            log_p.scatter_(2, groups[..., None], 0.0)
            fits = rule.log_prob(log_p, normalised=False, answers=answers) > -1e-9
        read, counts = torch.unique(groups[fits], dim=0, return_counts=True)
        if len(read) == 0:
            return None
        order = counts.argsort(descending=True, stable=True)
        before = counts[order].cumsum(0) - counts[order]
        often = read[order[before < _COVERED * counts.sum()]]
        rows = [tuple(domain[k] for domain, k in zip(domains, row, strict=True)) for row in often.tolist()]
        found = rule.shortcuts(data=rows)
    except UserError:  # too large to search, or with probabilities of its own
        return None
    return len(found.swaps) if found.exact else None
