"""Our terms in a module of PyTorch Lightning: clusters of noised points, no labels.

pip install lightning && python examples/lightning_module.py
"""

import torch
from torch import Tensor

from gedi.losses import agreement, balance
from gedi.nn import MLP
from gedi.views import gaussian_noise

try:
    from lightning import LightningModule, Trainer
except ImportError:  # the module is a plain one then, and the loop below stands for the trainer
    LightningModule, Trainer = torch.nn.Module, None


class Clusters(LightningModule):
    """Points and their noised copies get one symbol, and the symbols share the points."""

    def __init__(self, columns: int, clusters: int, noise: float = 0.1, learning_rate: float = 3e-3) -> None:
        super().__init__()
        self.head = MLP(columns, (64, 64), clusters)
        self.noise, self.learning_rate = noise, learning_rate
        self.stream = torch.Generator().manual_seed(0)

    def forward(self, x: Tensor) -> Tensor:
        """The cluster of each point."""
        return self.head(x).argmax(dim=1)

    def training_step(self, batch: tuple[Tensor, ...], number: int) -> Tensor:
        """The loss of a batch."""
        (x,) = batch
        here, there = self.head(x), self.head(gaussian_noise(x, self.noise, self.stream))
        return agreement(here, there) + 4 * balance(torch.cat([here, there]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), self.learning_rate)


def train(module: Clusters, x: Tensor, epochs: int = 60) -> Clusters:
    """By Lightning's trainer where it is there, else by the loop it would run."""
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), 64, shuffle=True)
    if Trainer is not None:
        Trainer(max_epochs=epochs, logger=False, enable_checkpointing=False, enable_progress_bar=False).fit(
            module, batches
        )
        return module
    optimiser = module.configure_optimizers()
    for _ in range(epochs):
        for number, batch in enumerate(batches):
            optimiser.zero_grad()
            module.training_step(batch, number).backward()
            optimiser.step()
    return module


if __name__ == "__main__":
    points = torch.cat(
        [torch.randn(100, 2) + centre for centre in (torch.tensor([0.0, 6.0]), torch.tensor([6.0, 0.0]))]
    )
    print(train(Clusters(2, 2), points)(points).bincount())
