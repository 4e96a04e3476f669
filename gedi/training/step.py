"""One training step, as a straight line."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gedi.nn import Model
from gedi.precision import full_precision
from gedi.processes import Processes
from gedi.random import Streams
from gedi.sampling import ReplayBuffer
from gedi.training.stage import Negatives, Stage, StepOutputs, Walk
from gedi.types import EnergyFn
from gedi.views import gaussian_noise, manifold_walk


class Batch(NamedTuple):
    """The inputs of one step: data, views, samples of the model, and noised data for score matching.

    ``anchor`` is the data as the views are held against them; ``contrast`` the data that samples are held
    against. Where nothing is done to the data they are all one tensor, and go through the encoder once. With several
    processes this is one's own part of a step, but the labels are all of them.
    """

    x: Tensor
    anchor: Tensor
    contrast: Tensor
    views: dict[str, Tensor]
    negatives: Tensor | None
    noised: Tensor | None
    noise: Tensor | None
    progress: float
    grouped: int = 0
    labels: Tensor | None = None


class JointPass(nn.Module):
    """Every forward pass of a step and the terms made of it, in one call.

    A wrapper for several processes then sees all of the step, and only the terms leave it. Each process encodes its
    own part of the batch; heads and terms see the latents of all, so that batch norm, Sinkhorn and covariances are
    those of the whole batch.
    """

    def __init__(self, model: Model, processes: Processes | None = None) -> None:
        super().__init__()
        self.model = model
        self.processes = processes or Processes()

    def forward(self, batch: Batch, values: Callable[[StepOutputs], dict[str, Tensor]]) -> dict[str, Tensor]:
        """The value of each term; a function says them, since Fabric takes apart what it is given otherwise."""
        return values(self.outputs(batch))

    def outputs(self, batch: Batch) -> StepOutputs:
        """Everything that goes through the encoder goes in one pass; only clustered views meet the heads."""
        model, energy = self.model, self.model.energy
        clustered = [batch.anchor, *batch.views.values()] if batch.views else []
        contrasted = [] if batch.negatives is None else [batch.contrast, batch.negatives]
        if model.generative_encoder is None:
            shared = bool(clustered and contrasted) and batch.contrast is batch.anchor
            latents = self._of_all(batch, model.encoder, [*clustered, *(contrasted[1:] if shared else contrasted)])
            both = [latents[0], latents[-1]] if shared else latents[len(clustered) :]
            energies = [energy.of_latent(latent) for latent in both] if contrasted else []
        else:
            latents = self._of_all(batch, model.encoder, clustered)
            energies = self._of_all(batch, energy, contrasted)
        outputs = model.heads(latents[: len(clustered)])
        score = noise = None
        if batch.noised is not None and batch.noise is not None:
            (score,) = self._of_all(batch, lambda x: energy.with_score(x)[1], [batch.noised])
            (noise,) = self._of_all(batch, lambda x: x, [batch.noise])
        return StepOutputs(
            data=outputs[0] if outputs else None,
            views=dict(zip(batch.views, outputs[1:], strict=True)),
            energy_data=energies[0] if energies else None,
            energy_negatives=energies[1] if energies else None,
            noised_score=score,
            noise=noise,
            progress=batch.progress,
            grouped=batch.grouped * self.processes.size,
            labels=batch.labels,
        )

    def _of_all(self, batch: Batch, function: Callable[[Tensor], Tensor], parts: list[Tensor]) -> list[Tensor]:
        """A function of several batches, at the cost of one call, with the rows of every process: groups first."""
        if not parts:
            return []
        together = function(parts[0] if len(parts) == 1 else torch.cat(parts))
        return self.processes.joined(together, [len(part) for part in parts], front=batch.grouped)


def make_batch(
    stage: Stage,
    x: Tensor,
    walked: Tensor | None,
    energy: EnergyFn,
    buffer: ReplayBuffer,
    streams: Streams,
    progress: float,
    grouped: int = 0,
    labels: Tensor | None = None,
) -> tuple[Batch, dict[str, float]]:
    """Everything the forward passes need, and what sampling has to report."""
    views: dict[str, Tensor] = {}
    info: dict[str, float] = {}
    negatives = noised = noise = None
    anchor = contrast = x
    composed = stage.walk is not None and stage.walk.composed
    if stage.view_noise is not None:
        views["noise"] = augmented(stage, walked if composed and walked is not None else x, streams["view"])
        if stage.augment_both:
            anchor = augmented(stage, x, streams["view"])
    if walked is not None and not composed:
        views["walk"] = walked
    if stage.negatives is not None:
        negatives, info = draw_negatives(stage.negatives, energy, buffer, streams["sampler"])
        if stage.negatives.data_noise > 0 or anchor is not x:
            # so many data as samples: more would only cost passes. Every k-th, since free points come last
            some = x[:: max(1, len(x) // len(negatives))][: len(negatives)]
            contrast = gaussian_noise(some, stage.negatives.data_noise, streams["view"])
    if stage.denoising is not None:
        noised, noise = noise_pairs(x, stage.denoising, streams["denoising"])
    return Batch(x, anchor, contrast, views, negatives, noised, noise, progress, grouped, labels), info


@full_precision  # coordinates in half precision would be tenths of pixels off
def augmented(stage: Stage, x: Tensor, generator: torch.Generator) -> Tensor:
    """The augmented view of a batch."""
    assert stage.view_noise is not None
    changed = x if stage.augment is None else stage.augment(x, generator)
    return gaussian_noise(changed, stage.view_noise, generator)


@torch.no_grad()
def draw_negatives(
    settings: Negatives, energy: EnergyFn, buffer: ReplayBuffer, generator: torch.Generator
) -> tuple[Tensor, dict[str, float]]:
    """Draw chains, move them, write them back."""
    slots, x = buffer.draw(settings.chains, generator)
    if settings.reinit > 0:
        x = buffer.restart(x, settings.initial.sample(len(x), generator), settings.reinit, generator)
    if settings.teleports:
        chain = settings.teleport.begin(energy, x, generator, settings.teleports)
        chain, acceptance = settings.langevin.go_on(energy, chain, generator)
        x = chain.x
    else:
        x, acceptance = settings.langevin.run(energy, x, generator)
    buffer.put(slots, x)
    return x, {"acceptance": acceptance}


def noise_pairs(x: Tensor, sigma: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Each point noised twice, with opposite noise: the pair's errors cancel to first order."""
    noise = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
    noise = torch.cat([noise, -noise])
    return torch.cat([x, x]) + sigma * noise, noise


def walk_from(settings: Walk, energy: EnergyFn, x: Tensor, generator: torch.Generator, every: int = 0) -> Tensor:
    """The end of a manifold walk from each point, or its path, every so many steps."""
    relax = settings.relax
    return manifold_walk(
        energy,
        x,
        generator,
        steps=settings.steps,
        radius=settings.radius,
        direction=settings.direction,
        corrector=settings.corrector,
        inertia=settings.inertia,
        relax=None if relax is None else lambda e, x, g: relax.run(e, x, g)[0],
        every=every,
    )


def radial_energy(x: Tensor) -> Tensor:
    """The control: score ``-x`` with no model at all. Circles fall to it; moons do not."""
    return x.flatten(1).square().sum(dim=1) / 2
