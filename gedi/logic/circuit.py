"""A compiled constraint: sums and products over the probabilities of values."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

AND, OR = 1, 2


@dataclass(frozen=True, eq=False)
class Circuit:
    r"""A deterministic, decomposable, smooth circuit: an ``or`` adds, an ``and`` multiplies.

    Nodes 0 to ``columns - 1`` are the leaves, one for each value of each variable (in order); the others come
    after their children. Such a circuit computes, for independent variables,

    .. math:: P(C) = \sum_{y \models C} \prod_i p_i(y_i)

    without listing the assignments y.

    Attributes:
        columns: number of leaves.
        kinds: kind of each inner node, AND or OR.
        starts: inner node j has the children ``children[starts[j] : starts[j + 1]]``.
        children: node numbers.
        roots: one node for each query.
    """

    columns: int
    kinds: np.ndarray
    starts: np.ndarray
    children: np.ndarray
    roots: np.ndarray

    @property
    def nodes(self) -> int:
        """Leaves and inner nodes."""
        return self.columns + len(self.kinds)

    @property
    def edges(self) -> int:
        """What an evaluation costs."""
        return len(self.children)

    def children_of(self, node: int) -> np.ndarray:
        """The children of an inner node."""
        j = node - self.columns
        return self.children[self.starts[j] : self.starts[j + 1]]

    @cached_property
    def counts(self) -> list[int]:
        """The number of partial assignments below each node, exactly."""
        counts = [1] * self.columns
        for j, kind in enumerate(self.kinds):
            below = [counts[child] for child in self.children[self.starts[j] : self.starts[j + 1]]]
            total = 1
            if kind == AND:
                for count in below:
                    total *= count
            else:
                total = sum(below)
            counts.append(total)
        return counts

    def solutions(self, sizes: Sequence[int], root: int = 0) -> np.ndarray:
        """Every satisfying assignment of a root as value numbers, (solutions, variables)."""
        needed = self._below(int(self.roots[root]))
        variable = np.repeat(np.arange(len(sizes)), sizes)
        first = np.concatenate([[0], np.cumsum(sizes)])
        partial: dict[int, np.ndarray] = {}  # -1: not yet assigned
        for node in needed:
            if node < self.columns:
                row = np.full((1, len(sizes)), -1, dtype=np.int32)
                row[0, variable[node]] = node - first[variable[node]]
                partial[node] = row
                continue
            below = [partial[int(child)] for child in self.children_of(node)]
            if self.kinds[node - self.columns] == OR:
                partial[node] = np.concatenate(below)
                continue
            product = np.full((1, len(sizes)), -1, dtype=np.int32)
            for rows in below:  # children speak of different variables, so -1 never meets a value twice
                product = np.maximum(product[:, None], rows[None]).reshape(-1, len(sizes))
            partial[node] = product
        return partial[int(self.roots[root])]

    def below(self, roots: Sequence[int] | np.ndarray) -> "Circuit":
        """The part of the circuit that some nodes need, with them as roots."""
        builder = Builder(self.columns)
        number = list(range(self.columns)) + [-1] * len(self.kinds)
        for node in self._below(*map(int, roots)):
            if node >= self.columns:
                parts = [number[child] for child in self.children_of(node)]
                make = builder.all if self.kinds[node - self.columns] == AND else builder.any
                number[node] = make(parts)
        return builder.circuit([number[int(root)] for root in roots])

    def moved(self, sizes: Sequence[int], arranged: Sequence[int]) -> "Circuit":
        """A circuit over the variables ``arranged`` with its leaves where the variables 0, 1, ... have theirs."""
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        leaves = np.concatenate([np.arange(first[variable], first[variable + 1]) for variable in arranged])
        number = np.concatenate([leaves, np.arange(self.columns, self.nodes)])
        return Circuit(self.columns, self.kinds, self.starts, number[self.children], number[self.roots])

    def _below(self, *roots: int) -> list[int]:
        seen, stack = set(roots), list(roots)
        while stack:
            node = stack.pop()
            if node >= self.columns:
                new = {int(child) for child in self.children_of(node)} - seen
                seen |= new
                stack.extend(new)
        return sorted(seen)


class Builder:
    """Makes a circuit node by node; equal nodes are made once.

    Example:
        >>> b = Builder(4)                                    # two variables of two values
        >>> same = b.any([b.all([0, 2]), b.all([1, 3])])
        >>> b.circuit([same]).solutions([2, 2]).tolist()
        [[0, 0], [1, 1]]
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.kinds: list[int] = []
        self.parts: list[tuple[int, ...]] = []
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}

    def all(self, children: Sequence[int]) -> int:
        """A product."""
        return self._node(AND, children)

    def any(self, children: Sequence[int]) -> int:
        """A sum."""
        return self._node(OR, children)

    def _node(self, kind: int, children: Sequence[int]) -> int:
        if len(children) == 1:
            return children[0]
        key = (kind, tuple(sorted(children)))
        if key not in self._known:
            self._known[key] = self.columns + len(self.parts)
            self.kinds.append(kind)
            self.parts.append(key[1])
        return self._known[key]

    def circuit(self, roots: Sequence[int]) -> Circuit:
        """The circuit below the roots; what they do not need is left out."""
        needed = set(roots)
        for j in range(len(self.parts) - 1, -1, -1):
            if self.columns + j in needed:
                needed.update(self.parts[j])
        kept = [j for j in range(len(self.parts)) if self.columns + j in needed]
        number = {c: c for c in range(self.columns)} | {self.columns + j: self.columns + i for i, j in enumerate(kept)}
        return Circuit(
            columns=self.columns,
            kinds=np.array([self.kinds[j] for j in kept], dtype=np.uint8),
            starts=np.cumsum([0, *(len(self.parts[j]) for j in kept)], dtype=np.int64),
            children=np.array([number[c] for j in kept for c in self.parts[j]], dtype=np.int64),
            roots=np.array([number[root] for root in roots], dtype=np.int64),
        )


def from_table(assignments: np.ndarray, sizes: Sequence[int]) -> Circuit:
    """The sum over listed assignments, (solutions, variables): fastest while they are few."""
    solutions, variables = assignments.shape
    columns = int(sum(sizes))
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    leaves = (assignments + first).astype(np.int64)
    if solutions == 1:
        kinds, children, arity = [AND], leaves.reshape(-1), [variables]
    else:
        products = columns + np.arange(solutions)
        kinds = [AND] * solutions + [OR]
        children = np.concatenate([leaves.reshape(-1), products])
        arity = [variables] * solutions + [solutions]
    return Circuit(
        columns=columns,
        kinds=np.array(kinds, dtype=np.uint8),
        starts=np.cumsum([0, *arity], dtype=np.int64),
        children=children,
        roots=np.array([columns + len(kinds) - 1]),
    )
