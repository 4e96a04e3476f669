"""Rules written in Python: listed while small, read variable by variable beyond."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gedi.errors import UserError
from gedi.logic.diagram import Budget, Diagram, from_automaton
from gedi.logic.expression import Expression, State, Variable

ENUMERATED = 2_000_000  # assignments asked one by one, whole columns at a time
CALLED = 200_000  # assignments asked one call each, for rules that cannot take columns


def satisfying(rule: Callable[..., Any], domains: Sequence[Sequence[Any]]) -> np.ndarray | None:
    """The assignments a rule allows as value numbers, (solutions, variables); None if there are too many to ask."""
    sizes = [len(domain) for domain in domains]
    total = math.prod(sizes)
    if total > ENUMERATED:
        return None
    grid = np.indices(sizes, dtype=np.int32).reshape(len(sizes), -1)
    holds = _by_columns(rule, domains, grid)
    if holds is None:
        if total > CALLED:
            return None
        holds = np.fromiter((_ask(rule, row) for row in itertools.product(*domains)), dtype=bool, count=total)
    return grid[:, holds].T


def diagram_of(rule: Callable[..., Any], domains: Sequence[Sequence[Any]], budget: Budget) -> Diagram:
    """The rule as a decision diagram, from one call with expressions in place of values."""
    expression = rule(*(Variable(i, ("variable", i)) for i in range(len(domains))))
    if not isinstance(expression, Expression):
        raise UserError(
            f"a rule over {len(domains)} variables must be an expression of them, got {expression!r} for every "
            f"assignment; build it from & | ~ and comparisons, or use Constraint.from_automaton"
        )

    def step(state: tuple[int, State], value: Any) -> tuple[int, State] | None:
        position, rest = state
        rule = rest.rule.given(position, value) if isinstance(rest.rule, Expression) else rest.rule
        if not isinstance(rule, Expression) and not rule:
            return None
        return position + 1, State(rule)

    return from_automaton((0, State(expression)), step, lambda state: bool(state[1].rule), domains, budget)


def _by_columns(rule: Callable[..., Any], domains: Sequence[Sequence[Any]], grid: np.ndarray) -> np.ndarray | None:
    """The answers for all assignments at once, or None if the rule cannot take columns or gets them wrong."""
    columns = [_array(domain)[row] for domain, row in zip(domains, grid, strict=True)]
    try:
        with np.errstate(all="ignore"):
            answers = np.asarray(rule(*columns))
    except Exception:  # any error means the same: ask one by one, where the rule's own error will show
        return None
    if answers.shape != grid.shape[1:] or answers.dtype not in (np.bool_, np.dtype(int), np.dtype(np.uint8)):
        return None
    holds = answers.astype(bool)
    sample = np.random.default_rng(0).choice(len(holds), min(len(holds), 64), replace=False)
    for i in sample:  # operators may mean something else on columns: trust, but check
        if _ask(rule, [domain[k] for domain, k in zip(domains, grid[:, i], strict=True)]) != holds[i]:
            return None
    return holds


def _ask(rule: Callable[..., Any], values: Sequence[Any]) -> bool:
    try:
        answer = rule(*values)
    except TypeError as error:
        raise UserError(f"the rule must take {len(values)} values, one for each variable: {error}") from None
    except ArithmeticError:
        return False  # 1 // 0 == 2 does not hold
    return bool(answer)


def _array(domain: Sequence[Any]) -> np.ndarray:
    column = np.asarray(domain)
    if column.ndim == 1 and column.dtype.kind in "biuf":
        return column
    column = np.empty(len(domain), dtype=object)
    column[:] = list(domain)
    return column
