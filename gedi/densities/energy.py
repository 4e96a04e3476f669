"""The paper's density: an energy ``-u^T enc(x)``, trained against Langevin samples in a replay buffer."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from gedi import losses
from gedi.densities.density import DRIFT, EXTENT, GAP, Carried, Density, Draw, Joined, Place, Values
from gedi.errors import UserError
from gedi.nn import Model
from gedi.nn.model import Energy, EnergyHead
from gedi.random import Streams
from gedi.sampling import Langevin, ReplayBuffer, Teleport, fresh_samples
from gedi.score import energy_and_score
from gedi.settings import Amount, Count, Positive, Share, Switch, Width
from gedi.types import Spread
from gedi.views import gaussian_noise

_FRESH_STEPS = 500  # moves of a chain of images that owes nothing to training
_SCORED = 16  # chains that the score is measured at, where no term has it anyway


class EnergyDensity(Density):
    """Terms: ``generative`` (samples against data), ``denoising`` (score matching), ``penalty`` (squared energies)."""

    chains: Positive = 128
    steps: Count = 2
    noise: Width = 0.08  # sigma
    step_size: Width | None = None  # alpha; None: sigma^2 / 2, temperature 1
    metropolis: Switch = True
    teleports: Count = 1  # Metropolis jumps across the box, each step
    reinit: Share = 0.0  # blind re-initialisation, each draw
    buffer: Positive = 10_000
    initial: Literal["uniform", "normal"] = "uniform"  # on the box, or with the data's mean and spread
    margin: Amount = 0.5  # the box: the data's range and this much more
    clamp: Switch = True  # False: chains may leave the box (the literal setting)
    clip: Width | None = None
    data_noise: Amount = 0.0  # noise on the data that samples are held against; images have no density without
    width: Width = 0.05  # of the blur of score matching
    own_encoder: Switch = False  # an encoder for the energy alone; else it shares the clusters'

    kind: ClassVar[str] = "energy"
    terms: ClassVar[tuple[str, ...]] = ("generative", "denoising", "penalty")

    def bind(self, place: Place) -> Self:
        """Chains are shared out among the processes."""
        size = place.processes.size
        if self.chains % size:
            raise UserError(
                f"density.chains must give each of {size} processes as many, got {self.chains}; "
                f"use {self.chains - self.chains % size or size}"
            )
        if self.chains > self.buffer:
            raise UserError(
                f"density.chains must be at most density.buffer, got {self.chains} chains for a buffer of {self.buffer}"
            )
        return super().bind(place)

    @property
    def beyond(self) -> float:
        """The box's margin."""
        return self.margin

    @property
    def encoders(self) -> int:
        """Two where it has its own."""
        return 1 + self.own_encoder

    def footprint(self) -> dict[str, int]:
        """The replay buffer."""
        return {f"density.buffer={self.buffer}": self.buffer}

    def module(
        self, latent: int, encoder: Callable[[str], nn.Module], streams: Streams, shape: Sequence[int] = ()
    ) -> nn.Module:
        """The direction ``u``, and an encoder where it has its own."""
        own = encoder("generative_encoder") if self.own_encoder else None
        return EnergyHead(latent, own, streams["direction"])

    @property
    def langevin(self) -> Langevin:
        """How chains move."""
        box = self._place.box if self.clamp else None
        return Langevin(self.noise, self.step_size, self.steps, self.metropolis, self.clip, box)

    @property
    def temperature(self) -> float:
        """That of the chains."""
        return self.langevin.temperature

    def begin(self, generator: torch.Generator) -> Carried:
        """A buffer of new chains, of which this process keeps its share."""
        chains = self._place.initial.sample(self.buffer, generator)
        return {"chains": Spread(self._place.processes.own(chains), self.buffer)}

    def draw(
        self,
        model: Model,
        x: Tensor,
        anchor: Tensor,
        weights: Mapping[str, float],
        carried: Carried,
        streams: Streams,
    ) -> tuple[Draw, Carried]:
        """Chains moved on, the data they are held against, and noised data for score matching."""
        encoded: list[Tensor] = []
        apart: dict[str, Tensor] = {}
        info: dict[str, float] = {}
        if self._samples(weights):
            buffer = ReplayBuffer(carried["chains"].rows)
            samples, info["acceptance"] = self.move(self.energy(model), buffer, streams["sampler"])
            contrast = anchor
            if self.data_noise > 0 or anchor is not x:
                # as many data as samples: more would only cost passes. Every k-th, since free points come last
                some = x[:: max(1, len(x) // len(samples))][: len(samples)]
                contrast = gaussian_noise(some, self.data_noise, streams["view"])
            encoded = [contrast, samples]
            apart["samples"] = samples
        if weights.get("denoising", 0) > 0:
            apart["noised"], apart["noise"] = noise_pairs(x, self.width, streams["denoising"])
        if self.own_encoder and encoded:
            apart["contrast"], encoded = encoded[0], []
        return Draw(encoded, apart, info), carried

    @torch.no_grad()
    def move(self, energy: Energy, buffer: ReplayBuffer, generator: torch.Generator) -> tuple[Tensor, float]:
        """Draw chains, move them, write them back; where they are, and the share of moves accepted."""
        slots, x = buffer.draw(self.chains // self._place.processes.size, generator)
        langevin = self.langevin
        if self.reinit > 0:
            x = buffer.restart(x, self._place.initial.sample(len(x), generator), self.reinit, generator)
        if self.teleports:
            jump = Teleport(self._place.box, langevin.temperature)
            chain = jump.begin(energy, x, generator, self.teleports)
            chain, acceptance = langevin.go_on(energy, chain, generator)
            x = chain.x
        else:
            x, acceptance = langevin.run(energy, x, generator)
        buffer.put(slots, x)
        return x, acceptance

    def values(
        self,
        model: Model,
        draw: Draw,
        latents: list[Tensor],
        weights: Mapping[str, float],
        joined: Joined,
        watching: bool,
    ) -> Values:
        """Energies of data and samples from their latents, and the score at noised data."""
        energy, found, figures = self.energy(model), {}, {}
        if "samples" in draw.apart:
            data, samples = (
                joined(energy, [draw.apart["contrast"], draw.apart["samples"]])
                if self.own_encoder
                else [energy.of_latent(latent) for latent in latents]
            )
            if weights.get("generative", 0) > 0:
                found["generative"] = losses.generative(data, samples)
            if weights.get("penalty", 0) > 0:
                found["penalty"] = losses.energy_penalty(data, samples)
            if watching:
                figures[GAP] = (data.detach().mean() - samples.detach().mean()).abs()
        if "noised" in draw.apart:
            (score,) = joined(lambda x: energy.with_score(x)[1], [draw.apart["noised"]])
            (noise,) = joined(lambda x: x, [draw.apart["noise"]])
            found["denoising"] = losses.denoising(score, noise, self.width)
            if watching and "samples" in draw.apart:
                figures[DRIFT] = self._drift(score.detach())
        return Values({name: found[name] for name in EnergyDensity.terms if name in found}, figures)

    @torch.no_grad()
    def watched(self, model: Model, draw: Draw) -> dict[str, Tensor]:
        """How far chains are from their box; where no term has the score anyway, how far the next move takes some."""
        if "samples" not in draw.apart:
            return {}
        chains, box = draw.apart["samples"], self._place.box
        outside = (chains - box.clamp(chains)).flatten(1).norm(dim=1)
        found = {EXTENT: outside.square().mean().sqrt() / (box.high - box.low).norm()}
        if "noised" not in draw.apart:
            found[DRIFT] = self._drift(energy_and_score(self.energy(model), chains[:_SCORED])[1])
        return found

    def _drift(self, score: Tensor) -> Tensor:
        """The root mean square length of a move without its noise, in diagonals of the box."""
        box = self._place.box
        if self.clip is not None:
            score = score.clamp(-self.clip, self.clip)
        length = score.flatten(1).square().sum(dim=1).mean().sqrt()
        diagonal: Tensor = (box.high - box.low).norm()
        return self.langevin.alpha * length / diagonal

    def softer(self, factor: float) -> Self:
        """Smaller moves at the same temperature."""
        step_size = None if self.step_size is None else self.step_size * factor
        softer = self.model_copy(update={"noise": self.noise * math.sqrt(factor), "step_size": step_size})
        softer._place = self._place
        return softer

    def softer_weights(self, weights: Mapping[str, float], penalty: float) -> dict[str, float]:
        """Squared energies weigh more."""
        generative = weights.get("generative", 0.0)
        if generative == 0:
            return dict(weights)
        return {**weights, "penalty": weights.get("penalty", 0.0) + generative * penalty}

    def report(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Step size and noise of the chains, and the weight of the squared energies."""
        found = {"step_size": self.langevin.alpha, "noise": self.noise} if self._samples(weights) else {}
        return found | ({"penalty": weights["penalty"]} if weights.get("generative") else {})

    @staticmethod
    def _samples(weights: Mapping[str, float]) -> bool:
        """Whether any term needs chains."""
        return weights.get("generative", 0) > 0 or weights.get("penalty", 0) > 0

    def kept(self, carried: Carried) -> Spread:
        """The persistent chains."""
        chains: Spread = carried["chains"]
        return chains

    def energy(self, model: Model) -> Energy:
        """The model's own."""
        return model.energy

    def sample(self, model: Model, n: int, generator: torch.Generator) -> Tensor:
        """Exact moves with jumps for rows of a table; for images, chains from noise by the sampler of training."""
        box = self._place.box
        if box.low.dim() == 1:
            return fresh_samples(self.energy(model), n, box, generator)
        sampler = replace(self.langevin, steps=_FRESH_STEPS)
        return sampler.run(self.energy(model), box.sample(n, generator), generator)[0]


def noise_pairs(x: Tensor, sigma: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Each point noised twice, with opposite noise: the pair's errors cancel to first order."""
    noise = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
    noise = torch.cat([noise, -noise])
    return torch.cat([x, x]) + sigma * noise, noise
