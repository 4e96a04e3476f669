"""The classifier's energy: how sure the logits are in all, trained as the paper's energy is."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from gedi.densities.density import Place
from gedi.densities.energy import EnergyDensity
from gedi.errors import UserError
from gedi.nn import Model, Passthrough
from gedi.nn.model import Energy
from gedi.precision import no_autocast
from gedi.random import Streams
from gedi.score import energy_and_score
from gedi.types import Points


class JemDensity(EnergyDensity):
    r""":math:`E(x) = - \log \sum_y e^{s_y(x)}` of the clusters' own logits, which a linear head must give.

    Clusters and density then are one function: :math:`p(x, y) \propto e^{s_y(x)}`. A projector with batch norm would
    make the energy of a point depend on its neighbours, so it needs ``model.head=linear``. Terms and sampling are those
    of the energy.

    Source: Grathwohl et al., "Your classifier is secretly an energy based model and you should treat it like one",
    2020.
    """

    kind: ClassVar[str] = "jem"

    def bind(self, place: Place) -> Self:
        """It has no encoder of its own: its logits are the clusters'."""
        if self.own_encoder:
            raise UserError("density.kind=jem is the clusters' own logits: density.own_encoder must be false")
        return super().bind(place)

    def module(  # type: ignore[override]
        self, latent: int, encoder: Callable[[str], nn.Module], streams: Streams, shape: Sequence[int] = ()
    ) -> None:
        """Nothing is added to the network."""
        return

    def measure(self, model: Model, points: Points) -> None:
        """Refused where the logits are not a plain function of the point."""
        _check_head(model)

    def energy(self, model: Model) -> "ClassifierEnergy":
        """The model's own logits, summed up."""
        _check_head(model)
        return ClassifierEnergy(model.encoder, model.prototypes)


class ClassifierEnergy(Energy):
    """``-logsumexp`` of a classifier's logits as a function."""

    def __init__(self, encoder: nn.Module, classifier: nn.Module) -> None:
        self.encoder, self.classifier = encoder, classifier

    def of_latent(self, latent: Tensor) -> Tensor:
        """The energy of latents that are already there: (n, h) -> (n,)."""
        with no_autocast():
            weight = self.classifier.weight
            assert isinstance(weight, Tensor)
            return -torch.logsumexp(self.classifier(latent.to(weight.dtype)), dim=1)

    def with_score(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Energy (n,) and score (n, *shape), by autograd."""
        return energy_and_score(lambda y: self(y), x)  # the lambda hides this method


def _check_head(model: Model) -> None:
    if not isinstance(model.projector, Passthrough):
        raise UserError("density.kind=jem is the energy of a plain classifier: it needs model.head=linear")
