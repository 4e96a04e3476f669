"""The plain eager form of one training step: what a reader of the paper would write first.

Same mathematics, same settings, same network; scores by autograd, one forward pass per view, walks from
every batch. It exists to be measured against and to check the product's gradients.
"""

import torch
import torch.nn.functional as F

from gedi.nn import Model


class Reference:
    """A training step of both stages for a model and a batch."""

    def __init__(self, model: Model, config, box) -> None:
        self.model, self.config, self.box = model, config, box
        self.chains = box.sample(config.sampling.buffer, torch.Generator().manual_seed(0))
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def energy(self, x):
        return -(self.model.encoder(x) @ self.model.direction)

    def score(self, x, graph=False):
        x = x.detach().requires_grad_(True)
        e = self.energy(x)
        return e, -torch.autograd.grad(e.sum(), x, create_graph=graph)[0]

    def negatives(self):
        s = self.config.sampling
        index = torch.randint(0, len(self.chains), (s.chains,))
        x = self.chains[index]
        for _ in range(s.teleports):
            y = self.box.low + (self.box.high - self.box.low) * torch.rand_like(x)
            accept = torch.rand(len(x)).log() < (self.energy(x) - self.energy(y)).detach()
            x = torch.where(accept[:, None], y, x)
        alpha = s.noise**2 / 2
        for _ in range(s.steps):
            e, g = self.score(x)
            noise = torch.randn_like(x)
            y = x + alpha * g + s.noise * noise
            e2, g2 = self.score(y)
            back = (x - y - alpha * g2) / s.noise
            ratio = (e - e2).detach() + (noise.square() - back.square()).sum(1) / 2
            inside = ((y >= self.box.low) & (y <= self.box.high)).all(1)
            accept = (torch.rand(len(x)).log() < ratio) & inside
            x = torch.where(accept[:, None], y, x)
        self.chains[index] = x.detach()
        return x.detach()

    def walk(self, x):
        w = self.config.walk
        delta = F.normalize(torch.randn_like(x), dim=1)
        length = w.radius * (0.5 + 0.5 * torch.rand(len(x), 1))
        delta = delta * length
        for _ in range(w.steps):
            _, g = self.score(x + delta)
            move = delta - (g * delta).sum(1, keepdim=True) / g.square().sum(1, keepdim=True).clamp_min(1e-30) * g
            climb = w.corrector * g
            move = move + climb * (w.radius / climb.norm(dim=1, keepdim=True).clamp_min(1e-12)).clamp_max(1)
            x = x + move
            delta = F.normalize(w.inertia * delta + (1 - w.inertia) * move, dim=1) * length
        return x.detach()

    def density_terms(self, x, stage):
        noise = torch.randn_like(x)
        noise = torch.cat([noise, -noise])
        _, g = self.score(torch.cat([x, x]) + stage.denoising * noise, graph=True)
        denoising = (stage.denoising * g + noise).square().sum(1).mean()
        generative = self.energy(x).mean() - self.energy(self.negatives()).mean()
        return stage.weights.generative * generative + stage.weights.denoising * denoising

    def sinkhorn(self, scores, epsilon):
        q = torch.exp((scores - scores.max()) / epsilon)
        for _ in range(self.config.cluster.iterations):
            q = q / q.sum(0, keepdim=True)
            q = q / q.sum(1, keepdim=True)
        return q

    def cluster(self, a, b, epsilon=0.1):
        tau = self.config.model.temperature
        with torch.no_grad():
            qa, qb = self.sinkhorn(a * tau, epsilon), self.sinkhorn(b * tau, epsilon)
        return -(qb * F.log_softmax(a, 1)).sum(1).mean() / 2 - (qa * F.log_softmax(b, 1)).sum(1).mean() / 2

    def stage1(self, x):
        self._update(self.density_terms(x, self.config.stage1))

    def stage2(self, x, walked=None):
        stage, model = self.config.stage2, self.model
        views = [
            x,
            x + self.config.cluster.view_noise * torch.randn_like(x),
            self.walk(x) if walked is None else walked,
        ]
        latents = [model.encoder(view) for view in views]
        embeddings = [model.projector(latent) for latent in latents]
        logits = [model.prototypes(w) for w in embeddings]
        w = embeddings[0] - embeddings[0].mean(0)
        s = w.t() @ w + self.config.cluster.ridge * torch.eye(w.shape[1])
        spread = (s.trace() - torch.logdet(s)) / 2 + (latents[0] - latents[1]).square().sum() / 2
        loss = self.density_terms(x, stage) + stage.weights.negative_free * spread
        loss = loss + stage.weights.cluster_noise * self.cluster(logits[0], logits[1])
        loss = loss + stage.weights.cluster_walk * self.cluster(logits[0], logits[2])
        self._update(loss)

    def _update(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
