"""Compilation by PySDD, with a vtree that keeps the values of each variable together."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from pysdd.sdd import SddManager, SddNode, Vtree

from gedi.logic.circuit import AND, Builder, Circuit
from gedi.logic.limits import Budget


class Space:
    """Formulas over variables with several values each, one Boolean a value, exactly one of them true.

    A formula on the way stays small only among the assignments that exist. So values enter as one-hot cubes
    where formulas grow from them, and clauses over plain literals are laid one by one on the diagram of all that
    exists. A compiled formula holds exactly-one for every variable; then no path leaves a Boolean open, negative
    literals carry weight 1 and can be dropped, and the circuit is smooth without help.

    Args:
        sizes: the number of values of each variable.
        budget: asked after every operation.
    """

    def __init__(self, sizes: Sequence[int], budget: Budget) -> None:
        self.sizes = list(sizes)
        self.budget = budget
        self.first = np.concatenate([[0], np.cumsum(self.sizes)]).tolist()
        self._manager = SddManager.from_vtree(_vtree(self.sizes))
        self.true, self.false = self._manager.true(), self._manager.false()
        self._values: dict[tuple[int, int], SddNode] = {}
        self._nothing: dict[tuple[int, int], SddNode] = {}
        self._one_value: SddNode | None = None

    def value(self, variable: int, k: int) -> SddNode:
        """Variable has its k-th value."""
        if (variable, k) not in self._values:
            low, high = 0, self.sizes[variable]
            node = self.literal(variable, k)
            others = []  # the halves of the variable's vtree that k is not in: few, and shared by many values
            while high - low > 1:
                half = low + (high - low) // 2
                others.append((half, high) if k < half else (low, half))
                low, high = (low, half) if k < half else (half, high)
            for start, end in reversed(others):
                node = node & self._none(self.first[variable] + start, self.first[variable] + end)
            node.ref()
            self._values[variable, k] = node
            self.budget.check(self._manager.size())
        return self._values[variable, k]

    def literal(self, variable: int, k: int, holds: bool = True) -> SddNode:
        """The Boolean of one value alone: it means "has this value" among the assignments that exist."""
        boolean = self.first[variable] + k + 1
        return self._manager.literal(boolean if holds else -boolean)

    def _none(self, start: int, end: int) -> SddNode:
        """None of a run of Booleans is true."""
        if (start, end) not in self._nothing:
            half = start + (end - start) // 2
            parts = (
                self._manager.literal(-(start + 1))
                if end - start == 1
                else self._none(start, half) & self._none(half, end)
            )
            parts.ref()
            self._nothing[start, end] = parts
        return self._nothing[start, end]

    def _one(self, start: int, end: int) -> SddNode:
        """Exactly one of a run of Booleans is true."""
        if end - start == 1:
            return self._manager.literal(start + 1)
        half = start + (end - start) // 2
        left = self._one(start, half) & self._none(half, end)
        return left | (self._none(start, half) & self._one(half, end))

    def all(self, nodes: Iterable[SddNode]) -> SddNode:
        """Every one of them holds."""
        result = self.true
        for node in nodes:
            result = result & node
            self.budget.check(self._manager.size())
        return result

    def among_existing(self, nodes: Iterable[SddNode]) -> SddNode:
        """Every one of many formulas over literals holds, compiled; what is left over on the way is freed."""
        result = self.existing()
        for node in nodes:
            joined = result & node
            joined.ref()
            if result is not self._one_value:
                result.deref()
            result = joined
            if self._manager.dead_size() > self.budget.limits.size // 4:
                self._manager.garbage_collect()
            self.budget.check(self._manager.live_size())
        return result

    def any(self, nodes: Iterable[SddNode]) -> SddNode:
        """At least one of them holds."""
        result = self.false
        for node in nodes:
            result = result | node
            self.budget.check(self._manager.size())
        return result

    def negation(self, node: SddNode) -> SddNode:
        """It does not hold."""
        return ~node

    def existing(self) -> SddNode:
        """Every variable has exactly one value."""
        if self._one_value is None:
            parts = [self._one(self.first[i], self.first[i + 1]) for i in range(len(self.sizes))]
            while len(parts) > 1:  # neighbours first: each pair is a place of its own in the vtree
                self.budget.check(self._manager.size())
                parts = [self.all(parts[i : i + 2]) for i in range(0, len(parts), 2)]
            self._one_value = parts[0]
            self._one_value.ref()
        return self._one_value

    def embed(self, circuit: Circuit, root: int = 0) -> SddNode:
        """A compiled constraint over the same variables, as a formula here."""
        nodes = [self.value(variable, k) for variable, size in enumerate(self.sizes) for k in range(size)]
        for j, kind in enumerate(circuit.kinds):
            below = [nodes[child] for child in circuit.children[circuit.starts[j] : circuit.starts[j + 1]]]
            nodes.append(self.all(below) if kind == AND else self.any(below))
        return nodes[int(circuit.roots[root])]

    def compiled(self, formula: SddNode) -> SddNode:
        """The formula among the assignments that exist."""
        return self.all([formula, self.existing()])

    def is_false(self, compiled: SddNode) -> bool:
        """Whether no assignment satisfies a compiled formula."""
        return bool(compiled.is_false())

    def is_true(self, compiled: SddNode) -> bool:
        """Whether every assignment does."""
        return bool(compiled == self.existing())

    def circuit(self, compiled: Sequence[SddNode]) -> Circuit:
        """Compiled formulas as one circuit, a root each."""
        builder = Builder(self.first[-1])
        known: dict[int, int | None] = {}  # None: weight 1, nothing to multiply by

        def convert(node: SddNode) -> int | None:
            if node.id not in known:
                if node.is_literal():
                    known[node.id] = node.literal - 1 if node.literal > 0 else None
                elif node.is_true():
                    known[node.id] = None
                else:
                    parts = []
                    for prime, sub in node.elements():
                        if not sub.is_false():
                            factors = [f for f in (convert(prime), convert(sub)) if f is not None]
                            parts.append(builder.all(factors) if factors else None)
                    open_ = [part for part in parts if part is not None]
                    assert len(open_) == len(parts) or len(parts) == 1, "a sum with a part of weight 1"
                    known[node.id] = builder.any(open_) if open_ else None
            return known[node.id]

        roots = [convert(node) for node in compiled]
        return builder.circuit([root for root in roots if root is not None])


def _vtree(sizes: Sequence[int]) -> Vtree:
    """Balanced over the variables, and balanced over the values below each."""
    lines: list[str] = []

    def leaf(boolean: int) -> int:
        lines.append(f"L {len(lines)} {boolean}")
        return len(lines) - 1

    def join(parts: Sequence[int]) -> int:
        if len(parts) == 1:
            return parts[0]
        half = len(parts) // 2
        left, right = join(parts[:half]), join(parts[half:])
        lines.append(f"I {len(lines)} {left} {right}")
        return len(lines) - 1

    boolean, tops = 1, []
    for size in sizes:
        tops.append(join([leaf(boolean + k) for k in range(size)]))
        boolean += size
    join(tops)
    with tempfile.TemporaryDirectory() as folder:  # PySDD reads a vtree from a file only
        path = Path(folder) / "vtree"
        path.write_text(f"vtree {len(lines)}\n" + "\n".join(lines) + "\n")
        return Vtree.from_file(str(path).encode())
