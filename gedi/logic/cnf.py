"""Clauses over Booleans or over the values of variables, and their circuit."""

import functools
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gedi.errors import UserError
from gedi.logic.arguments import Domain, checked_domains, shown, whole
from gedi.logic.child import bounded
from gedi.logic.circuit import Circuit
from gedi.logic.dimacs import LITERALS, UNWATCHED, Clauses, check_length, parse_dimacs, text_of
from gedi.logic.limits import Budget, Limits
from gedi.logic.order import arranged
from gedi.logic.sdd import Space

_SMALL = 24  # this number of Booleans has no large diagram: no child process is needed


def read_cnf(
    source: str | Path | Iterable[Iterable[int]], variables: int | Sequence[int | Domain] | None, budget: Budget
) -> tuple[Clauses, Sequence[Domain], bool]:
    """Clauses, the values of each variable, and whether these are Booleans.

    Example:
        >>> read_cnf([[1, -2]], None, Budget(Limits(), "use fewer clauses"))
        ([(1, -2)], [[False, True], [False, True]], True)
    """
    if not isinstance(source, str | Path | Iterable) or isinstance(source, bytes):
        raise UserError(f"clauses must be a list, DIMACS text or a DIMACS file, got {shown(source)}")
    clauses, highest = read_clauses(source, budget)
    domains, booleans = domains_of(variables, highest, budget)
    return clauses, domains, booleans


def domains_of(
    variables: int | Sequence[int | Domain] | None, highest: int, budget: Budget
) -> tuple[Sequence[Domain], bool]:
    """The values of each variable that literals up to ``highest`` speak of, and whether these are Booleans."""
    if not (variables is None or whole(variables) or isinstance(variables, list | tuple)):
        raise UserError(f"variables must be a number, or a list of domains or of their sizes, got {shown(variables)}")
    if isinstance(variables, Sequence):
        domains = checked_domains([range(v) if isinstance(v, int) else v for v in variables])
        room = sum(len(domain) for domain in domains)
    else:
        room = highest if variables is None else variables
        if room < 1:
            raise UserError("a constraint needs at least one variable, got none")
        budget.check(2 * room)  # a diagram has a node for every value, at the least
        domains = [[False, True]] * room
    budget.check(room)
    if highest > room:
        raise UserError(f"literals go up to {highest}, but variables declares {room}; declare them all")
    return domains, not isinstance(variables, Sequence)


def read_clauses(source: str | Path | Iterable[Iterable[int]], budget: Budget | None = None) -> tuple[Clauses, int]:
    """Clauses and the number of Booleans they are over.

    Example:
        >>> read_clauses([[1, -2], [2]])
        ([(1, -2), (2,)], 2)
    """
    budget = budget or Budget(Limits(), "use fewer clauses")
    if isinstance(source, str | Path):
        if isinstance(source, str) and ("\n" in source or source.lstrip().startswith(("p ", "c "))):
            return parse_dimacs(source, "the DIMACS text", budget)
        return parse_dimacs(text_of(Path(source)), Path(source).name, budget)
    if not isinstance(source, Iterable):
        raise UserError(f"clauses must be a list, DIMACS text or a DIMACS file, got {source!r}")
    clauses, literals = [], 0
    for number, clause in enumerate(source, start=1):
        listed = None if not isinstance(clause, Iterable) else tuple(itertools.islice(clause, LITERALS + 1))
        if listed is None or not all(isinstance(x, int) and not isinstance(x, bool) and x for x in listed):
            raise UserError(f"clause {number} must be whole numbers other than 0, got {clause!r}")
        literals += len(listed) + 1
        check_length(literals, number, budget)
        clauses.append(listed)
    return clauses, max((abs(x) for clause in clauses for x in clause), default=0)


def compile_clauses(
    clauses: Clauses, domains: Sequence[Sequence[Any]], booleans: bool, budget: Budget
) -> tuple[Circuit | None, bool]:
    """The circuit of a conjunction, or None with whether everything (True) or nothing (False) satisfies it.

    With ``booleans`` literal i is "variable i is true"; otherwise the literals number the values of all
    variables one after another.
    """
    compute = functools.partial(_compile_clauses, clauses, domains, booleans, budget)
    small = sum(len(domain) for domain in domains) <= _SMALL and len(clauses) <= UNWATCHED
    return compute() if small else bounded(compute, budget)


def _compile_clauses(
    clauses: Clauses, domains: Sequence[Sequence[Any]], booleans: bool, budget: Budget
) -> tuple[Circuit | None, bool]:
    sizes = [len(domain) for domain in domains]
    place = [(variable, k) for variable, size in enumerate(sizes) for k in range(size)]

    def spot(x: int) -> tuple[int, int]:
        return (abs(x) - 1, 1) if booleans else place[abs(x) - 1]

    order = arranged([[spot(x)[0] for x in clause] for clause in clauses], len(sizes))
    rank = {variable: i for i, variable in enumerate(order)}
    space = Space([sizes[variable] for variable in order], budget)

    def literal(x: int) -> Any:
        variable, k = spot(x)
        return space.literal(rank[variable], k, x > 0)

    # neighbours first: clauses over the same variables meet early, while the diagrams are small
    ordered = sorted(clauses, key=lambda clause: sorted((rank[spot(x)[0]], spot(x)[1]) for x in clause))
    formula = space.among_existing(space.any(literal(x) for x in clause) for clause in ordered)
    if space.is_false(formula) or space.is_true(formula):
        return None, space.is_true(formula)
    return space.circuit([formula]).moved(sizes, order), False
