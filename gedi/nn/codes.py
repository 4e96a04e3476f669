"""A head that cannot collapse: embeddings in a cube, and symbols that are random corners of it, never trained."""

import math

import torch
from torch import Tensor, nn

from gedi.nn.mlp import draw_linear

_UNSURE = 1e-8  # probability of every other symbol at an embedding that is one's own code


class Cube(nn.Module):
    """``w = tanh(BN(A xi))``: one linear layer, batch norm, and a cube from -1 to 1.

    Args:
        inputs: dimension of the latent.
        outputs: dimension of the embedding.
        generator: the stream the weights are drawn from.

    Example:
        >>> bool(Cube(2, 4)(torch.randn(8, 2)).abs().max() < 1)
        True
    """

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs)
        self.redraw(generator)

    def redraw(self, generator: torch.Generator | None) -> None:
        """Begin again with new weights and statistics."""
        draw_linear(self.linear, generator)
        self.norm.reset_parameters()

    def forward(self, latent: Tensor) -> Tensor:  # (n, h) -> (n, d)
        """The embedding of each latent."""
        return torch.tanh(self.norm(self.linear(latent)))


class Codes(nn.Module):
    r"""``s = W^T w / tau`` with frozen random codes ``W`` of -1 and 1.

    In many dimensions d codes are close to orthogonal, and an embedding that is one's own code has the score d there
    and about 0 elsewhere. The temperature follows from how sure a symbol shall be, all others having probability
    ``eps``:

    .. math:: \tau = d \,/\, \log \frac{1 - (c - 1)\, \epsilon}{\epsilon}

    Args:
        inputs: dimension d of the embedding.
        clusters: number c of codes.
        generator: the stream the codes are drawn from.

    Source: Sansone, Lebailly and Tuytelaars, "Collapse-proof non-contrastive self-supervised learning", 2024.

    Example:
        >>> codes = Codes(64, 3, torch.Generator().manual_seed(0))
        >>> codes(codes.weight).softmax(dim=1).diagonal().min() > 0.999
        tensor(True)
    """

    weight: Tensor

    def __init__(self, inputs: int, clusters: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.temperature = inputs / math.log((1 - (clusters - 1) * _UNSURE) / _UNSURE)
        self.register_buffer("weight", torch.empty(clusters, inputs))
        self.redraw(generator)

    def redraw(self, generator: torch.Generator | None) -> None:
        """Begin again with new codes, no two alike where there are enough."""
        clusters, inputs = self.weight.shape
        rows: Tensor = torch.empty(0, inputs)
        enough = clusters <= 2**inputs if inputs < 60 else True
        while len(rows) < clusters:
            drawn = torch.randint(0, 2, (2 * clusters, inputs), generator=generator, device=self.weight.device)
            rows = torch.cat([rows, (2.0 * drawn - 1).cpu()])
            rows = distinct(rows) if enough else rows
        self.weight.copy_(rows[:clusters])

    def forward(self, embedding: Tensor) -> Tensor:  # (n, d) -> (n, c)
        """The logits of each embedding."""
        return embedding @ self.weight.t() / self.temperature


def distinct(rows: Tensor) -> Tensor:
    """The rows without those that stood before, in their order.

    Example:
        >>> distinct(torch.tensor([[1.0], [2.0], [1.0]]))
        tensor([[1.],
                [2.]])
    """
    first = dict.fromkeys(map(tuple, rows.tolist()))
    return torch.tensor(list(first), dtype=rows.dtype)
