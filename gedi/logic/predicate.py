"""Rules written in Python: listed while small, read variable by variable beyond."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from gedi.errors import UserError
from gedi.logic.arguments import said
from gedi.logic.diagram import Diagram, from_automaton
from gedi.logic.expression import Expression, State, Variable, defined, means_otherwise
from gedi.logic.forms import Form, form_of_diagram, form_of_table
from gedi.logic.limits import Budget, Limits

ENUMERATED = 2_000_000  # assignments asked one by one, whole columns at a time
CALLED = 200_000  # assignments asked one call each, for rules that cannot take columns
_BLOCK = 65_536  # assignments between two looks at the clock
_SAMPLE = 64  # assignments of a block that are asked one by one too


def compile_rule(rule: Callable[..., Any], domains: Sequence[Sequence[Any]], budget: Budget) -> Form:
    """The form of a rule: of all that it allows while they can be asked, of its expression beyond."""
    try:
        found = satisfying(rule, domains, budget)
        if found is not None:
            return form_of_table(found, [len(domain) for domain in domains])
        return form_of_diagram(diagram_of(rule, domains, budget), budget)
    except UserError:
        raise
    except Exception as error:  # the rule's own: its traceback stays with it
        raise UserError(f"the rule must say True or False of plain values, but failed: {said(error)}") from error


def satisfying(
    rule: Callable[..., Any], domains: Sequence[Sequence[Any]], budget: Budget | None = None
) -> np.ndarray | None:
    """The assignments a rule allows as value numbers, (solutions, variables); None if there are too many to ask."""
    budget = budget or Budget(Limits(), "split the rule")
    sizes = [len(domain) for domain in domains]
    total = product(sizes, ENUMERATED)
    if total > ENUMERATED:
        return None
    budget.check_memory(total * len(sizes))
    if _must_be_read(rule, len(domains)):
        if total > CALLED:
            return None
        diagram = diagram_of(rule, domains, budget)
        found = [rows[diagram.accepts(rows)] for rows in assignments(sizes, total)]
        return np.concatenate(found)
    holds: Iterable[np.ndarray] | None = _by_columns(rule, domains, total, budget)
    if holds is None:
        if total > CALLED:
            return None
        holds = _one_by_one(rule, domains, total, budget)
    return np.concatenate([rows[answers] for rows, answers in zip(assignments(sizes, total), holds, strict=True)])


def product(sizes: Sequence[int], enough: int) -> int:
    """The number of assignments; once there are more than enough, how many more does not matter."""
    total = 1
    for size in sizes:
        total *= size
        if total > enough:
            break
    return total


def assignments(sizes: Sequence[int], total: int) -> Iterator[np.ndarray]:
    """All assignments in order, the last variable fastest, as value numbers: (block, variables) at a time."""
    stride = [1] * len(sizes)
    for i in range(len(sizes) - 1, 0, -1):
        stride[i - 1] = stride[i] * sizes[i]
    for start in range(0, total, _BLOCK):
        number = np.arange(start, min(start + _BLOCK, total))
        yield np.stack([(number // s % size).astype(np.int32) for s, size in zip(stride, sizes, strict=True)], axis=1)


def diagram_of(rule: Callable[..., Any], domains: Sequence[Sequence[Any]], budget: Budget) -> Diagram:
    """The rule as a decision diagram, from one call with expressions in place of values."""
    expression = read(rule, len(domains))
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


def read(rule: Callable[..., Any], n: int) -> Any:
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
        return means_otherwise(read(rule, n))
    except Exception:  # a rule that cannot be read this way is plain Python
        return False


def _by_columns(
    rule: Callable[..., Any], domains: Sequence[Sequence[Any]], total: int, budget: Budget
) -> list[np.ndarray] | None:
    """The answers for whole blocks at once, or None if the rule cannot take columns or gets them wrong."""
    values = [array_of(domain) for domain in domains]
    generator = np.random.default_rng(0)
    holds = []
    for rows in assignments([len(domain) for domain in domains], total):
        budget.check_time()
        try:
            answers = np.asarray(rule(*(column[row] for column, row in zip(values, rows.T, strict=True))))
        except Exception:  # any error means the same: ask one by one, where the rule's own error will show
            return None
        if answers.shape != (len(rows),) or answers.dtype != np.bool_:
            return None
        for i in generator.choice(len(rows), min(len(rows), _SAMPLE), replace=False):
            # operators may mean something else on columns: trust, but check
            if _ask(rule, [domain[k] for domain, k in zip(domains, rows[i], strict=True)]) != answers[i]:
                return None
        holds.append(answers)
    return holds


def _one_by_one(
    rule: Callable[..., Any], domains: Sequence[Sequence[Any]], total: int, budget: Budget
) -> Iterator[np.ndarray]:
    """The answers of a rule that is called once for each assignment, block by block."""
    for rows in assignments([len(domain) for domain in domains], total):
        answers = np.zeros(len(rows), dtype=bool)
        for i, row in enumerate(rows.tolist()):
            budget.check_time()
            answers[i] = _ask(rule, [domain[k] for domain, k in zip(domains, row, strict=True)])
        yield answers


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


def array_of(domain: Sequence[Any]) -> np.ndarray:
    """The values as Python has them: sums of truth values count, nothing overflows, 1 // 0 raises."""
    column = np.empty(len(domain), dtype=object)
    for k, value in enumerate(domain):
        column[k] = value
    return column
