"""Decision diagrams: constraints that read their variables one by one with a small memory."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gedi.errors import UserError
from gedi.logic.circuit import Builder, Circuit
from gedi.logic.limits import Budget

_UNWATCHED = 256  # steps between two looks at the clock
Level = np.ndarray  # (nodes, values): where each value of a variable leads, -1 for nowhere


@dataclass(frozen=True, eq=False)
class Diagram:
    """A reduced multi-valued decision diagram.

    ``levels[i][node, value]`` is the node of level i + 1 that a value of variable i leads to, or -1 where no
    completion satisfies the constraint. The last level has the one node 0. Level 0 has one node, or none if
    nothing satisfies the constraint.
    """

    levels: tuple[np.ndarray, ...]

    @property
    def sizes(self) -> list[int]:
        """The number of values of each variable."""
        return [level.shape[1] for level in self.levels]

    @property
    def is_false(self) -> bool:
        """Whether nothing satisfies the constraint."""
        return len(self.levels[0]) == 0

    @property
    def is_true(self) -> bool:
        """Whether everything does; a reduced diagram then has one node a level."""
        return all(level.shape[0] == 1 and bool((level == 0).all()) for level in self.levels)

    def circuit(self, budget: Budget | None = None) -> Circuit:
        """The diagram as sums and products."""
        sizes = self.sizes
        first = sum(sizes)
        builder = Builder(first)
        below: list[int | None] = [None]  # the accepting end adds nothing
        for i in range(len(sizes) - 1, -1, -1):
            first -= sizes[i]
            if budget is not None:
                budget.check_time()
            here: list[int | None] = []
            for row in self.levels[i]:
                edges: dict[int, list[int]] = {}
                for value, target in enumerate(row):
                    if target >= 0:
                        edges.setdefault(int(target), []).append(first + value)
                # values that lead to the same place share one sum
                parts = []
                for target, values in edges.items():
                    rest = below[target]
                    chosen = builder.any(values)
                    parts.append(chosen if rest is None else builder.all([chosen, rest]))
                here.append(builder.any(parts))
            below = here
        assert below[0] is not None
        return builder.circuit([below[0]])

    def complement(self) -> "Diagram":
        """Everything that does not satisfy it."""
        failed = [len(level) for level in self.levels[1:]] + [1]  # a node of its own on every level
        raw = [
            np.vstack([np.where(level < 0, bad, level), np.full((1, level.shape[1]), bad)])
            for level, bad in zip(self.levels, failed, strict=True)
        ]
        return _reduce(raw, accept=np.array([False, True]), start=0)

    def product(self, other: "Diagram", both: bool, budget: Budget) -> "Diagram":
        """What satisfies both diagrams, or either."""
        pairs = np.zeros((1, 2), dtype=np.int64)
        if self.is_false or other.is_false:
            raise UserError("an unsatisfiable constraint cannot be combined")
        raw = []
        for mine, theirs in zip(self.levels, other.levels, strict=True):
            a = np.vstack([mine, np.full((1, mine.shape[1]), -1)])[pairs[:, 0]]  # row -1: failed
            b = np.vstack([theirs, np.full((1, theirs.shape[1]), -1)])[pairs[:, 1]]
            dead = ((a < 0) | (b < 0)) if both else ((a < 0) & (b < 0))
            code = np.stack([a, b], axis=-1).reshape(-1, 2)
            code[dead.reshape(-1)] = -2
            unique, inverse = np.unique(code, axis=0, return_inverse=True)
            target = inverse.reshape(a.shape).astype(np.int64)
            if len(unique) and (unique[0] == -2).all():
                unique, target = unique[1:], target - 1
            raw.append(np.where(dead, -1, target))
            pairs = unique
            budget.check(sum(len(level) for level in raw))
        return _reduce(raw, accept=np.ones(len(pairs), dtype=bool), start=0, budget=budget)

    def accepts(self, values: np.ndarray) -> np.ndarray:
        """Which rows of value numbers, (n, variables), satisfy it."""
        node = np.zeros(len(values), dtype=np.int64)
        alive = np.full(len(values), not self.is_false)
        for level, column in zip(self.levels, values.T, strict=True):
            node = np.where(alive, level[np.where(alive, node, 0), column] if len(level) else -1, -1)
            alive = node >= 0
        return alive


def _reduce(raw: Sequence[Level], accept: np.ndarray, start: int, budget: Budget | None = None) -> Diagram:
    """Merge nodes that accept the same completions, from the end; drop what is not reached."""
    return Diagram(tuple(reduced(raw, np.where(accept, 0, -1), budget, start)[0]))


def reduced(
    raw: Sequence[Level], ends: np.ndarray, budget: Budget | None = None, start: int = 0
) -> tuple[list[Level], np.ndarray]:
    """Merge nodes whose completions come to the same ends, from the last level; drop what is not reached.

    Args:
        raw: levels as in :class:`Diagram`, with any number of nodes after the last.
        ends: the number of the end that each node after the last level is, -1 for one that does not count.
        budget: its time is looked at.
        start: where it begins.

    Returns:
        The levels, and the ends that are reached, in the order of the nodes after the last level.
    """
    rename = ends
    levels = []
    for level in reversed(raw):
        if budget is not None:
            budget.check_time()
        targets = np.where(level < 0, -1, np.append(rename, -1)[level])
        rows, inverse = np.unique(targets, axis=0, return_inverse=True)
        inverse = inverse.reshape(-1)
        if len(rows) and (rows[0] == -1).all():  # the dead row sorts first
            rows, inverse = rows[1:], inverse - 1
        rename = inverse
        levels.append(rows)
    levels.reverse()
    keep = np.array([rename[start]]) if len(rename) and rename[start] >= 0 else np.array([], dtype=np.int64)
    reached = []
    for level in levels:
        here = level[keep]
        keep, inverse = np.unique(here, return_inverse=True)
        here = inverse.reshape(here.shape)
        if len(keep) and keep[0] == -1:
            keep, here = keep[1:], here - 1
        reached.append(here)
    return reached, keep


def from_automaton(
    init: Hashable,
    step: Callable[[Any, Any], Hashable],
    accept: Callable[[Any], bool],
    domains: Sequence[Sequence[Any]],
    budget: Budget,
) -> Diagram:
    """The states that can be reached, level by level, then reduced. ``step`` gives None to reject."""
    raw, states = explored(init, step, domains, budget)
    accepted = np.array([bool(accept(state)) for state in states], dtype=bool)
    return _reduce(raw, accept=accepted, start=0, budget=budget)


def explored(
    init: Hashable, step: Callable[[Any, Any], Hashable], domains: Sequence[Sequence[Any]], budget: Budget
) -> tuple[list[Level], list[Any]]:
    """Every state that can be reached, level by level, and the last ones."""
    states: list[Hashable] = [init]
    raw: list[Level] = []
    size, held, asked = 0, 0, 0
    for domain in domains:
        number: dict[Hashable, int] = {}
        held += len(states) * len(domain)
        budget.check_memory(held)
        level = np.full((len(states), len(domain)), -1, dtype=np.int64)
        for i, state in enumerate(states):
            for k, value in enumerate(domain):
                asked += 1
                if asked % _UNWATCHED == 0:
                    budget.check(size + len(number))
                following = step(state, value)
                if following is not None:
                    level[i, k] = number.setdefault(following, len(number))
        size += len(number)
        budget.check(size)
        raw.append(level)
        states = list(number)
    return raw, states


def from_solutions(assignments: np.ndarray, sizes: Sequence[int]) -> Diagram:
    """The diagram of listed assignments, (solutions, variables)."""
    rows = np.unique(assignments, axis=0)
    raw = []
    owner = np.zeros(len(rows), dtype=np.int64)  # the trie node each row is at
    width = 1
    for i, size in enumerate(sizes):
        code = owner * size + rows[:, i]
        unique, inverse = np.unique(code, return_inverse=True)
        level = np.full((width, size), -1, dtype=np.int64)
        level[unique // size, unique % size] = np.arange(len(unique))
        raw.append(level)
        owner, width = inverse.reshape(-1), len(unique)
    return _reduce(raw, accept=np.ones(width, dtype=bool), start=0)
