"""One training step, as a straight line."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gedi.nn import Model
from gedi.random import Streams
from gedi.sampling import Chain, ReplayBuffer
from gedi.training.stage import Negatives, Stage, StepOutputs, Term, Walk
from gedi.types import EnergyFn
from gedi.views import gaussian_noise, manifold_walk


class Batch(NamedTuple):
    """The inputs of one step: data, views, samples of the model, and noised data for score matching."""

    x: Tensor
    views: dict[str, Tensor]
    negatives: Tensor | None
    noised: Tensor | None
    noise: Tensor | None
    progress: float


class JointPass(nn.Module):
    """Every forward pass of a step and the terms made of it, in one call.

    A wrapper for several processes then sees all of the step, and only the terms leave it.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch, terms: Mapping[str, tuple[float, Term]]) -> dict[str, Tensor]:
        """The value of each term, unweighted."""
        out = self.outputs(batch)
        return {name: term(out) for name, (_, term) in terms.items()}

    def outputs(self, batch: Batch) -> StepOutputs:
        """Everything that goes through the encoder goes in one pass; only clustered views meet the heads."""
        model, energy = self.model, self.model.energy
        clustered = [batch.x, *batch.views.values()] if batch.views else []
        contrasted = [] if batch.negatives is None else [batch.x, batch.negatives]
        if model.generative_encoder is None:
            latents = _split(model.encoder, [*(clustered or [batch.x]), *contrasted[1:]])
            energies = [energy.of_latent(latents[0]), energy.of_latent(latents[-1])] if contrasted else []
        else:
            latents = _split(model.encoder, clustered) if clustered else []
            energies = _split(energy, contrasted) if contrasted else []
        outputs = model.heads(latents[: len(clustered)])
        return StepOutputs(
            data=outputs[0] if outputs else None,
            views=dict(zip(batch.views, outputs[1:], strict=True)),
            energy_data=energies[0] if energies else None,
            energy_negatives=energies[1] if energies else None,
            noised_score=None if batch.noised is None else energy.with_score(batch.noised)[1],
            noise=batch.noise,
            progress=batch.progress,
        )


def _split(function: Callable[[Tensor], Tensor], parts: list[Tensor]) -> list[Tensor]:
    """A function of several batches at the cost of one call."""
    return list(torch.split(function(torch.cat(parts)), [len(part) for part in parts]))


def make_batch(
    stage: Stage,
    x: Tensor,
    walked: Tensor | None,
    energy: EnergyFn,
    buffer: ReplayBuffer,
    streams: Streams,
    progress: float,
) -> tuple[Batch, dict[str, float]]:
    """Everything the forward passes need, and what sampling has to report."""
    views: dict[str, Tensor] = {}
    info: dict[str, float] = {}
    negatives = noised = noise = None
    if stage.view_noise is not None:
        views["noise"] = gaussian_noise(x, stage.view_noise, streams["view"])
    if walked is not None:
        views["walk"] = walked
    if stage.negatives is not None:
        negatives, info = draw_negatives(stage.negatives, energy, buffer, streams["sampler"])
    if stage.denoising is not None:
        noised, noise = noise_pairs(x, stage.denoising, streams["denoising"])
    return Batch(x, views, negatives, noised, noise, progress), info


@torch.no_grad()
def draw_negatives(
    settings: Negatives, energy: EnergyFn, buffer: ReplayBuffer, generator: torch.Generator
) -> tuple[Tensor, dict[str, float]]:
    """Draw chains, move them, write them back."""
    slots, x = buffer.draw(settings.chains, generator)
    if settings.reinit > 0:
        x = buffer.restart(x, settings.initial.sample(len(x), generator), settings.reinit, generator)
    chain = Chain.at(energy, x)
    for _ in range(settings.teleports):
        chain, _ = settings.teleport.step(energy, chain, generator)
    accepted = x.new_zeros(())
    for _ in range(settings.langevin.steps):
        chain, accept = settings.langevin.step(energy, chain, generator)
        accepted += accept.float().mean()
    buffer.put(slots, chain.x)
    return chain.x, {"acceptance": float(accepted) / max(settings.langevin.steps, 1)}


def noise_pairs(x: Tensor, sigma: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Each point noised twice, with opposite noise: the pair's errors cancel to first order."""
    noise = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
    noise = torch.cat([noise, -noise])
    return torch.cat([x, x]) + sigma * noise, noise


def walk_from(settings: Walk, energy: EnergyFn, x: Tensor, generator: torch.Generator) -> Tensor:
    """The end of a manifold walk from each point."""
    return manifold_walk(
        energy,
        x,
        generator,
        steps=settings.steps,
        radius=settings.radius,
        direction=settings.direction,
        corrector=settings.corrector,
        inertia=settings.inertia,
    )


def radial_energy(x: Tensor) -> Tensor:
    """The control: score ``-x`` with no model at all. Circles fall to it; moons do not."""
    return x.square().sum(dim=1) / 2
