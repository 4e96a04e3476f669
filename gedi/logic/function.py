"""A function of the values of variables: what it gives is observed, and each answer is a query of one circuit."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gedi.errors import UserError
from gedi.logic.arguments import said, shown
from gedi.logic.circuit import Builder, Circuit
from gedi.logic.diagram import Level, explored, reduced
from gedi.logic.expression import Expression, State, given
from gedi.logic.limits import Budget
from gedi.logic.predicate import CALLED, array_of, assignments, product, read

_ANSWERS = 100_000  # different ones


def compile_function(
    function: Callable[..., Any], domains: Sequence[Sequence[Any]], budget: Budget
) -> tuple[list[Any], Circuit]:
    """The answers a function gives, smallest first, and a circuit with a root for each.

    Assignments that leave the same to be decided are one node, and every answer is summed over the ways that lead to
    it, from the first variable on: what several answers have in common is computed once.
    """
    levels, ends, answers = _levels(function, domains, budget)
    levels, kept = reduced(levels, ends, budget)
    found = [answers[int(end)] for end in kept]
    if len(found) < 2:
        raise UserError(f"a function must give different answers, got {shown(found[0]) if found else 'none'} always")
    order = _order(found)
    roots = _forward(levels, [len(domain) for domain in domains], budget)
    circuit = roots[1].circuit([roots[0][i] for i in order])
    return [found[i] for i in order], circuit


def _levels(
    function: Callable[..., Any], domains: Sequence[Sequence[Any]], budget: Budget
) -> tuple[list[Level], np.ndarray, list[Any]]:
    """A tree of all assignments where they can be asked one by one, else the states of the function's expression."""
    sizes = [len(domain) for domain in domains]
    total = product(sizes, CALLED)
    number: dict[Any, int] = {}
    if total <= CALLED:
        ends = np.concatenate(list(_asked(function, domains, total, number, budget)))
        shape, levels = 1, []
        for size in sizes:
            levels.append(np.arange(shape * size).reshape(shape, size))
            shape *= size
        return levels, ends, list(number)

    def step(state: tuple[int, State], value: Any) -> tuple[int, State] | None:
        position, rest = state
        try:
            return position + 1, State(given(rest.rule, position, value))
        except ArithmeticError:
            return None

    raw, states = explored((0, State(read(function, len(domains)))), step, domains, budget)
    values = [state[1].rule for state in states]
    return raw, np.array([_numbered(value, number) for value in values], dtype=np.int64), list(number)


def _asked(
    function: Callable[..., Any], domains: Sequence[Sequence[Any]], total: int, number: dict[Any, int], budget: Budget
) -> Iterator[np.ndarray]:
    """The number of each assignment's answer, -1 where there is none, block by block."""
    columns = [array_of(domain) for domain in domains]
    for rows in assignments([len(domain) for domain in domains], total):
        budget.check_time()
        ends = np.empty(len(rows), dtype=np.int64)
        taken = [column[row] for column, row in zip(columns, rows.T, strict=True)]
        for i, values in enumerate(zip(*taken, strict=True)):
            ends[i] = _numbered(_call(function, values), number)
        yield ends


def _call(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    try:
        return function(*values)
    except ArithmeticError:
        return None  # 1 // 0 is no answer
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"the function must take {len(values)} values, one for each variable, and give an answer, but failed at "
            f"{shown(tuple(values))}: {said(error)}"
        ) from error


def _numbered(answer: Any, number: dict[Any, int]) -> int:
    if answer is None:
        return -1
    if isinstance(answer, Expression):
        raise UserError("the function must give an answer once every value is known, but something stays open")
    try:
        found = number.setdefault(answer, len(number))
    except TypeError:
        raise UserError(f"answers must be values that can be told apart (not lists), got {shown(answer)}") from None
    if len(number) > _ANSWERS:
        raise UserError(f"a function must have at most {_ANSWERS:,} different answers, got more; make them coarser")
    return found


def _order(answers: Sequence[Any]) -> list[int]:
    """Smallest first where they can be compared, else as they are met."""
    try:
        return sorted(range(len(answers)), key=lambda i: answers[i])
    except TypeError:
        return list(range(len(answers)))


def _forward(levels: Sequence[Level], sizes: Sequence[int], budget: Budget) -> tuple[list[int], Builder]:
    """The sum over all ways to each end, and the builder that holds it."""
    builder = Builder(sum(sizes))
    ways: list[int | None] = [None]  # nothing to multiply by before the first variable
    first = 0
    for level, size in zip(levels, sizes, strict=True):
        parts: dict[int, list[int]] = {}
        for node, row in enumerate(level):
            edges: dict[int, list[int]] = {}
            for value, target in enumerate(row):
                if target >= 0:
                    edges.setdefault(int(target), []).append(first + value)
            before = ways[node]
            for target, values in edges.items():
                chosen = builder.any(values)
                parts.setdefault(target, []).append(chosen if before is None else builder.all([before, chosen]))
        budget.check(len(builder.parts))
        ways = [builder.any(parts[target]) for target in range(len(parts))]
        first += size
    return [way for way in ways if way is not None], builder
