"""Circuits on probabilities themselves: sums add, products multiply, no exponential on the way.

Far cheaper than logs, and as exact as long as no product on the way is too small for a number: what is lost to that is
bounded by how many assignments there are, and the caller is told where the bound does not do.
"""

import itertools

import numpy as np
import torch
from torch import Tensor

from gedi.logic.circuit import AND, Circuit

_LOST = 1e-3  # of a rounding: what may be lost to products that are too small
_HELD = 2e7  # numbers of the buffers; beyond that levels in logs need less


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
        self.levels: list[tuple[list[tuple[int, Tensor, int]], tuple[int, Tensor, Tensor] | None]] = []
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
                blocks.append((first[arity], table, edge))
                for factor in table.tolist():
                    for child in factor:
                        above[child].append(edge)
                        edge += 1
            self.levels.append((blocks, (at, *_bags(sums)) if sums else None))
            row = end
        cuts = [0, *(np.nonzero(np.diff(ordered))[0] + 1).tolist(), circuit.nodes]
        self.pulled = [(a, b, *_bags(above[a:b])) for a, b in itertools.pairwise(cuts)]

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
            for row, table, _ in blocks:
                here = values[row : row + table.shape[1]]
                if len(table) == 1:
                    here.copy_(values[table[0]])
                    continue
                torch.mul(values[table[0]], values[table[1]], out=here)
                for factor in table[2:]:
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
        start = torch.zeros_like(values).index_add_(0, self.roots, grad.t() / values[self.roots])
        for k in range(len(self.pulled) - 1, -1, -1):
            a, b, rows, starts = self.pulled[k]
            torch.add(start[a:b], _added(flow, rows, starts), out=flow[a:b])
            if k == 0:
                break
            for row, table, edge in self.levels[k - 1][0]:
                nodes = table.shape[1]
                _factors(values[table.flatten()].view(len(table), nodes, -1), flow[row : row + nodes], flow, edge)
        return (flow[: self.columns] * values[: self.columns]).t()


def _factors(parts: Tensor, above: Tensor, flow: Tensor, edge: int) -> None:
    """Each factor of a product receives the flow times the other factors, into the rows from ``edge`` on."""
    arity, nodes, n = parts.shape
    out = flow[edge : edge + arity * nodes].view(arity, nodes, n)
    if arity == 2:
        torch.mul(parts.flip(0), above, out=out)
        return
    left = above
    for i in range(arity):  # what comes before, from the left; then what comes after, from the right
        out[i] = left
        left = left * parts[i]
    right = parts[-1]
    for i in range(arity - 2, -1, -1):
        out[i].mul_(right)
        right = right * parts[i]


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
