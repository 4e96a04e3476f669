"""Circuits in log space, batched: values forward, posteriors backward."""

import importlib.util
import itertools
from functools import cached_property
from typing import Any, Literal, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from gedi.errors import UserError, unknown
from gedi.logic.arguments import shown
from gedi.logic.circuit import AND, Circuit
from gedi.logic.linear import Linear

Backend = Literal["layered", "klay"]


class Evaluator(Protocol):
    """``log P`` of every root from the log-probabilities of the leaves."""

    def __call__(self, leaves: Tensor) -> Tensor:
        """(groups, columns) -> (groups, roots)."""
        ...


class Layered:
    """Evaluates level by level; all nodes of one kind, level and arity in one operation.

    The gradient is the downward pass of the circuit: every leaf receives its posterior share. Where a sum is
    ``-inf`` nothing flows, so one-hot inputs (``-inf`` logs) and impossible queries give finite gradients (0
    where nothing could help). Arities are padded to powers of two with rows that change nothing. The gradient can
    itself be differentiated, as often as one likes.
    """

    def __init__(self, circuit: Circuit) -> None:
        level = np.zeros(circuit.nodes, dtype=np.int64)
        arity = np.diff(circuit.starts)
        padded = 2 ** np.ceil(np.log2(np.maximum(arity, 1))).astype(np.int64)
        uniform = len(set(arity.tolist())) <= 2  # tables: padding would only cost
        width = arity if uniform else padded
        for j in range(len(circuit.kinds)):
            level[circuit.columns + j] = 1 + level[circuit.children[circuit.starts[j] : circuit.starts[j + 1]]].max()
        inner = level[circuit.columns :]
        order = np.lexsort((width, circuit.kinds, inner))
        number = np.arange(circuit.nodes)
        number[circuit.columns + order] = circuit.columns + np.arange(len(order))
        zero, never = circuit.nodes, circuit.nodes + 1  # rows that hold log 1 and log 0
        self.columns, self.nodes = circuit.columns, circuit.nodes
        self.roots = torch.from_numpy(number[circuit.roots])
        self.groups: list[tuple[bool, int, int, Tensor]] = []  # product?, first row, arity, children
        keys = np.stack([inner, circuit.kinds, width], axis=1)[order]
        cuts = [0, *(np.nonzero((keys[1:] != keys[:-1]).any(axis=1))[0] + 1).tolist(), len(order)]
        for begin, end in itertools.pairwise(cuts):
            if begin == end:
                continue
            product = bool(keys[begin, 1] == AND)
            children = np.full((end - begin, int(keys[begin, 2])), zero if product else never)
            for row, j in enumerate(order[begin:end]):
                own = circuit.children[circuit.starts[j] : circuit.starts[j + 1]]
                children[row, : len(own)] = number[own]
            # the shape (arity, nodes) makes the reduction run over contiguous rows
            self.groups.append((product, circuit.columns + begin, children.shape[1], torch.from_numpy(children.T)))
        self._circuit, self._level, self._number = circuit, level, number
        self._moved: dict[torch.device, tuple[list[tuple[bool, int, int, Tensor]], Tensor]] = {}

    def on(self, device: torch.device) -> tuple[list[tuple[bool, int, int, Tensor]], Tensor]:
        """The groups and roots on a device, moved once."""
        if device not in self._moved:
            groups = [(product, row, arity, c.reshape(-1).to(device)) for product, row, arity, c in self.groups]
            self._moved[device] = (groups, self.roots.to(device))
        return self._moved[device]

    @cached_property
    def linear(self) -> Linear:
        """The same on probabilities, for where they are not too small."""
        return Linear(self._circuit, self._level, self._number)

    def __call__(self, leaves: Tensor) -> Tensor:
        """(groups, columns) -> (groups, roots)."""
        out: Tensor = _LayeredFunction.apply(leaves, self)[0]  # type: ignore[no-untyped-call]
        return out

    def values(self, leaves: Tensor) -> Tensor:
        """The value of every node, (nodes, groups), with a row for log 1 and one for log 0 at the end."""
        groups, _ = self.on(leaves.device)
        n = leaves.shape[0]
        values = leaves.new_empty(self.nodes + 2, n)
        values[: self.columns] = leaves.t()
        values[self.nodes] = 0.0
        values[self.nodes + 1] = -torch.inf
        for product, row, arity, children in groups:
            nodes = len(children) // arity
            below = values[children].view(arity, nodes, n)
            here = values[row : row + nodes]
            if product:
                torch.sum(below, dim=0, out=here)
            else:
                torch.logsumexp(below, dim=0, out=here)
        return values

    def posteriors(self, leaves: Tensor, grad: Tensor) -> Tensor:
        """The gradient, in operations that autograd and the transforms of ``torch.func`` know.

        Slower than the backward pass, but it has a gradient of its own.
        """
        values, levels = self._plain(leaves)
        roots = self.on(leaves.device)[1] + 2
        flow = torch.zeros_like(values)
        flow = flow.index_add(0, roots, torch.where(torch.isneginf(values[roots]), 0.0, grad.t()))
        for product, row, children in reversed(levels):
            arity, nodes = children.shape
            above = flow[row : row + nodes]
            shares = above.expand(arity, -1, -1) if product else _shares(values, row, children) * above
            flow = flow.index_add(0, children.flatten(), shares.flatten(0, 1))
        return flow[2 : 2 + self.columns].t()

    def pushed(self, leaves: Tensor, tangents: Tensor) -> Tensor:
        """How the roots change with the leaves, along ``tangents``: the same the other way round."""
        values, levels = self._plain(leaves)
        moved = torch.cat([tangents.new_zeros(2, len(tangents)), tangents.t()])
        for product, row, children in levels:
            below = moved[children]
            moved = torch.cat([moved, (below if product else _shares(values, row, children) * below).sum(dim=0)])
        roots = self.on(leaves.device)[1] + 2
        return torch.where(torch.isneginf(values[roots]), 0.0, moved[roots]).t()

    def _plain(self, leaves: Tensor) -> tuple[Tensor, list[tuple[bool, int, Tensor]]]:
        """The value of every node by plain operations, and the levels: product?, first row, children (arity, nodes).

        Rows are added at the end, so log 1 and log 0 come first here.
        """
        groups, _ = self.on(leaves.device)
        values = torch.cat([leaves.new_tensor([0.0, -torch.inf])[:, None].expand(-1, len(leaves)), leaves.t()])
        levels = []
        for product, row, arity, flat in groups:
            children = ((flat + 2) % (self.nodes + 2)).view(arity, -1)
            below = values[children]
            values = torch.cat([values, below.sum(dim=0) if product else _log_sum(below)])
            levels.append((product, row + 2, children))
        return values, levels


