"""Which points come next."""

import torch
from torch import Tensor


class Batches:
    """Shuffled passes over n points; a batch never repeats a point and short ends are skipped."""

    def __init__(self, n: int, batch_size: int) -> None:
        self.n = n
        self.batch_size = batch_size
        self.order = torch.empty(0, dtype=torch.long)
        self.cursor = 0

    def next(self, generator: torch.Generator) -> Tensor:
        """Indices of the next batch, (batch_size,)."""
        if self.cursor + self.batch_size > len(self.order):
            self.order = torch.randperm(self.n, generator=generator, device=generator.device)
            self.cursor = 0
        batch = self.order[self.cursor : self.cursor + self.batch_size]
        self.cursor += self.batch_size
        return batch

    def state_dict(self) -> dict[str, Tensor | int]:
        """The shuffled order and the place in it."""
        return {"order": self.order, "cursor": self.cursor}

    def load_state_dict(self, state: dict[str, Tensor | int]) -> None:
        """Go on from a saved place."""
        self.order = torch.as_tensor(state["order"])
        self.cursor = int(state["cursor"])
