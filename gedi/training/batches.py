"""Which points come next."""

import torch
from torch import Tensor

from gedi.errors import UserError
from gedi.processes import Processes


class Batches:
    """Shuffled passes over points, some of them in groups that are never cut.

    The first ``groups * group_size`` points are in groups, in order; the others are free. Each kind is passed
    over in its own shuffled order; a batch repeats nothing and holds whole groups first, then free points.
    Short ends are skipped.

    Args:
        n: number of points.
        batch_size: points in a batch.
        group_size: points in a group.
        groups: number of groups.
        free: how many of a batch's points are free ones; None shares the batch in the ratio of the data.

    Example:
        >>> batches = Batches(8, 5, group_size=3, groups=2, free=2)
        >>> first = batches.next(torch.Generator().manual_seed(0))
        >>> (first[:3] % 3).tolist(), bool((first[3:] >= 6).all())
        ([0, 1, 2], True)
    """

    def __init__(
        self, n: int, batch_size: int, *, group_size: int = 1, groups: int = 0, free: int | None = None
    ) -> None:
        self.group_size = group_size
        loose = n - groups * group_size
        if free is None:
            free = round(batch_size * loose / n)
            if groups and loose:  # what a cut group leaves over is free; without any group a constraint has nothing
                whole = max(1, (batch_size - free) // group_size)
                free = max(0, batch_size - whole * group_size)
        grouped = batch_size - free
        if grouped % group_size:
            raise UserError(
                f"a constraint over {group_size} variables needs batches of whole groups: batch_size must be a "
                f"multiple of {group_size}, got {grouped}; use {grouped - grouped % group_size or group_size}"
            )
        if grouped > groups * group_size or free > loose:
            raise UserError(
                f"a batch must not hold more than the data: {grouped} points in groups of {groups * group_size} "
                f"and {free} free ones of {loose}; use a smaller batch_size"
            )
        self.n = n
        self.batch_size = batch_size
        self.grouped = grouped  # points of a batch that are in groups; they come first
        self._groups = _Pass(groups, grouped // group_size)
        self._free = _Pass(loose, free)
        self._first_free = groups * group_size

    def next(self, generator: torch.Generator) -> Tensor:
        """Indices of the next batch, (batch_size,)."""
        parts = []
        if self._groups.size:
            chosen = self._groups.next(generator)
            parts.append((chosen[:, None] * self.group_size + chosen.new_tensor(range(self.group_size))).flatten())
        if self._free.size:
            parts.append(self._first_free + self._free.next(generator))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def groups_of(self, index: Tensor) -> Tensor:
        """Which groups a batch holds, in order.

        Example:
            >>> batches = Batches(8, 5, group_size=3, groups=2, free=2)
            >>> batches.groups_of(torch.tensor([3, 4, 5, 7, 6]))
            tensor([1])
        """
        return index[: self.grouped : self.group_size] // self.group_size

    def visits_once(self, batches: int) -> bool:
        """Whether no point comes twice in this number of batches.

        Example:
            >>> Batches(100, 10).visits_once(10), Batches(100, 10).visits_once(11)
            (True, False)
        """
        return all(batches * kind.size <= kind.n for kind in (self._groups, self._free))

    def part(self, index: Tensor, processes: Processes) -> Tensor:
        """What one process takes of a batch: its share of the groups, then of the free points; no group is cut.

        Example:
            >>> batches = Batches(8, 8, group_size=2, groups=2)
            >>> batches.part(torch.arange(8), Processes(rank=1, size=2))
            tensor([2, 3, 6, 7])
        """
        if processes.size == 1:
            return index
        grouped, free = (
            _share(part, processes, unit, what)
            for part, unit, what in (
                (index[: self.grouped], self.group_size, "groups"),
                (index[self.grouped :], 1, "points in no group"),
            )
        )
        return torch.cat([grouped, free])

    def state_dict(self) -> dict[str, Tensor | int]:
        """The shuffled orders and the places in them."""
        return {
            "groups": self._groups.order,
            "group_cursor": self._groups.cursor,
            "order": self._free.order,
            "cursor": self._free.cursor,
        }

    def load_state_dict(self, state: dict[str, Tensor | int]) -> None:
        """Go on from a saved place."""
        self._groups.order, self._groups.cursor = torch.as_tensor(state["groups"]), int(state["group_cursor"])
        self._free.order, self._free.cursor = torch.as_tensor(state["order"]), int(state["cursor"])


def _share(rows: Tensor, processes: Processes, unit: int, what: str) -> Tensor:
    """One process's share of rows, in whole units."""
    units = len(rows) // unit
    if units % processes.size:
        raise UserError(
            f"a batch must give each of {processes.size} processes as much, got {units} {what} in a batch; choose a "
            f"batch_size with a multiple of {processes.size} of them"
        )
    length = units // processes.size * unit
    return rows[processes.rank * length :][:length]


class _Pass:
    """A shuffled pass over n things, ``size`` at a time."""

    def __init__(self, n: int, size: int) -> None:
        self.n, self.size = n, size
        self.order = torch.empty(0, dtype=torch.long)
        self.cursor = 0

    def next(self, generator: torch.Generator) -> Tensor:
        if self.cursor + self.size > len(self.order):
            self.order = torch.randperm(self.n, generator=generator, device=generator.device)
            self.cursor = 0
        chosen = self.order[self.cursor : self.cursor + self.size]
        self.cursor += self.size
        return chosen
