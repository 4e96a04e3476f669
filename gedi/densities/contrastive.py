"""The contrastive marginal energy: a point is likely whose embedding has others nearby."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gedi.densities.density import Draw, Joined, Values
from gedi.densities.energy import EnergyDensity
from gedi.nn import Model
from gedi.nn.mlp import draw_linear
from gedi.nn.model import Energy
from gedi.precision import no_autocast
from gedi.random import Streams
from gedi.score import energy_and_score
from gedi.settings import Positive, Width


class ContrastiveDensity(EnergyDensity):
    r"""With :math:`p(x, x') \propto e^{-\lVert z(x) - z(x') \rVert^2 / \tau}` the marginal of a point is

    .. math:: E(x) = - \log \frac1m \sum_k e^{- \lVert z(x) - z_k \rVert^2 / \tau}

    over the embeddings ``z_k`` of the last points of the training, and the conditional is InfoNCE by distances: both
    halves of EBCLR. ``z`` is a linear map of the latent on the unit sphere, without batch norm, so that a point's
    energy is its own. Terms and sampling are those of the energy.

    Source: Kim and Ye, "Energy-based contrastive learning of visual representations", 2022.
    """

    bank: Positive = 512  # embeddings that are remembered
    embedding: Positive = 32
    tau: Width = 0.1

    kind: ClassVar[str] = "contrastive"

    def module(
        self, latent: int, encoder: Callable[[str], nn.Module], streams: Streams, shape: Sequence[int] = ()
    ) -> "Bank":
        """The linear map, the remembered embeddings, and an encoder where it has its own."""
        own = encoder("generative_encoder") if self.own_encoder else None
        return Bank(latent, self.embedding, self.bank, own, streams["direction"])

    def values(
        self,
        model: Model,
        draw: Draw,
        latents: list[Tensor],
        weights: Mapping[str, float],
        joined: Joined,
        watching: bool,
    ) -> Values:
        """The energy's terms; the batch is remembered afterwards."""
        found = super().values(model, draw, latents, weights, joined, watching)
        bank = _bank(model)
        with torch.no_grad():
            if "samples" in draw.apart:
                data = joined(_encoder(model), [draw.apart["contrast"]])[0] if self.own_encoder else latents[0].detach()
                bank.remember(bank(data))
        return found

    def energy(self, model: Model) -> "MarginalEnergy":
        """By the embeddings that are remembered."""
        return MarginalEnergy(_encoder(model), _bank(model), self.tau)


class Bank(nn.Module):
    """The map onto the unit sphere, and the embeddings of the last points.

    Args:
        latent: length of the latent.
        embedding: dimension of the sphere's space.
        size: how many embeddings are kept.
        encoder: for the density alone; None shares the clusters'.
        generator: the stream of the weights, and of embeddings before there are any.
    """

    rows: Tensor
    place: Tensor

    def __init__(
        self, latent: int, embedding: int, size: int, encoder: nn.Module | None, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.linear = nn.Linear(latent, embedding)
        draw_linear(self.linear, generator)
        unit = torch.randn(size, embedding, generator=generator, device=generator.device).cpu()
        self.register_buffer("rows", F.normalize(unit, dim=1))
        self.register_buffer("place", torch.zeros((), dtype=torch.long))

    def forward(self, latent: Tensor) -> Tensor:
        """The embedding of each latent, on the unit sphere."""
        with no_autocast():
            return F.normalize(self.linear(latent.to(self.linear.weight.dtype)), dim=1)

    @torch.no_grad()
    def remember(self, embeddings: Tensor) -> None:
        """The newest take the place of the oldest."""
        size = len(self.rows)
        newest = embeddings[-size:]
        places = (self.place + torch.arange(len(newest), device=self.rows.device)) % size
        self.rows[places] = newest.to(self.rows)
        self.place.copy_((self.place + len(newest)) % size)


class MarginalEnergy(Energy):
    """See :class:`ContrastiveDensity`."""

    def __init__(self, encoder: nn.Module, bank: Bank, tau: float) -> None:
        self.encoder, self.bank, self.tau = encoder, bank, tau

    def of_latent(self, latent: Tensor) -> Tensor:
        """The energy of latents that are already there: (n, h) -> (n,)."""
        z = self.bank(latent)
        with no_autocast():
            rows = self.bank.rows.clone()  # what is remembered later must not change this step's gradient
            near = (2 * z @ rows.t() - 2) / self.tau  # minus the squared distance of unit vectors
            return math.log(len(rows)) - torch.logsumexp(near, dim=1)

    def with_score(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Energy (n,) and score (n, *shape), by autograd."""
        return energy_and_score(lambda y: self(y), x)  # the lambda hides this method


def _bank(model: Model) -> Bank:
    if not isinstance(model.density, Bank):
        raise TypeError("this model remembers no embeddings: it was built with another density")
    return model.density


def _encoder(model: Model) -> nn.Module:
    own = _bank(model).encoder
    return model.encoder if own is None else own
