"""One network that gives latent, embedding, logits and energy."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gedi.precision import no_autocast
from gedi.score import energy_and_score
from gedi.types import Clustered, Outputs


class Energy:
    """``E(x) = -u^T enc(x)`` as a function, with its score in closed form where the encoder has one.

    It uses only the encoder and ``u`` (no batch norm), so sampling never disturbs the projector.
    """

    def __init__(self, encoder: nn.Module, direction: Tensor) -> None:
        self.encoder = encoder
        self.direction = direction

    def __call__(self, x: Tensor) -> Tensor:
        """The energy of each point: (n, *shape) -> (n,)."""
        return self.of_latent(self.encoder(x))

    def of_latent(self, latent: Tensor) -> Tensor:
        """The energy of latents that are already there: (n, h) -> (n,)."""
        with no_autocast():  # samplers exponentiate differences of it
            return -(latent.to(self.direction.dtype) @ self.direction)

    def with_score(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Energy (n,) and score (n, *shape)."""
        along = getattr(self.encoder, "along", None)
        if along is None:
            return energy_and_score(lambda y: self(y), x)  # the lambda hides this method: autograd
        log_density, gradient = along(self.direction, x)
        return -log_density, gradient

    def snapshot(self) -> "Energy":
        """A frozen copy that later training does not change."""
        encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        return Energy(encoder, self.direction.detach().clone())


class EnergyHead(nn.Module):
    """What an energy adds to the network: its direction ``u``, and an encoder where it shares none.

    Args:
        latent_dim: h, the length of ``u``.
        encoder: for the energy alone; None shares the clusters'.
        generator: the stream ``u`` is drawn from.
    """

    def __init__(
        self, latent_dim: int, encoder: nn.Module | None = None, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.encoder = encoder
        bound = latent_dim**-0.5
        self.direction = nn.Parameter(torch.empty(latent_dim).uniform_(-bound, bound, generator=generator))


class Model(nn.Module):
    """Encoder, projector, prototypes, and what the density adds.

    Args:
        encoder: ``enc``, any module (n, *shape) -> (n, h).
        projector: ``proj``, (n, h) -> (n, d) on the unit sphere.
        prototypes: (n, d) -> (n, c).
        finer: a second set of prototypes on the same embedding, more of them: they shape the embedding, and
            symbols can be merged from them.
        density: the density's own part, an :class:`EnergyHead` for an energy; None where there is no density.

    Example:
        >>> from gedi.nn import MLP, Projector, Prototypes
        >>> model = Model(MLP(2, (16,), 2), Projector(2, 4, 2), Prototypes(2, 2), density=EnergyHead(2))
        >>> model(torch.randn(5, 2)).energy.shape
        torch.Size([5])
    """

    def __init__(
        self,
        encoder: nn.Module,
        projector: nn.Module,
        prototypes: nn.Module,
        *,
        finer: nn.Module | None = None,
        density: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.projector = projector
        self.prototypes = prototypes
        self.finer = finer
        self.density = density

    @property
    def energy(self) -> Energy:
        """The energy as a function, live: it changes as the model learns."""
        if not isinstance(self.density, EnergyHead):
            raise TypeError("this model has no energy: it was built without a density, or with another one")
        own = self.density.encoder
        return Energy(self.encoder if own is None else own, self.density.direction)

    def redraw_heads(self, generator: torch.Generator) -> None:
        """Begin the cluster head again; the encoder and the density stay."""
        for head in (self.projector, self.prototypes, *([] if self.finer is None else [self.finer])):
            redraw = getattr(head, "redraw", None)
            if redraw is None:
                raise TypeError(f"a head needs a method redraw(generator) for restarts, got {type(head).__name__}")
            redraw(generator)

    def forward(self, x: Tensor) -> Outputs:
        """Everything the network says of a batch."""
        seen = self.clustered(x)
        energy = None
        if isinstance(self.density, EnergyHead):
            energy = self.energy.of_latent(seen.latent) if self.density.encoder is None else self.energy(x)
        return Outputs(*seen[:3], energy)

    def clustered(self, x: Tensor) -> Clustered:
        """What the cluster side alone says of a batch; the density is not asked."""
        return self.heads([self.encoder(x)])[0]

    def heads(self, latents: Sequence[Tensor]) -> list[Clustered]:
        """Embedding and logits of several looks' latents, each look with its own batch-norm statistics.

        In the precision of the weights, whatever the autocast: heads cost little, and every term stands on them.
        """
        if not latents:
            return []
        with no_autocast():
            weight = self.prototypes.weight
            assert isinstance(weight, Tensor)
            latents = [latent.to(weight.dtype) for latent in latents]
            embeddings = [self.projector(latent) for latent in latents]
            joined, sizes = torch.cat(embeddings), [len(latent) for latent in latents]
            logits = torch.split(self.prototypes(joined), sizes)
            finer = [None] * len(latents) if self.finer is None else torch.split(self.finer(joined), sizes)
        return list(map(Clustered, latents, embeddings, logits, finer))
