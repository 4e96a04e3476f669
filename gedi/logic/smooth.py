"""A formula that others compiled becomes a circuit: as it is where one can see that it may, else compiled anew."""

from collections.abc import Sequence

from gedi.logic.child import bounded
from gedi.logic.circuit import Builder, Circuit
from gedi.logic.limits import Budget
from gedi.logic.nnf import Formula
from gedi.logic.sdd import Space

_UNWATCHED = 1000  # nodes between two looks at the clock


def circuit_of(formula: Formula, sizes: Sequence[int], booleans: bool, budget: Budget) -> tuple[Circuit | None, bool]:
    """The circuit of a formula, or None with whether everything (True) or nothing (False) satisfies it.

    Taken as it is, only made smooth, if the children of every ``and`` speak of different variables and any two children
    of an ``or`` contradict each other in a literal. Both are looked at: a file that breaks them would count assignments
    twice. Everything else is compiled anew, within the budget.

    Args:
        formula: in negation normal form.
        sizes: the number of values of each variable.
        booleans: literal i is "variable i is true"; otherwise literals number the values of all variables.
        budget: how much it may take.
    """
    if booleans and _is_deterministic(formula, budget):
        return _smoothed(formula, len(sizes), budget)
    return bounded(lambda: _compiled(formula, sizes, booleans, budget), budget)


def _is_deterministic(formula: Formula, budget: Budget) -> bool:
    """Whether products are of different variables and the terms of a sum exclude one another, as far as one can see."""
    scope: list[int] = []  # sets of variables, as the bits of numbers
    always: list[int] = []  # literals that hold wherever the node does, the true ones
    never: list[int] = []  # and the false ones
    for i, node in enumerate(formula.nodes):
        if i % _UNWATCHED == 0:
            budget.check_time()
        if isinstance(node, int):
            bit = 1 << abs(node)
            scope.append(bit)
            always.append(bit if node > 0 else 0)
            never.append(0 if node > 0 else bit)
            continue
        every, children = node
        union, true, false = 0, 0 if every else -1, 0 if every else -1
        for c in children:
            if every and union & scope[c]:
                return False
            union |= scope[c]
            true, false = (true | always[c], false | never[c]) if every else (true & always[c], false & never[c])
        if not every:
            for j, a in enumerate(children):
                for b in children[:j]:
                    if not (always[a] & never[b] | never[a] & always[b]):
                        return False
        scope.append(union)
        always.append(true if children or every else 0)
        never.append(false if children or every else 0)
    return True


def _smoothed(formula: Formula, n: int, budget: Budget) -> tuple[Circuit | None, bool]:
    """The same formula, where every term of a sum speaks of the same variables."""
    builder = Builder(2 * n)
    made: list[int | None] = []  # the node; None has weight 1, or 0 where it cannot be
    possible: list[bool] = []
    scope: list[int] = []

    def joined(node: int | None, missing: int) -> int | None:
        """A node together with variables that may have any value."""
        free = [builder.any([2 * v, 2 * v + 1]) for v in range(n) if missing >> v & 1]
        parts = [*free, *([] if node is None else [node])]
        return builder.all(parts) if parts else None

    for i, node in enumerate(formula.nodes):
        if i % _UNWATCHED == 0:
            budget.check(len(builder.parts))
        if isinstance(node, int):
            made.append(2 * (abs(node) - 1) + (node > 0))
            possible.append(True)
            scope.append(1 << (abs(node) - 1))
            continue
        every, children = node
        alive = [c for c in children if possible[c]]
        union = 0
        for c in alive:
            union |= scope[c]
        scope.append(union)
        possible.append(len(alive) == len(children) if every else bool(alive))
        if not possible[-1]:
            made.append(None)
        elif every:
            parts = [part for c in alive if (part := made[c]) is not None]
            made.append(builder.all(parts) if parts else None)
        else:
            terms = [joined(made[c], union & ~scope[c]) for c in alive]
            made.append(builder.any([t for t in terms if t is not None]) if union else None)
    if not possible[-1]:
        return None, False
    root = joined(made[-1], ((1 << n) - 1) & ~scope[-1])
    assert root is not None
    circuit = builder.circuit([root])
    if n <= _UNWATCHED and circuit.counts[int(circuit.roots[0])] == 2**n:
        return None, True
    return circuit, False


def _compiled(formula: Formula, sizes: Sequence[int], booleans: bool, budget: Budget) -> tuple[Circuit | None, bool]:
    """The formula by PySDD, variables in the order in which the file meets them."""
    place = [(variable, k) for variable, size in enumerate(sizes) for k in range(size)]

    def spot(x: int) -> tuple[int, int]:
        return (abs(x) - 1, 1) if booleans else place[abs(x) - 1]

    met = dict.fromkeys(spot(node)[0] for node in formula.nodes if isinstance(node, int))
    order = [*met, *(v for v in range(len(sizes)) if v not in met)]
    rank = {variable: i for i, variable in enumerate(order)}
    space = Space([sizes[variable] for variable in order], budget)
    nodes = []
    for node in formula.nodes:
        if isinstance(node, int):
            variable, k = spot(node)
            value = space.value(rank[variable], k)
            nodes.append(value if node > 0 else space.negation(value))
        else:
            every, children = node
            nodes.append((space.all if every else space.any)(nodes[c] for c in children))
    result = space.compiled(nodes[-1])
    if space.is_false(result) or space.is_true(result):
        return None, space.is_true(result)
    return space.circuit([result]).moved(sizes, order), False