def _shares(values: Tensor, row: int, children: Tensor) -> Tensor:
    """What each child contributes to its sum, (arity, nodes, groups); nothing to a sum that is log 0."""
    here = values[row : row + children.shape[1]]
    return (values[children] - torch.where(torch.isneginf(here), 0.0, here)).exp()


def _log_sum(x: Tensor) -> Tensor:
    """``logsumexp`` over the first dimension; where all is log 0 nothing flows, in torch's own NaN would."""
    top = x.detach().amax(dim=0)
    top = torch.where(torch.isneginf(top), 0.0, top)
    total = (x - top).exp().sum(dim=0)
    possible = total > 0
    return torch.where(possible, torch.where(possible, total, 1.0).log() + top, -torch.inf)


class _LayeredFunction(torch.autograd.Function):
    @staticmethod
    def forward(leaves: Tensor, circuit: Layered) -> tuple[Tensor, Tensor]:
        if circuit.linear.suits(leaves):
            plain = circuit.linear.values(leaves)
            if plain is not None:  # as many rows as the circuit has nodes: two less than in logs
                return plain[circuit.linear.roots].log().t(), plain
        values = circuit.values(leaves)
        return values[circuit.on(leaves.device)[1]].t(), values

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Layered], output: tuple[Tensor, Tensor]) -> None:
        leaves, ctx.circuit = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)  # no zeros for the values of the nodes, which nobody differentiates
        ctx.save_for_backward(output[1], leaves)
        ctx.save_for_forward(leaves)

    @staticmethod
    def jvp(ctx: Any, tangents: Tensor | None, _: None) -> tuple[Tensor | None, None]:
        (leaves,) = ctx.saved_tensors
        return None if tangents is None else ctx.circuit.pushed(leaves, tangents), None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, None], leaves: Tensor, circuit: Layered
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        """Many batches are one long batch."""
        assert in_dims[0] is not None
        leaves = leaves.movedim(in_dims[0], 0)
        out, values = _LayeredFunction.apply(leaves.flatten(0, 1), circuit)  # type: ignore[no-untyped-call]
        batches = leaves.shape[:2]
        return (out.unflatten(0, batches), values.unflatten(1, batches)), (0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, None]:
        circuit = ctx.circuit
        values, leaves = ctx.saved_tensors
        if grad is None:
            return None, None
        if torch.is_grad_enabled():  # create_graph, torch.func: the gradient is to be differentiated again
            return circuit.posteriors(leaves, grad), None
        if len(values) == circuit.nodes:
            return circuit.linear.gradient(values, grad), None
        groups, roots = circuit.on(values.device)
        n = values.shape[1]
        flow = torch.zeros_like(values)
        # a root that is impossible has no posterior: nothing flows from it
        flow.index_add_(0, roots, torch.where(torch.isneginf(values[roots]), 0.0, grad.t()))
        for product, row, arity, children in reversed(groups):
            nodes = len(children) // arity
            above = flow[row : row + nodes]
            if product:
                shares = above.repeat(arity, 1)  # a copy also for an arity of one
            else:
                here = values[row : row + nodes]
                shares = values[children].view(arity, nodes, n).sub_(torch.where(torch.isneginf(here), 0.0, here))
                shares = shares.exp_().mul_(above).view(arity * nodes, n)
            flow.index_add_(0, children, shares)
        return flow[: circuit.columns].t(), None


