"""A ground formula, whose rules may depend on one another, as diagrams."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from gedi.errors import UserError
from gedi.logic.sdd import Space


def children(formula: Any, node: int) -> list[int]:
    """The nodes below a node, without their signs; true and false have none."""
    content = formula.get_node(node)
    return [] if type(content).__name__ == "atom" else [abs(c) for c in content.children if c]


def components(formula: Any, roots: Iterable[int | None]) -> Iterator[list[int]]:
    """The strongly connected components below the roots, children first (Tarjan 1972, without recursion)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    for root in roots:
        if not root or abs(root) in number:
            continue
        work = [(abs(root), iter(children(formula, abs(root))))]
        while work:
            node, below = work[-1]
            if node not in number:
                number[node] = low[node] = len(number)
                path.append(node)
                on_path.add(node)
            child = next((c for c in below if c not in number or c in on_path), None)
            if child is None:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == number[node]:
                    component = path[path.index(node) :] if path[-1] != node else [node]
                    del path[-len(component) :]
                    on_path -= set(component)
                    yield component
            elif child in number:
                low[node] = min(low[node], number[child])
            else:
                work.append((child, iter(children(formula, child))))


def diagrams(
    formula: Any, components: Sequence[Sequence[int]], leaf: dict[int, Any], space: Space
) -> Callable[[int | None], Any]:
    """The diagram of every node.

    Rules that depend on one another start as false and are evaluated until nothing changes (the T_P operator
    of Vlasselaer et al., 2015): diagrams are canonical, so that can be seen, and no cycle needs unfolding.
    """
    known = dict(leaf)

    def of(node: int | None) -> Any:
        if not node:
            return space.false if node is None else space.true
        return known[node] if node > 0 else space.negation(known[-node])

    def evaluated(node: int) -> Any:
        content = formula.get_node(node)
        join = space.all if type(content).__name__ == "conj" else space.any
        return join(of(child) for child in content.children)

    for component in components:
        inner = set(component)
        for node in component:
            known.setdefault(node, space.false)
            content = formula.get_node(node)
            if type(content).__name__ != "atom" and any(c and c < 0 and -c in inner for c in content.children):
                raise UserError("a rule must not depend on its own negation, got one that does; remove the cycle")
        rules = [node for node in component if node not in leaf]
        recursive = len(component) > 1 or any(node in children(formula, node) for node in rules)
        changed = bool(rules)
        while changed:
            changed = False
            for node in rules:
                new = evaluated(node)
                changed |= recursive and new != known[node]
                known[node] = new
    return of
