"""The plain eager form of one toy training step: same mathematics, same settings, same network as ours.

Scores by autograd, one forward pass for each view, walks from every batch.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.bench import textbook
from gedi.bench.workloads import energy_settings
from gedi.config import Config, StageConfig
from gedi.nn import Model
from gedi.objectives.negative_free import NegativeFree
from gedi.objectives.swapped import Swapped
from gedi.sampling import Box


class PlainStep:
    """Training steps of both stages for a model; see :class:`gedi.training.Trainer` for ours.

    Args:
        model: trained in place.
        config: the settings of the run.
        box: where chains live.
    """

    def __init__(self, model: Model, config: Config, box: Box) -> None:
        self.model, self.config, self.box = model, config, box
        self.chains = box.sample(energy_settings(config).buffer, torch.Generator().manual_seed(0))
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def stage1(self, x: Tensor) -> None:
        """The density alone."""
        self._update(self.density_loss(x, self.negatives(), torch.randn_like(x), self.config.stage1))

    def stage2(self, x: Tensor, walked: Tensor | None = None) -> None:
        """Everything; without ``walked`` the walks are made too."""
        view = x + self.config.augment.noise * torch.randn_like(x)
        walked = self.walk(x) if walked is None else walked
        density = self.density_loss(x, self.negatives(), torch.randn_like(x), self.config.stage2)
        self._update(density + self.cluster_loss(x, view, walked))

    def energy(self, x: Tensor) -> Tensor:
        """``-u^T enc(x)``."""
        latent: Tensor = self.model.encoder(x)
        return -(latent @ self.model.energy.direction)

    def score(self, x: Tensor, graph: bool = False) -> tuple[Tensor, Tensor]:
        """Energy and score; with ``graph`` the score can be differentiated."""
        x = x.detach().requires_grad_(True)
        energy = self.energy(x)
        return energy, -torch.autograd.grad(energy.sum(), x, create_graph=graph)[0]

    def negatives(self) -> Tensor:
        """Chains drawn, sent across the box by Metropolis jumps, moved by adjusted Langevin steps, put back."""
        settings = energy_settings(self.config)
        index = torch.randint(0, len(self.chains), (settings.chains,))
        x = self.chains[index]
        for _ in range(settings.teleports):
            y = self.box.low + (self.box.high - self.box.low) * torch.rand_like(x)
            accept = torch.rand(len(x)).log() < (self.energy(x) - self.energy(y)).detach()
            x = torch.where(accept[:, None], y, x)
        alpha = settings.noise**2 / 2
        for _ in range(settings.steps):
            energy, g = self.score(x)
            noise = torch.randn_like(x)
            y = x + alpha * g + settings.noise * noise
            energy_there, g_there = self.score(y)
            back = (x - y - alpha * g_there) / settings.noise
            ratio = (energy - energy_there).detach() + (noise.square() - back.square()).sum(1) / 2
            inside = ((y >= self.box.low) & (y <= self.box.high)).all(1)
            accept = (torch.rand(len(x)).log() < ratio) & inside
            x = torch.where(accept[:, None], y, x)
        self.chains[index] = x.detach()
        return x.detach()

    def walk(self, x: Tensor) -> Tensor:
        """Where walks from a batch end."""
        settings = self.config.walk
        assert settings.radius is not None
        length = settings.radius * (0.5 + 0.5 * torch.rand(len(x), 1))
        delta = F.normalize(torch.randn_like(x), dim=1) * length
        for _ in range(settings.steps):
            _, g = self.score(x + delta)
            move = delta - (g * delta).sum(1, keepdim=True) / g.square().sum(1, keepdim=True).clamp_min(1e-30) * g
            climb = settings.corrector * g
            move = move + climb * (settings.radius / climb.norm(dim=1, keepdim=True).clamp_min(1e-12)).clamp_max(1)
            x = x + move
            delta = F.normalize(settings.inertia * delta + (1 - settings.inertia) * move, dim=1) * length
        return x.detach()

    def density_loss(self, x: Tensor, negatives: Tensor, noise: Tensor, stage: StageConfig) -> Tensor:
        """The generative term and score matching at a point and its mirror image."""
        pair = torch.cat([noise, -noise])
        _, g = self.score(torch.cat([x, x]) + energy_settings(self.config).width * pair, graph=True)
        generative = textbook.generative(self.energy(x), self.energy(negatives))
        matching = textbook.denoising(g, pair, energy_settings(self.config).width)
        return stage.density["generative"] * generative + stage.density["denoising"] * matching

    def cluster_loss(self, x: Tensor, view: Tensor, walked: Tensor) -> Tensor:
        """The negative-free term and the cluster terms of both views."""
        model, config, terms = self.model, self.config, self.config.stages["stage2"].terms
        swapping, free = terms["swapped"], terms["negative_free"]
        assert isinstance(swapping, Swapped)
        assert isinstance(free, NegativeFree)
        latents = [model.encoder(part) for part in (x, view, walked)]
        embeddings = [model.projector(latent) for latent in latents]
        data, noised, moved = (model.prototypes(embedding) for embedding in embeddings)
        swapped = partial(
            textbook.swapped_prediction,
            temperature=config.model.temperature,
            epsilon=swapping.epsilon,
            iterations=swapping.iterations,
        )
        spread = textbook.negative_free(embeddings[0], latents[0], latents[1], free.ridge)
        loss = free.weight * spread + swapping.weight * swapped(data, noised)
        return loss + terms["swapped_walk"].weight * swapped(data, moved)

    def _update(self, loss: Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
