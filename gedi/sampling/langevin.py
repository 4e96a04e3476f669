"""Langevin dynamics (SGLD), plain or Metropolis-adjusted, and Metropolis jumps.

A method is ``step(energy, chain, generator) -> (chain, acceptance)``. The chain carries the energy and
score of where it stands, so an adjusted step costs one evaluation, like a plain one.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from gedi.sampling.box import Box
from gedi.score import energy_and_score
from gedi.types import EnergyFn


class Chain(NamedTuple):
    """Where n chains stand: position (n, *shape), energy (n,) and score (n, *shape) there."""

    x: Tensor
    energy: Tensor
    score: Tensor

    @classmethod
    def at(cls, energy: EnergyFn, x: Tensor) -> "Chain":
        """Chains that stand at ``x``."""
        return cls(x, *energy_and_score(energy, x))

    def split(self, n: int) -> list["Chain"]:
        """The chains in parts of n."""
        return list(map(Chain, *(torch.split(part, n) for part in self)))

    def move(self, accept: Tensor, proposal: "Chain") -> "Chain":
        """The proposal where accepted, the old place elsewhere."""
        wide = _as_column(accept, self.x)
        return Chain(
            torch.where(wide, proposal.x, self.x),
            torch.where(accept, proposal.energy, self.energy),
            torch.where(wide, proposal.score, self.score),
        )


@dataclass(frozen=True)
class Langevin:
    r"""Stochastic gradient Langevin dynamics.

    .. math:: x \leftarrow x + \alpha \nabla \log p(x) + \sigma \epsilon

    samples ``exp(-E / temperature)`` with temperature :math:`\sigma^2 / 2\alpha`, up to an error that
    grows with the step where the energy is steep: on a Gaussian of standard deviation s the stationary
    variance is :math:`\sigma^2 / (1 - (1 - \alpha/s^2)^2)`. ``metropolis`` removes the error: each move
    is accepted with the probability that makes the target exactly stationary (MALA).

    Args:
        step_size: ``alpha``; None means ``sigma^2 / 2``, temperature 1.
        noise: ``sigma``.
        steps: moves per call of :meth:`run`.
        metropolis: accept or reject each move.
        clip: the score's components are limited to ``+-clip`` in the drift.
        box: chains stay inside (plain: clamped; Metropolis: moves out are rejected).

    Source: Welling & Teh 2011; Roberts & Tweedie 1996 (MALA). ``alpha = 1, sigma = 0.01`` is the practice
    of the field for images and samples at temperature 5e-5: it is not a sampler of ``exp(-E)``.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> gaussian = lambda x: x.square().sum(1) / 2
        >>> x, acceptance = Langevin(noise=1.0, steps=50, metropolis=True).run(gaussian, torch.zeros(4000, 1), g)
        >>> abs(x.var().item() - 1) < 0.1
        True
    """

    noise: float
    step_size: float | None = None
    steps: int = 1
    metropolis: bool = False
    clip: float | None = None
    box: Box | None = None

    @property
    def alpha(self) -> float:
        """The step size in force."""
        return self.noise**2 / 2 if self.step_size is None else self.step_size

    @property
    def temperature(self) -> float:
        """``sigma^2 / (2 alpha)``: what ``E`` is divided by in the density that is sampled."""
        return self.noise**2 / (2 * self.alpha)

    @torch.no_grad()
    def step(self, energy: EnergyFn, chain: Chain, generator: torch.Generator) -> tuple[Chain, Tensor]:
        """One move of every chain, and which moves were accepted (n,)."""
        epsilon = _normal_like(chain.x, generator)
        x = self._move(chain.x, chain.score, epsilon)
        proposal = Chain.at(energy, x)
        if not self.metropolis:
            return proposal, torch.ones_like(proposal.energy, dtype=torch.bool)
        # log of  q(x | x') / q(x' | x):  the noise that would lead back is -(epsilon + k t) with k = alpha / sigma and
        # t the sum of both scores, so the difference of squares is  -k t . (epsilon + k t / 2)
        k = self.alpha / self.noise
        both = self._limited(chain.score) + self._limited(proposal.score)
        back = (both * torch.add(epsilon, both, alpha=k / 2)).flatten(1).sum(dim=1)
        log_ratio = torch.sub((chain.energy - proposal.energy) / self.temperature, back, alpha=k)
        accept = _accept(log_ratio, generator)
        if self.box is not None:
            accept &= self.box.contains(x)
        return chain.move(accept, proposal), accept

    @torch.no_grad()
    def run(self, energy: EnergyFn, x: Tensor, generator: torch.Generator) -> tuple[Tensor, float]:
        """``steps`` moves from ``x``: the end points, and the share of moves accepted.

        Plain moves cost one evaluation each: where a chain ends, nobody needs its score.
        """
        if not self.metropolis:
            for _ in range(self.steps):
                x = self._move(x, energy_and_score(energy, x)[1], _normal_like(x, generator))
            return x, float(self.steps > 0)
        chain, accepted = self.go_on(energy, Chain.at(energy, x), generator)
        return chain.x, accepted

    @torch.no_grad()
    def go_on(self, energy: EnergyFn, chain: Chain, generator: torch.Generator) -> tuple[Chain, float]:
        """``steps`` moves of chains that know where they stand, and the share of moves accepted."""
        accepted = torch.zeros((), device=chain.x.device, dtype=torch.long)
        for _ in range(self.steps):
            chain, accept = self.step(energy, chain, generator)
            accepted += torch.count_nonzero(accept)
        return chain, accepted.item() / max(self.steps * len(chain.x), 1)

    def _move(self, x: Tensor, score: Tensor, epsilon: Tensor) -> Tensor:
        """Where a move leads; plain ones stay in the box, adjusted ones are refused if they leave it."""
        x = torch.add(x, self._limited(score), alpha=self.alpha).add_(epsilon, alpha=self.noise)
        return self.box.clamp(x) if self.box is not None and not self.metropolis else x

    def _limited(self, score: Tensor) -> Tensor:
        return score if self.clip is None else score.clamp(-self.clip, self.clip)


@dataclass(frozen=True)
class Teleport:
    r"""A jump to a uniform place in the box, accepted by Metropolis.

    .. math:: x' \sim U(\mathrm{box}), \qquad P(\mathrm{accept}) = \min(1, e^{(E(x) - E(x')) / T})

    Local moves cannot cross the empty space between clusters, so without jumps the share of chains in
    each cluster is whatever it was at the start, and the energy learns wrong masses to make up for it.
    Re-initialising a fixed fraction blindly does move chains, but to places the model does not sample;
    a Metropolis jump is exact. In many dimensions it is simply never accepted.

    Args:
        box: where proposals come from.
        temperature: ``T``.

    Example:
        >>> box = Box(torch.tensor([-1.0]), torch.tensor([1.0]))
        >>> g = torch.Generator().manual_seed(0)
        >>> flat = lambda x: x.sum(1) * 0
        >>> chain, accept = Teleport(box).step(flat, Chain.at(flat, torch.zeros(100, 1)), g)
        >>> bool(accept.all())
        True
    """

    box: Box
    temperature: float = 1.0

    @torch.no_grad()
    def step(self, energy: EnergyFn, chain: Chain, generator: torch.Generator) -> tuple[Chain, Tensor]:
        """One proposal for every chain, and which were accepted (n,)."""
        proposal = Chain.at(energy, self.box.sample(len(chain.x), generator))
        return self._jump(chain, proposal, generator)

    @torch.no_grad()
    def begin(self, energy: EnergyFn, x: Tensor, generator: torch.Generator, jumps: int = 1) -> Chain:
        """Chains that stand at ``x``, after a number of jumps.

        Where a jump leads does not depend on where a chain stands, so start and proposals are evaluated in one call.
        """
        places = [x, *(self.box.sample(len(x), generator) for _ in range(jumps))]
        chain, *proposals = Chain.at(energy, torch.cat(places)).split(len(x))
        for proposal in proposals:
            chain, _ = self._jump(chain, proposal, generator)
        return chain

    def _jump(self, chain: Chain, proposal: Chain, generator: torch.Generator) -> tuple[Chain, Tensor]:
        accept = _accept((chain.energy - proposal.energy) / self.temperature, generator)
        return chain.move(accept, proposal), accept


def _accept(log_ratio: Tensor, generator: torch.Generator) -> Tensor:
    uniform = torch.rand(log_ratio.shape, generator=generator, device=log_ratio.device, dtype=log_ratio.dtype)
    return uniform.log() < log_ratio


def _normal_like(x: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)


def _as_column(flags: Tensor, x: Tensor) -> Tensor:
    return flags.view(-1, *[1] * (x.dim() - 1))
