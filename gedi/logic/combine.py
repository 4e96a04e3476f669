"""Constraints made of others: both, either, not, and laid on more variables.

Decision diagrams are combined directly; what has none is combined by PySDD, and its circuit is stored.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gedi.errors import UserError
from gedi.logic import cache
from gedi.logic.arguments import Domain, items, shown, whole
from gedi.logic.child import bounded
from gedi.logic.circuit import Circuit
from gedi.logic.compiled import DIAGRAM_FROM, Compiled
from gedi.logic.diagram import Diagram, from_solutions
from gedi.logic.forms import Form, compiled_once, form_of_diagram
from gedi.logic.limits import Budget, Limits
from gedi.logic.sdd import Space


def combined(a: Compiled, b: Compiled, both: bool, limits: Limits) -> Form:
    """What satisfies both, or either."""
    if not isinstance(b, Compiled):
        raise UserError(f"a constraint is combined with another constraint, got {shown(b)}")
    a.one_query("&" if both else "|")
    b.one_query("&" if both else "|")
    if a.domains != b.domains:
        raise UserError(
            f"constraints must be over the same variables to be combined, got {a!r} and {b!r}; lay them "
            f"on common variables with on(places, domains)"
        )
    method = "a.conjoin(b) is a & b" if both else "a.disjoin(b) is a | b"
    budget = Budget(limits, f"combine fewer constraints ({method} and takes limits)")
    if a._diagram is not None and b._diagram is not None:
        return form_of_diagram(a._diagram.product(b._diagram, both, budget))
    name = "and" if both else "or"
    return _by_sdd(name, [a, b], lambda space, nodes: (space.all if both else space.any)(nodes), budget), None


def opposite(c: Compiled, limits: Limits) -> Form:
    """What does not satisfy it."""
    c.one_query("~")
    if c._diagram is not None:
        return form_of_diagram(c._diagram.complement())
    budget = Budget(limits, "write the opposite rule (c.negate() is ~c and takes limits)")
    return _by_sdd("not", [c], lambda space, nodes: space.negation(nodes[0]), budget), None


def laid(c: Compiled, places: Sequence[int], domains: Sequence[Domain]) -> Form:
    """The same over more variables: its i-th variable is ``places[i]`` of them."""
    places = _checked_places(c, places, domains)
    diagram = c._diagram
    if diagram is None:
        raise UserError("only a constraint with a decision diagram can be laid on more variables")
    order = np.argsort(places)
    if (order != np.arange(len(places))).any():
        # a diagram reads its variables in order, so they are put in the order of their places first
        diagram = from_solutions(c._assignments(DIAGRAM_FROM)[:, order], [c.sizes[i] for i in order])
    levels, read = [], 0
    for variable, domain in enumerate(domains):
        if variable in places:
            levels.append(diagram.levels[read])
            read += 1
        else:  # any value passes, the state stays
            width = len(diagram.levels[read]) if read < len(diagram.levels) else 1
            levels.append(np.repeat(np.arange(width)[:, None], len(domain), axis=1))
    return form_of_diagram(Diagram(tuple(levels)))


def _checked_places(c: Compiled, places: Sequence[int], domains: Sequence[Domain]) -> list[int]:
    places = items(places, "places must be a list of whole numbers")
    if not all(map(whole, places)):
        raise UserError(f"places must be a list of whole numbers, got {shown(places)}")
    if len(places) != len(c.domains) or len(set(places)) != len(places):
        raise UserError(f"on must name {len(c.domains)} different places, got {shown(places)}")
    if not all(0 <= place < len(domains) for place in places):
        raise UserError(f"places must be between 0 and {len(domains) - 1}, got {shown(places)}")
    for i, place in enumerate(places):
        if tuple(domains[place]) != c.domains[i]:
            raise UserError(f"variable {i} must keep its domain at place {place}")
    return places


def _by_sdd(name: str, parts: Sequence[Compiled], make: Callable[[Space, list[Any]], Any], budget: Budget) -> Circuit:
    """The circuit of what ``make`` makes of the parts, by PySDD."""
    if any(part._fixed or part._conditional for part in parts):
        raise UserError("constraints with plain probabilities or evidence are combined in their program")
    sizes = parts[0].sizes

    def compute() -> tuple[Circuit | None, bool]:
        space = Space(sizes, budget)
        formula = space.compiled(make(space, [space.embed(part.circuit) for part in parts]))
        if space.is_false(formula) or space.is_true(formula):
            return None, space.is_true(formula)
        return space.circuit([formula]), False

    key = cache.key_of(name, [cache.fingerprint(part.circuit) for part in parts], sizes)
    return compiled_once(key, sum(sizes), lambda: bounded(compute, budget))
