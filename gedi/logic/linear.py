"""Circuits on probabilities themselves: sums add, products multiply, no exponential on the way.

Far cheaper than logs, and as exact as long as no product on the way is too small for a number: what is lost to that is
bounded by how many assignments there are, and the caller is told where the bound does not do.
"""

import itertools
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gedi.logic.circuit import AND, Circuit

_LOST = 1e-3  # of a rounding: what may be lost to products that are too small
_HELD = 2e7  # numbers of the buffers; beyond that levels in logs need less


class _Products(NamedTuple):
    """Products of one level and arity.

    Attributes:
        row: of the first.
        nodes: how many there are.
        factors: rows of the first factor of each, of the second, and so on.
        table: these one after another.
        edge: the row of the flows to their factors, the first of them.
    """

    row: int
    nodes: int
    factors: tuple[Tensor, ...]
    table: Tensor
    edge: int


class Linear:
    """One pass up and one down, level by level; sums gather and add in one operation, whatever their arity.

    Args:
        circuit: deterministic, decomposable, smooth.
        level: of each node, 0 for leaves.
        number: the row of each node: leaves first, then level after level, products before sums.
    """

    def __init__(self, circuit: Circuit, level: np.ndarray, number: np.ndarray) -> None:
        self.columns, self.nodes = circuit.columns, circuit.nodes
        self.rows = circuit.nodes + int(sum(np.diff(circuit.starts)[circuit.kinds == AND]))  # and one for each factor
        self.roots = torch.from_numpy(number[circuit.roots])
        self.most = max((float(min(circuit.counts[root], 10**300)) for root in circuit.roots), default=0.0)
        node_of = np.empty(circuit.nodes, dtype=np.int64)
        node_of[number] = np.arange(circuit.nodes)
        self.levels: list[tuple[list[_Products], tuple[int, Tensor, Tensor] | None]] = []
        above: list[list[int]] = [[] for _ in range(circuit.nodes)]  # rows whose flows add up to a node's, by its row
        edge, row = circuit.nodes, circuit.columns
        ordered = level[node_of]  # of each row
        while row < circuit.nodes:
            end = int(np.searchsorted(ordered, ordered[row], side="right"))
            products: dict[int, list[list[int]]] = {}
            first: dict[int, int] = {}
            sums: list[list[int]] = []
            at = row
            for r in range(row, end):
                children = number[circuit.children_of(int(node_of[r]))].tolist()
                if circuit.kinds[node_of[r] - circuit.columns] == AND:
                    first.setdefault(len(children), r)
                    products.setdefault(len(children), []).append(children)
                    at = r + 1
                else:
                    sums.append(children)
                    for child in children:
                        above[child].append(r)
            blocks = []
            for arity, factors in products.items():
                table = torch.tensor(factors).t().contiguous()  # (arity, nodes)
                blocks.append(_Products(first[arity], len(factors), tuple(table), table.flatten(), edge))
                for factor in table.tolist():
                    for child in factor:
                        above[child].append(edge)
                        edge += 1
            self.levels.append((blocks, (at, *_bags(sums)) if sums else None))
            row = end
        cuts = [0, *(np.nonzero(np.diff(ordered))[0] + 1).tolist(), circuit.nodes]
        self.pulled = [(a, b, *_bags(above[a:b])) for a, b in itertools.pairwise(cuts)]
        self.ends = [_between(self.roots, a, b) for a, b in itertools.pairwise(cuts)]

    def suits(self, leaves: Tensor) -> bool:
        """Whether leaves, as logs, may be tried: plain numbers of at most 1, here, and few enough."""
        return (
            leaves.device.type == "cpu"
            and leaves.dtype in (torch.float32, torch.float64)
            and 0 < len(leaves) * self.rows <= _HELD
            and bool(leaves.amax() <= 0)
        )

    def values(self, leaves: Tensor) -> Tensor | None:
        """The value of every node, (nodes, groups); None where too much may have been lost on the way."""
        values = leaves.new_empty(self.nodes, len(leaves))
        torch.exp(leaves.t(), out=values[: self.columns])
        for blocks, sums in self.levels:
            for row, nodes, factors, _, _ in blocks:
                here = values[row : row + nodes]
                if len(factors) == 1:
                    here.copy_(values[factors[0]])
                    continue
                torch.mul(values[factors[0]], values[factors[1]], out=here)
                for factor in factors[2:]:
                    here.mul_(values[factor])
            if sums is not None:
                row, children, starts = sums
                values[row : row + len(starts) - 1] = _added(values, children, starts)
        info = torch.finfo(leaves.dtype)
        enough = self.most * info.tiny / (_LOST * info.eps)
        return values if bool(values[self.roots].amin() >= enough) else None

    def gradient(self, values: Tensor, grad: Tensor) -> Tensor:
        """Of the logs of the leaves, (groups, columns): what each contributes to the roots, times ``grad``."""
        flow = values.new_empty(self.rows, values.shape[1])
        start = grad.t() / values[self.roots]
        for k in range(len(self.pulled) - 1, -1, -1):
            a, b, rows, starts = self.pulled[k]
            here, end = flow[a:b], self.ends[k]
            if len(rows):
                here.copy_(_added(flow, rows, starts))
            else:
                here.zero_()
            if end is not None:
                which, into = end
                here.index_add_(0, into, start if len(which) == len(start) else start[which])
            if k == 0:
                break
            for row, nodes, factors, table, edge in self.levels[k - 1][0]:
                _factors(values[table].view(len(factors), nodes, -1), flow[row : row + nodes], flow, edge)
        return (flow[: self.columns] * values[: self.columns]).t()


def _factors(parts: Tensor, above: Tensor, flow: Tensor, edge: int) -> None:
    """Each factor of a product receives the flow times the other factors, into the rows from ``edge`` on."""
    arity, nodes, n = parts.shape
    out = flow[edge : edge + arity * nodes].view(arity, nodes, n)
    if arity == 2:
        torch.mul(parts.flip(0), above, out=out)
        return
    if arity == 1:
        out.copy_(above)
        return
    left = above
    for i in range(1, arity):  # what comes before, from the left; then what comes after, from the right
        left = torch.mul(left, parts[i - 1], out=out[i])
    right = parts[-1]
    for i in range(arity - 2, 0, -1):
        out[i].mul_(right)
        right = right * parts[i]
    torch.mul(above, right, out=out[0])


def _between(roots: Tensor, a: int, b: int) -> tuple[Tensor, Tensor] | None:
    """Which roots are rows from a to b, and their places there; None where none is."""
    which = ((roots >= a) & (roots < b)).nonzero()[:, 0]
    return (which, roots[which] - a) if len(which) else None


def _bags(groups: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Rows to add up, one after another, and where each sum begins."""
    starts = np.cumsum([0, *map(len, groups)])
    return torch.tensor([row for group in groups for row in group], dtype=torch.long), torch.from_numpy(starts)


def _added(rows: Tensor, which: Tensor, starts: Tensor) -> Tensor:
    """Sums of rows, (sums, n): gathered and added in one operation, without a copy of what is gathered."""
    if len(which) == 0:
        return rows.new_zeros(len(starts) - 1, rows.shape[1])
    out: Tensor = torch.embedding_bag(rows, which, starts, False, 0, False, None, True)[0]
    return out