class KLay:
    """The same by klaycircuits."""

    def __init__(self, circuit: Circuit) -> None:
        import klay

        target = klay.Circuit()
        nodes = [target.literal_node(column + 1) for column in range(circuit.columns)]
        for j, kind in enumerate(circuit.kinds):
            below = [nodes[child] for child in circuit.children[circuit.starts[j] : circuit.starts[j + 1]]]
            nodes.append(target.and_node(below) if kind == AND else target.or_node(below))
        for root in circuit.roots:
            target.set_root(nodes[root])
        target.remove_unused_nodes()
        self.module = target.to_torch_module("log", compile=False)

    def __call__(self, leaves: Tensor) -> Tensor:
        """(groups, columns) -> (groups, roots)."""
        module = self.module if leaves.device.type == "cpu" else self.module.to(leaves.device)
        out: Tensor = module(leaves, torch.zeros_like(leaves))
        out = out.masked_fill(torch.isneginf(out), -torch.inf)  # nothing flows from an impossible root
        return cast(Tensor, _DifferentiatedOnce.apply(out))  # type: ignore[no-untyped-call]


class _DifferentiatedOnce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, out: Tensor) -> Tensor:
        return out.view_as(out)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            raise UserError("backend 'klay' has no second derivatives (create_graph=True); use with_backend('layered')")
        return grad


def evaluator(circuit: Circuit, backend: Backend | None = None) -> Evaluator:
    """An evaluator for a circuit; ours without a wish: it measures as fast or faster on most (docs/speed.md)."""
    if not (backend is None or (isinstance(backend, str) and backend in ("layered", "klay"))):
        raise unknown("backend", shown(backend).strip("'"), ["layered", "klay"])
    if backend == "klay":
        if importlib.util.find_spec("klay") is None:
            raise UserError("backend 'klay' needs the package klaycircuits; install it, or use 'layered'")
        return KLay(circuit)
    return Layered(circuit)
