"""What stands on the latent: the projector and the prototypes."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gedi.nn.mlp import LEAK, draw_linear


class Projector(nn.Module):
    """``w = proj(xi)``: one hidden layer, batch norm after both layers, L2-normalised output.

    Args:
        inputs: dimension h of the latent.
        hidden: width of the hidden layer.
        outputs: dimension of the embedding.
        generator: the stream the weights are drawn from.
        normalise: begin with batch norm and LeakyReLU on the latent itself, so that a linear last layer of
            the encoder starts as one more non-linear layer of the head.

    Source: the paper's appendix (batch normalisation in all layers, final L2 normalisation).

    Example:
        >>> w = Projector(2, 4, 2)(torch.randn(8, 2))
        >>> torch.allclose(w.norm(dim=1), torch.ones(8), atol=1e-4)
        True
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        outputs: int,
        generator: torch.Generator | None = None,
        *,
        normalise: bool = False,
    ) -> None:
        super().__init__()
        self.net = nn.Sequential(
            *([nn.BatchNorm1d(inputs), nn.LeakyReLU(LEAK)] if normalise else []),
            nn.Linear(inputs, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, outputs),
            nn.BatchNorm1d(outputs),
        )
        self.redraw(generator)

    def redraw(self, generator: torch.Generator | None) -> None:
        """Begin again with new weights and statistics."""
        for layer in self.net:
            if isinstance(layer, nn.Linear):
                draw_linear(layer, generator)
            elif isinstance(layer, nn.BatchNorm1d):
                layer.reset_parameters()

    def forward(self, latent: Tensor) -> Tensor:  # (n, h) -> (n, d), rows of norm 1
        """The embedding of each latent."""
        return F.normalize(self.net(latent), dim=1)


class Prototypes(nn.Module):
    """``s = U^T w / tau``: cosine similarity to c unit vectors, over a temperature.

    Args:
        inputs: dimension of the embedding.
        clusters: number c of prototypes.
        temperature: ``tau``.
        generator: the stream the directions are drawn from. They start orthogonal where the dimension
            allows it, so that no two clusters begin as one.

    Example:
        >>> Prototypes(8, 3, temperature=0.5)(torch.eye(8)).shape
        torch.Size([8, 3])
    """

    def __init__(
        self, inputs: int, clusters: int, temperature: float = 0.1, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.temperature = temperature
        self.weight = nn.Parameter(torch.empty(clusters, inputs))
        self.redraw(generator)

    def redraw(self, generator: torch.Generator | None) -> None:
        """Begin again with new directions."""
        clusters, inputs = self.weight.shape
        rows = torch.randn(max(clusters, inputs), inputs, generator=generator, device=self.weight.device)
        if clusters <= inputs:
            q, r = torch.linalg.qr(rows)
            rows = q * r.diagonal().sign()  # without the signs the directions would not be uniform
        with torch.no_grad():
            self.weight.copy_(F.normalize(rows[:clusters], dim=1))

    def forward(self, embedding: Tensor) -> Tensor:  # (n, d) -> (n, c)
        """The logits of each embedding."""
        return embedding @ F.normalize(self.weight, dim=1).t() / self.temperature


class Passthrough(nn.Module):
    """No projector: the latent itself is the embedding."""

    def redraw(self, generator: torch.Generator | None) -> None:
        """Nothing to draw."""

    def forward(self, latent: Tensor) -> Tensor:
        """The latent."""
        return latent


class Classifier(nn.Module):
    """A plain linear classifier in place of prototypes: what a network has that is trained by a rule alone.

    Batch norm in the usual head keeps the embeddings of a batch apart, and so hides the collapse to one symbol
    that a rule alone allows.

    Example:
        >>> Classifier(8, 3)(torch.zeros(5, 8)).shape
        torch.Size([5, 3])
    """

    def __init__(self, inputs: int, clusters: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, clusters)
        self.redraw(generator)

    @property
    def weight(self) -> Tensor:
        """A row for each symbol."""
        return self.linear.weight

    def redraw(self, generator: torch.Generator | None) -> None:
        """Begin again with new weights."""
        draw_linear(self.linear, generator)

    def forward(self, embedding: Tensor) -> Tensor:  # (n, d) -> (n, c)
        """The logits of each embedding."""
        logits: Tensor = self.linear(embedding)
        return logits
