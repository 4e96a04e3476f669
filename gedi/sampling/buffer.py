"""The replay buffer: chains that persist from one training step to the next."""

import torch
from torch import Tensor

from gedi.errors import UserError


class ReplayBuffer:
    """Persistent chains.

    A draw takes random slots; a fraction of the drawn chains is begun again from the initial
    distribution; what the sampler returns is written back to the very slots that were drawn.

    Args:
        chains: the positions, (size, *shape); they are written to.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> buffer = ReplayBuffer(torch.zeros(100, 2))
        >>> slots, x = buffer.draw(10, g)
        >>> buffer.put(slots, x + 1)
        >>> int(buffer.chains.sum())
        20
    """

    def __init__(self, chains: Tensor) -> None:
        self.chains = chains

    def draw(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """n different slots (n,) and the chains in them (n, *shape)."""
        if n > len(self.chains):
            raise UserError(f"a buffer of {len(self.chains)} chains cannot give {n}: enlarge the buffer")
        slots = torch.randperm(len(self.chains), generator=generator, device=self.chains.device)[:n]
        return slots, self.chains[slots]

    def put(self, slots: Tensor, x: Tensor) -> None:
        """Write chains back to the slots they were drawn from."""
        self.chains[slots] = x.detach()

    @staticmethod
    def restart(x: Tensor, fresh: Tensor, fraction: float, generator: torch.Generator) -> Tensor:
        """``x`` with each chain replaced by its ``fresh`` one with probability ``fraction``."""
        chosen = torch.rand(len(x), generator=generator, device=x.device) < fraction
        return torch.where(chosen.view(-1, *[1] * (x.dim() - 1)), fresh, x)
