"""The network's own passes of a training step, and nothing else: the floor that no implementation goes below.

No draws, no buffer, no augmentation, no terms, no optimiser: the same evaluations of the same network on as many
points.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from gedi.bench.workloads import Workload
from gedi.densities.energy import EnergyDensity
from gedi.score import score
from gedi.training import Stage


def evaluations(stage: Stage) -> tuple[int, int]:
    """How often a step asks for the score of all its chains, and of all its batch (walks made in every step).

    Moves that are judged need the energy where the chain stands, hence one more.
    """
    chains, density = 0, stage.density
    if isinstance(density, EnergyDensity) and _sampled(stage):
        judged = density.metropolis or density.teleports > 0
        chains = density.steps + density.teleports + judged
    walk = stage.walk
    return chains, walk.steps if walk is not None and walk.every_step else 0


def bare_passes(work: Workload) -> Callable[[], None]:
    """A function that makes the passes of one step of a workload."""
    trainer, stage = work.prepared.trainer, work.leg.stage
    model, n = trainer.model, stage.batch_size
    x = trainer.train[:n]
    density = stage.density
    assert isinstance(density, EnergyDensity) or not _sampled(stage)
    chains = _rows(x, density.chains if isinstance(density, EnergyDensity) and _sampled(stage) else 0)
    of_chains, of_batch = evaluations(stage)
    views = len(stage.looks)
    clustered = (1 + views) * n if views else 0
    # data that samples are held against: their own noise makes them another pass, else the anchor's serves
    both = stage.view is not None and stage.view.both and "view" in stage.looks
    apart = both or (isinstance(density, EnergyDensity) and density.data_noise > 0) or not clustered
    contrast = len(chains) + (min(n, len(chains)) if apart else 0) if len(chains) else 0
    everything = _rows(x, clustered + contrast)
    noised = torch.cat([x, x]) if stage.density_weights.get("denoising") else None

    def passes() -> None:
        for _ in range(of_chains):
            score(model.energy, chains)
        for _ in range(of_batch):
            score(model.energy, x)
        model.zero_grad()
        latent = model.encoder(everything)
        total = model.energy.of_latent(latent[clustered:]).sum() if contrast else latent.new_zeros(())
        if views:
            heads = model.heads(list(torch.split(latent[:clustered], n)))
            total = total + sum(out.logits.sum() for out in heads)
            if heads[0].finer is not None:
                total = total + sum(out.finer.sum() for out in heads if out.finer is not None)
        if noised is not None:
            total = total + model.energy.with_score(noised)[1].square().sum()
        total.backward()

    return passes


def _sampled(stage: Stage) -> bool:
    return any(stage.density_weights.get(term) for term in ("generative", "penalty"))


def _rows(x: Tensor, n: int) -> Tensor:
    """So many rows, of a batch repeated."""
    return torch.cat([x] * (1 + n // len(x)))[:n]
