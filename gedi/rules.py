"""The constraint that a config names."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gedi.config import ConstraintConfig
from gedi.data.rsbench import differences, parity
from gedi.errors import UserError
from gedi.logic import Constraint, Labels, Shortcuts, all_different, sorted_, sums_to


def build_constraint(settings: ConstraintConfig, symbols: int) -> Constraint | None:
    """The constraint over groups of ``symbols`` symbols each, or None."""
    domain = range(symbols)
    if settings.rule is None:
        return None
    if settings.rule == "addition":
        return sums_to(2, domain)
    if settings.rule == "sum":
        return sum_of_numbers(settings.variables, symbols)
    if settings.rule in ("differences", "parity"):
        function = differences if settings.rule == "differences" else parity
        return Constraint.from_function(function, [domain] * settings.variables)
    if settings.rule == "all-different":
        return all_different(settings.variables, domain)
    if settings.rule == "sorted":
        return sorted_(settings.variables, domain)
    if settings.path is None:
        raise UserError(f"constraint.rule={settings.rule} needs constraint.path, the file to read")
    if not Path(settings.path).is_file():
        raise UserError(f"constraint.path must name a file, but {settings.path!r} is not there")
    if settings.rule == "cnf":
        return Constraint.from_cnf(Path(settings.path), variables=[symbols] * settings.variables)
    return Constraint.from_problog(Path(settings.path), settings.query)  # a stranger's: it loads nothing


def sum_of_numbers(variables: int, symbols: int) -> Constraint:
    """Two numbers of ``variables / 2`` digits each, in base ``symbols``; their sum is the answer.

    Example:
        >>> sum_of_numbers(4, 10).numbered([0, 57, 198]).tolist()
        [0, 57, 198]
    """
    if variables % 2:
        raise UserError(
            f"constraint.rule=sum needs two numbers of as many digits, got {variables} constraint.variables"
        )
    half = variables // 2

    def total(*digits: Any) -> Any:
        return sum(digit * symbols ** (half - 1 - i % half) for i, digit in enumerate(digits))

    return Constraint.from_function(total, [range(symbols)] * variables)


def check_constraint(
    constraint: Constraint, symbols: int, group_size: int, groups: int, answered: bool = False
) -> None:
    """A constraint must be one, and speak of groups as they come and of the symbols there are."""
    if not isinstance(constraint, Constraint):
        raise UserError(f"constraint must be a gedi.logic.Constraint, got {type(constraint).__name__}")
    if constraint.queries is not None and not answered:
        raise UserError(
            f"training needs one query: choose one as constraint[{constraint.queries[0]!r}] (constraint.query), or "
            f"give the observed one of each group (fit(..., answers=...), Dataset.answers, data.answer)"
        )
    if constraint.queries is None and answered:
        raise UserError("answers say which of several queries is observed, but the constraint has one; leave them out")
    if len(constraint.domains) != group_size:
        raise UserError(
            f"a constraint over {len(constraint.domains)} variables needs groups of as many points, got groups of "
            f"{group_size}; see data.group_size"
        )
    if groups == 0:
        raise UserError(f"a constraint needs training points in groups of {group_size}, got 0 groups")
    if set(constraint.sizes) != {symbols}:
        raise UserError(
            f"every variable of the constraint must have the {symbols} symbols that the network tells apart, "
            f"got {constraint.sizes} values; see model.clusters"
        )


def left_open(
    constraint: Constraint, answers: Tensor | None, occurring: Sequence[tuple[Any, ...]] | None = None
) -> Shortcuts | None:
    """The namings that a rule cannot tell apart; None where they cannot be searched.

    Args:
        constraint: the rule.
        answers: what was observed of each group, as the rule numbers it; those that occur count.
        occurring: which groups occur, where that is known: then they count, and no others.
    """
    try:
        if occurring is not None:
            return constraint.shortcuts(data=occurring)
        return constraint.shortcuts(answers=_that_occur(constraint, answers))
    except UserError:  # too large to search, or with probabilities of its own
        return None


def foretold(found: Shortcuts, basis: str = "", few: Mapping[int, int] | None = None) -> tuple[str, ...]:
    """What can be said before training of whether a rule can name the symbols, and what would help it; in words.

    Args:
        found: what the rule leaves open.
        basis: by which groups that is told; empty: by all that satisfy the rule.
        few: how many images of which symbol have a label.

    Example:
        >>> from gedi.logic import all_different
        >>> foretold(all_different(2, range(2)).shortcuts())[-1]
        'the rule: a label for 0 would help most, which leaves no other naming'
    """
    lines = str(found).splitlines()
    said = [lines[0] + (f", by {basis}" if basis else ""), lines[-1]]
    if found.swaps or found.collapses:
        listed = "" if len(found.maps) == found.count else " of those listed"
        said.append(f"{len(found.swaps)}{listed} exchange names, {len(found.collapses)} merge symbols")
    if found.swaps:
        advice = _advice(found)
        left = f"leaves {_others(advice.swaps)}{listed}"
        said.append(f"a label for {_listed(advice.symbols)} would help most, which {left}")
    if few:
        said.append(f"labels are used: {_listed(few.values())} images of {_listed(found.symbols[k] for k in few)}")
    return tuple(f"the rule: {line}" for line in said)


def _advice(found: Shortcuts) -> Labels:
    """As few symbols as leave no other naming, or three."""
    return next((x for k in (1, 2) if (x := found.label_these(k)).swaps == 0), found.label_these(3))


def _others(n: int) -> str:
    return "no other naming" if n == 0 else f"{n} other naming{'s' * (n > 1)}"


def _listed(things: Iterable[Any]) -> str:
    return " and ".join(map(str, things))


def _that_occur(constraint: Constraint, answers: Tensor | None) -> list[Any] | None:
    if answers is None or constraint.answers is None:
        return None
    occurs = (answers > 0).any(dim=0).nonzero()[:, 0] if answers.dim() == 2 else torch.unique(answers[answers >= 0])
    return [constraint.answers[int(k)] for k in occurs]
