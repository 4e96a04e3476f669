"""Samples from scratch: chains that owe nothing to training."""

import torch
from torch import Tensor

from gedi.sampling.box import Box
from gedi.sampling.langevin import Chain, Langevin, Teleport
from gedi.types import EnergyFn


@torch.no_grad()
def fresh_samples(
    energy: EnergyFn, n: int, box: Box, generator: torch.Generator, *, noise: float = 0.05, rounds: int = 200
) -> Tensor:
    """n samples of ``exp(-E)`` on the box: uniform starts, then rounds of a jump and three adjusted moves.

    Every move is Metropolis-adjusted, so the target is exact whatever sampler the model was trained with;
    only the number of rounds decides how close the chains come.

    Example:
        >>> box = Box(torch.tensor([-5.0, -5.0]), torch.tensor([5.0, 5.0]))
        >>> gaussian = lambda x: x.square().sum(1) / 2
        >>> x = fresh_samples(gaussian, 2000, box, torch.Generator().manual_seed(0), noise=0.5)
        >>> abs(x.var().item() - 1) < 0.1
        True
    """
    jump, local = Teleport(box), Langevin(noise=noise, metropolis=True, box=box)
    chain = Chain.at(energy, box.sample(n, generator))
    for _ in range(rounds):
        chain, _ = jump.step(energy, chain, generator)
        for _ in range(3):
            chain, _ = local.step(energy, chain, generator)
    return chain.x
