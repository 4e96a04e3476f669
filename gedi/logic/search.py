"""The best assignments of a circuit, and random ones: the same circuit, read from the top."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from gedi.logic.circuit import Circuit
from gedi.logic.evaluate import Layered

_HELD = 20_000_000  # numbers of one table at a time


def best(circuit: Circuit, sizes: Sequence[int], leaves: Tensor, k: int, root: int = 0) -> Tensor:
    """The k most probable satisfying assignments of each group as value numbers, (groups, k, variables).

    Every node keeps its k best partial assignments: a sum chooses among those of its children, a product pairs them. As
    no assignment is below a root twice, no two of the k are alike. -1 stands where there are fewer.

    Args:
        circuit: deterministic, decomposable, smooth.
        sizes: the number of values of each variable.
        leaves: log-probabilities, (groups, columns).
        k: how many.
        root: which one is asked.
    """
    layered = Layered(circuit)
    parts = [_best(layered, sizes, part.double(), k, root) for part in _parts(leaves, layered.nodes * k)]
    return torch.cat(parts) if parts else leaves.new_zeros(0, k, len(sizes), dtype=torch.long)


def draws(
    circuit: Circuit, sizes: Sequence[int], leaves: Tensor, n: int, generator: torch.Generator | None, root: int = 0
) -> Tensor:
    """n independent assignments of each group, drawn given that the constraint holds, (groups, n, variables).

    From the root down a sum chooses one child by its share, a product follows all. -1 stands in a group that cannot
    satisfy the constraint.
    """
    layered = Layered(circuit)
    parts = [_draws(layered, sizes, part.double(), n, generator, root) for part in _parts(leaves, layered.nodes * n)]
    return torch.cat(parts) if parts else leaves.new_zeros(0, n, len(sizes), dtype=torch.long)


def _parts(leaves: Tensor, each: int) -> Iterator[Tensor]:
    """Some groups at a time, so that tables stay small."""
    step = max(1, _HELD // max(each, 1))
    return (leaves[i : i + step] for i in range(0, len(leaves), step))


def _best(layered: Layered, sizes: Sequence[int], leaves: Tensor, k: int, root: int) -> Tensor:
    groups, roots = layered.on(leaves.device)
    n = len(leaves)
    values = leaves.new_full((layered.nodes + 2, n, k), -torch.inf)
    values[: layered.columns, :, 0] = leaves.t()
    values[layered.nodes, :, 0] = 0.0
    chosen: list[list[Tensor]] = []  # for each level what its lists were made of
    for product, row, arity, children in groups:
        nodes = len(children) // arity
        below = values[children].view(arity, nodes, n, k)
        if product:
            top, made = below[0], []
            for other in below[1:]:  # pairs of what is best so far and of what is best in the next factor
                top, pairs = (top[..., :, None] + other[..., None, :]).flatten(2).topk(k, dim=2)
                made.append(pairs)
        else:
            top, place = below.permute(1, 2, 0, 3).flatten(2).topk(k, dim=2)
            made = [place]
        values[row : row + nodes] = top
        chosen.append(made)
    rank = torch.full_like(values, -1, dtype=torch.long)  # which entry of its list each node contributes
    places = torch.arange(k, device=leaves.device).expand(n, k)
    top = roots[root]
    rank[top] = torch.where(torch.isneginf(values[top]), -1, places)
    for (product, row, arity, children), made in zip(reversed(groups), reversed(chosen), strict=True):
        table = children.view(arity, -1)
        node, group, place = (rank[row : row + table.shape[1]] >= 0).nonzero(as_tuple=True)
        entry = rank[row + node, group, place]
        if product:
            for factor in range(arity - 1, 0, -1):
                pair = made[factor - 1][node, group, entry]
                rank[table[factor, node], group, place] = pair % k
                entry = pair // k
            rank[table[0, node], group, place] = entry
        else:
            which = made[0][node, group, entry]
            rank[table[which // k, node], group, place] = which % k
    return _assigned(rank[: layered.columns] >= 0, sizes)


def _draws(
    layered: Layered, sizes: Sequence[int], leaves: Tensor, n: int, generator: torch.Generator | None, root: int
) -> Tensor:
    groups, roots = layered.on(leaves.device)
    values = layered.values(leaves)
    reached = torch.zeros(layered.nodes + 2, len(leaves), n, dtype=torch.bool, device=leaves.device)
    reached[roots[root]] = ~torch.isneginf(values[roots[root]])[:, None]
    for product, row, arity, children in reversed(groups):
        table = children.view(arity, -1)
        node, group, draw = reached[row : row + table.shape[1]].nonzero(as_tuple=True)
        if product:
            for factor in table:
                reached[factor[node], group, draw] = True
            continue
        share = (values[table[:, node], group] - values[row + node, group]).exp().cumsum(dim=0)
        at = torch.rand(len(node), generator=generator, device=leaves.device, dtype=leaves.dtype) * share[-1]
        # the first whose share goes beyond the point: one without a share never does
        which = (share <= at).sum(dim=0).clamp_max(arity - 1)
        reached[table[which, node], group, draw] = True
    return _assigned(reached[: layered.columns], sizes)


def _assigned(taken: Tensor, sizes: Sequence[int]) -> Tensor:
    """Which value each variable takes, from which leaves are taken: (columns, ...) -> (..., variables)."""
    first = np.cumsum([0, *sizes]).tolist()
    values = []
    for i in range(len(sizes)):
        own = taken[first[i] : first[i + 1]]
        values.append(torch.where(own.any(dim=0), own.to(torch.uint8).argmax(dim=0), -1))
    return torch.stack(values, dim=-1)
