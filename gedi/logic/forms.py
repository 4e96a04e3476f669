"""The circuit of what was compiled: a plain sum over its solutions while they are few, the diagram's beyond."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from gedi.errors import UserError
from gedi.logic import cache
from gedi.logic.circuit import Circuit, from_table
from gedi.logic.diagram import Diagram, from_solutions
from gedi.logic.limits import Budget

Form = tuple[Circuit, Diagram | None]  # what is evaluated, and the diagram it was made of
LISTED = 4096  # a constraint with at most this many solutions is a plain sum over them: faster than a diagram


def form_of_table(assignments: np.ndarray, sizes: Sequence[int]) -> Form:
    """The form of listed assignments, (solutions, variables)."""
    if len(assignments) in (0, math.prod(sizes)):
        raise says_nothing(len(assignments) > 0)
    if len(assignments) <= LISTED:
        return from_table(assignments, sizes), None
    return form_of_diagram(from_solutions(assignments, sizes))


def form_of_diagram(diagram: Diagram, budget: Budget | None = None) -> Form:
    """The form of a decision diagram."""
    if diagram.is_false or diagram.is_true:
        raise says_nothing(diagram.is_true)
    return listed_if_few(diagram.circuit(budget), diagram.sizes), diagram


def listed_if_few(circuit: Circuit, sizes: Sequence[int]) -> Circuit:
    """A plain sum over the solutions where it is not much larger: it has two levels where a circuit has many."""
    if len(sizes) > LISTED:  # counting is exact, in numbers of as many digits as there are variables
        return circuit
    solutions = circuit.counts[int(circuit.roots[0])]
    if solutions > LISTED or solutions * (len(sizes) + 1) > 2 * circuit.edges:
        return circuit
    return from_table(circuit.solutions(sizes), sizes)


def compiled_once(key: str, columns: int, compute: Callable[[], tuple[Circuit | None, bool]]) -> Circuit:
    """The circuit that was stored under a key, or a computed one, which is then stored.

    Args:
        key: names everything that the circuit depends on.
        columns: how many leaves it must have.
        compute: gives the circuit, or None with whether everything (True) or nothing (False) satisfies it.
    """
    stored = cache.load(key, columns=columns)
    if stored is not None:
        return stored[0]
    circuit, everything = compute()
    if circuit is None:
        raise says_nothing(everything)
    cache.store(key, circuit, {})
    return circuit


def says_nothing(everything: bool) -> UserError:
    """What to say of a constraint that every assignment satisfies, or none."""
    if everything:
        return UserError("every assignment satisfies the constraint: it says nothing; check its domains and the rule")
    return UserError("no assignment satisfies the constraint: check its domains and the rule")
