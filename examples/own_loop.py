"""Our losses, sampler and walk in a loop of your own PyTorch: a density and two clusters of two moons.

python examples/own_loop.py
"""

import torch
from sklearn.datasets import make_moons
from sklearn.metrics import normalized_mutual_info_score

from gedi.losses import agreement, balance, denoising
from gedi.nn import MLP
from gedi.sampling import Box, fresh_samples
from gedi.score import energy_and_score
from gedi.views import manifold_walk


def train(steps: int = 600, seed: int = 0) -> tuple[float, torch.Tensor]:
    """Train, and return the NMI of the clusters (labels only judge) and samples of the density."""
    g, width = torch.Generator().manual_seed(seed), 0.1
    points, labels = make_moons(600, noise=0.05, random_state=seed)
    x = torch.tensor(points - points.mean(axis=0), dtype=torch.float32)
    energy_net = MLP(2, (100, 100), 1, first="sine", sharpness=4.0, generator=g)
    head = MLP(2, (100, 100), 2, first="sine", sharpness=4.0, generator=g)

    def energy(x: torch.Tensor) -> torch.Tensor:
        return energy_net(x)[:, 0]

    def descend(loss: torch.Tensor, optimiser: torch.optim.Optimizer) -> None:
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    # 1. The density: its score points back to the data from noised points.
    optimiser = torch.optim.Adam(energy_net.parameters(), 3e-3)
    for _ in range(steps):
        noise = torch.randn(x.shape, generator=g)
        _, score = energy_and_score(energy, x + width * noise)
        descend(denoising(score, noise, width), optimiser)

    # 2. The clusters: a point and the end of its walk along the density are of one, and all have their share.
    there = manifold_walk(energy, x, g, steps=200, radius=0.05, direction="carried", corrector=1e-3).detach()
    optimiser = torch.optim.Adam(head.parameters(), 3e-3)
    for _ in range(steps // 2):
        here, away = head(x), head(there)
        descend(agreement(here, away) + 4 * balance(torch.cat([here, away])), optimiser)

    found = head(x).argmax(dim=1).numpy()
    return float(normalized_mutual_info_score(labels, found)), fresh_samples(energy, 200, Box.around(x, 0.3), g)


if __name__ == "__main__":
    nmi, samples = train()
    print(f"NMI {nmi:.2f}; samples {tuple(samples.shape)}")
