"""The processes that train one model together: what each does of the work, and how they agree.

Every process computes its own part of a batch; what depends on the batch as a whole (batch statistics, Sinkhorn,
covariances, shares of clusters) is computed by each of them on the joined rows, with the very code of one process.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from gedi.errors import EndedElsewhere, ProcessLost

T = TypeVar("T")

#: How the back ends tell that a process is gone; they have no common exception for it.
_GONE = ("closed by peer", "reset by peer", "broken pipe", "connection refused", "timed out", "connection was likely")


@dataclass(frozen=True)
class Processes:
    """One process's view of all of them; by default there is only this one.

    Attributes:
        rank: which one this is, from 0.
        size: how many there are.

    Example:
        >>> alone = Processes()
        >>> alone.first, alone.of_all("me"), [x.tolist() for x in alone.joined(torch.arange(3), [2, 1])]
        (True, ['me'], [[0, 1], [2]])
        >>> Processes(rank=1, size=2).own(torch.arange(5))
        tensor([1, 3])
    """

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and speaks."""
        return self.rank == 0

    def joined(self, x: Tensor, sizes: Sequence[int], front: int = 0) -> list[Tensor]:
        """The rows of every process, as several batches, whose sizes are given, were stacked in ``x``.

        The gradient is right where every process goes on to compute the same loss and gradients are then averaged
        over the processes: each sends its own rows' gradient back, times their number.

        Args:
            x: (sum(sizes), ...), as many rows in each process.
            sizes: rows of each batch here.
            front: how many rows of each batch, from its first on, come before all others when joined.
        """
        if self.size == 1:
            return list(torch.split(x, list(sizes)))
        everyone: Tensor = _Join.apply(x, self)  # type: ignore[no-untyped-call]  # (processes, rows, ...)
        return [
            torch.cat([part[:, :front].flatten(0, 1), part[:, front:].flatten(0, 1)])
            for part in torch.split(everyone, list(sizes), dim=1)
        ]

    def own(self, rows: Tensor) -> Tensor:
        """Every size-th row, from this process's on: its share of what is spread over the processes."""
        return rows if self.size == 1 else rows[self.rank :: self.size]

    @torch.no_grad()
    def whole(self, own: Tensor, n: int) -> Tensor:
        """The n rows of which each process has its :meth:`own`, in their order."""
        if self.size == 1:
            return own
        longest = -(-n // self.size)
        padded = own.new_zeros((longest, *own.shape[1:]))
        padded[: len(own)] = own
        everyone = self._gather(padded)  # (processes, longest, ...)
        return everyone.transpose(0, 1).flatten(0, 1)[:n]

    def of_all(self, thing: T) -> list[T]:
        """What each process has, in order."""
        if self.size == 1:
            return [thing]
        things: list[Any] = [None] * self.size
        with self.watched():
            dist.all_gather_object(things, thing)
        return things

    def of_first(self, make: Callable[[], T]) -> T:
        """What the first process makes. If it fails, all do, and it alone says why."""
        if self.size == 1:
            return make()
        made: list[Any] = [None, False]
        if self.first:
            try:
                made = [make(), True]
            except BaseException:
                dist.broadcast_object_list(made)
                raise
        with self.watched():
            dist.broadcast_object_list(made)
        if not made[1]:
            raise EndedElsewhere("the first process of the run failed")
        return made[0]  # type: ignore[no-any-return]

    @torch.no_grad()
    def highest(self, figures: Tensor) -> Tensor:
        """The highest of each figure over the processes; NaN if any is."""
        return figures if self.size == 1 else self._gather(figures).amax(dim=0)

    def mean(self, figures: dict[str, float]) -> dict[str, float]:
        """The mean of each figure over the processes."""
        if self.size == 1:
            return figures
        everyone = self.of_all(figures)
        return {name: sum(one[name] for one in everyone) / self.size for name in figures}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Tells a process that is gone from other errors."""
        try:
            yield
        except RuntimeError as error:
            gone = isinstance(error, dist.DistError) or any(sign in str(error).lower() for sign in _GONE)
            if self.size == 1 or not gone:
                raise
            raise ProcessLost(f"another of the {self.size} processes is gone") from error

    def _gather(self, x: Tensor) -> Tensor:
        everyone = x.new_empty((self.size, *x.shape))
        dist.all_gather(list(everyone.unbind(0)), x.contiguous())
        return everyone


class _Join(torch.autograd.Function):
    """(n, ...) here -> (processes, n, ...) everywhere.

    Each process has the gradient of the whole loss in the joined rows, so nothing need be sent on the way back. The
    average over processes then divides by their number, which the factor undoes.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, processes: Processes) -> Tensor:
        ctx.processes = processes
        return processes._gather(x.detach())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        processes: Processes = ctx.processes
        return gradient[processes.rank] * processes.size, None
