"""Rules written in Python: listed while small, read variable by variable beyond."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gedi.errors import UserError
from gedi.logic.diagram import Budget, Diagram, Limits, from_automaton
from gedi.logic.expression import Expression, State, Variable, defined, means_otherwise

ENUMERATED = 2_000_000  # assignments asked one by one, whole columns at a time
CALLED = 200_000  # assignments asked one call each, for rules that cannot take columns


def satisfying(rule: Callable[..., Any], domains: Sequence[Sequence[Any]]) -> np.ndarray | None:
    """The assignments a rule allows as value numbers, (solutions, variables); None if there are too many to ask."""
    sizes = [len(domain) for domain in domains]
    total = math.prod(sizes)
    if total > ENUMERATED:
        return None
    grid = np.indices(sizes, dtype=np.int32).reshape(len(sizes), -1)
    if _must_be_read(rule, len(domains)):
        if total > CALLED:
            return None
        unlimited = Budget(Limits(math.inf, total * len(domains)), "")
        return grid[:, diagram_of(rule, domains, unlimited).accepts(grid.T)].T
    holds = _by_columns(rule, domains, grid)
    if holds is None:
        if total > CALLED:
            return None
        holds = np.fromiter((_ask(rule, row) for row in itertools.product(*domains)), dtype=bool, count=total)
    return grid[:, holds].T


def diagram_of(rule: Callable[..., Any], domains: Sequence[Sequence[Any]], budget: Budget) -> Diagram:
    """The rule as a decision diagram, from one call with expressions in place of values."""
    expression = _read(rule, len(domains))
    if not isinstance(expression, Expression):
        raise UserError(
            f"a rule over {len(domains)} variables must be an expression of them, got {expression!r} for every "
            f"assignment; build it from & | ~ and comparisons, or use Constraint.from_automaton"
        )

    def step(state: tuple[int, State], value: Any) -> tuple[int, State] | None:
        position, rest = state
        try:
            rule = rest.rule.given(position, value) if isinstance(rest.rule, Expression) else rest.rule
        except ArithmeticError:
            return None  # as _ask
        except TypeError as error:
            raise UserError(f"the rule must be arithmetic of the values of its variables: {error}") from None
        if not isinstance(rule, Expression) and not rule:
            return None
        return position + 1, State(rule)

    return from_automaton((0, State(defined(expression))), step, lambda state: bool(state[1].rule), domains, budget)


def _read(rule: Callable[..., Any], n: int) -> Any:
    """What the rule does with n variables."""
    try:
        return rule(*(Variable(i, ("variable", i)) for i in range(n)))
    except (TypeError, AttributeError, ArithmeticError) as error:
        raise UserError(
            f"a rule over this many assignments is called once, with {n} expressions, which know + - * // % "
            f"comparisons & | ~ abs minimum maximum: {error}; rewrite it, or use Constraint.from_automaton"
        ) from None


def _must_be_read(rule: Callable[..., Any], n: int) -> bool:
    """Whether the rule can be read as an expression, and would be taken for another one if it were only called."""
    try:
        return means_otherwise(_read(rule, n))
    except Exception:  # a rule that cannot be read this way is plain Python
        return False


def _by_columns(rule: Callable[..., Any], domains: Sequence[Sequence[Any]], grid: np.ndarray) -> np.ndarray | None:
    """The answers for all assignments at once, or None if the rule cannot take columns or gets them wrong."""
    columns = [_array(domain)[row] for domain, row in zip(domains, grid, strict=True)]
    try:
        answers = np.asarray(rule(*columns))
    except Exception:  # any error means the same: ask one by one, where the rule's own error will show
        return None
    if answers.shape != grid.shape[1:] or answers.dtype != np.bool_:
        return None
    sample = np.random.default_rng(0).choice(len(answers), min(len(answers), 64), replace=False)
    for i in sample:  # operators may mean something else on columns: trust, but check
        if _ask(rule, [domain[k] for domain, k in zip(domains, grid[:, i], strict=True)]) != answers[i]:
            return None
    return answers


def _ask(rule: Callable[..., Any], values: Sequence[Any]) -> bool:
    try:
        answer = rule(*values)
    except TypeError as error:
        raise UserError(f"the rule must take {len(values)} values, one for each variable: {error}") from None
    except ArithmeticError:
        return False  # 1 // 0 == 2 does not hold
    if isinstance(answer, int | np.integer) and answer not in (0, 1):
        raise UserError(
            f"a rule must say True or False, got {answer} for {tuple(values)!r}; compare numbers with something, and "
            f"write not for ~"
        )
    return bool(answer)


def _array(domain: Sequence[Any]) -> np.ndarray:
    """The values as Python has them: sums of truth values count, nothing overflows, 1 // 0 raises."""
    column = np.empty(len(domain), dtype=object)
    for k, value in enumerate(domain):
        column[k] = value
    return column
