"""What a density is: how it is trained beside the clusters, and what it answers when it is."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import torch
from pydantic import PrivateAttr
from torch import Tensor, nn

from gedi.nn import Model
from gedi.processes import Processes
from gedi.random import Streams
from gedi.sampling import Box, Initial
from gedi.score import posterior_mean, score
from gedi.settings import Section
from gedi.types import EnergyFn, Points, Spread

#: State that a density carries from step to step: tensors, :class:`~gedi.types.Spread`, in dictionaries; or None.
Carried = Any
#: Calls a function on batches at the cost of one call, and gives the rows of every process.
Joined = Callable[[Callable[[Tensor], Tensor], list[Tensor]], list[Tensor]]

# Figures that the guard knows limits of.
GAP, DRIFT, EXTENT = "energy gap", "drift", "chain extent"


class Place(NamedTuple):
    """Where a density lives: the box around the data, where samples begin, and the processes that share the work.

    ``points`` are those of the training, for a density made of them; None where what it needs of them is loaded.
    """

    box: Box
    initial: Initial
    processes: Processes = Processes()
    points: Points | None = None


class Draw(NamedTuple):
    """What a density wants to see in one step, made without a gradient.

    Attributes:
        encoded: points that go through the shared encoder, in the step's one pass.
        apart: points and other tensors that go elsewhere, by name.
        info: what drawing has to report.
    """

    encoded: Sequence[Tensor] = ()
    apart: Mapping[str, Tensor] = {}
    info: Mapping[str, float] = {}


class Values(NamedTuple):
    """A density's terms in one step, and figures for the guard, which are only made when it looks."""

    terms: dict[str, Tensor]
    figures: dict[str, Tensor]


class Density(Section):
    """A likelihood model; its settings are the part. A subclass is one file and nothing else.

    Training asks, in this order: :meth:`measure` and :meth:`begin` once, then each step :meth:`draw` and
    :meth:`values`. A trained model answers :meth:`log_density`, :meth:`score`, :meth:`denoised` and :meth:`sample`.

    Attributes:
        kind: what settings call it.
        terms: names of its training terms, which stages give weights to.
        exact: whether it is there without any training.
        chooses_width: whether it can tell how much noise a walk of noise and denoising takes: its energy has a
            ``walk_width`` then, which :meth:`settle` chooses.
        has_latent: whether points have a latent that is normal, there and back: its energy has ``encoded`` and
            ``decoded`` then, and walks may go there.
    """

    kind: ClassVar[str]
    terms: ClassVar[tuple[str, ...]] = ()
    exact: ClassVar[bool] = False
    chooses_width: ClassVar[bool] = False
    has_latent: ClassVar[bool] = False
    _place: Place = PrivateAttr()

    def bind(self, place: Place) -> Self:
        """The same density for one run; what cannot be is refused here."""
        bound = self.model_copy()
        bound._place = place
        return bound

    @property
    def temperature(self) -> float | None:
        """What its energy is divided by in the density that training samples; None where it samples none."""
        return None

    @property
    def beyond(self) -> float:
        """How far beyond the data's range it lives."""
        return 0.0

    @property
    def sees_augmented(self) -> bool:
        """Whether the points that it learns from are augmented first, as those of a view are."""
        return False

    @property
    def encoders(self) -> int:
        """How many encoders the network has with it: one, which it shares with the clusters, or one more."""
        return 1

    def footprint(self) -> dict[str, int]:
        """How many points it holds in memory, by the setting that says so."""
        return {}

    def module(
        self, latent: int, encoder: Callable[[str], nn.Module], streams: Streams, shape: Sequence[int] = ()
    ) -> nn.Module | None:
        """What it adds to the network, given the latent's length, a maker of encoders like the network's own, and the
        shape of a point.
        """
        return None

    def measure(self, model: Model, points: Points) -> None:
        """Take from the training points what its part of the network must know of them, such as their scales."""

    def settle(self, model: Model, points: Points) -> None:
        """Choose what walks need, by what it has learnt and without labels; a stage that walks is about to begin."""

    def begin(self, generator: torch.Generator) -> Carried:
        """Its state at the beginning, or after all it carried went wrong."""
        return None

    def draw(
        self,
        model: Model,
        x: Tensor,
        anchor: Tensor,
        weights: Mapping[str, float],
        carried: Carried,
        streams: Streams,
    ) -> tuple[Draw, Carried]:
        """What terms of positive weight need, for a batch ``x`` that the clusters see as ``anchor``; ``x`` is augmented
        where it asked for that.
        """
        return Draw(), carried

    def values(
        self,
        model: Model,
        draw: Draw,
        latents: list[Tensor],
        weights: Mapping[str, float],
        joined: Joined,
        watching: bool,
    ) -> Values:
        """Every term of positive weight; ``latents`` are those of :attr:`Draw.encoded`, rows of all processes."""
        return Values({}, {})

    def watched(self, model: Model, draw: Draw) -> dict[str, Tensor]:
        """Figures for the guard that need no terms."""
        return {}

    def softer(self, factor: float) -> Self:
        """The same density, moving more carefully by a factor."""
        return self

    def softer_weights(self, weights: Mapping[str, float], penalty: float) -> dict[str, float]:
        """Weights that hold it closer, ``penalty`` being a share of the main term's weight."""
        return dict(weights)

    def report(self, weights: Mapping[str, float]) -> dict[str, float]:
        """What of it and of its weights an intervention of the guard changes, for the log."""
        return {}

    def kept(self, carried: Carried) -> Spread | None:
        """Samples that training has left, where there are any."""
        return None

    def energy(self, model: Model) -> EnergyFn:
        """``-log p(x)`` up to a constant, live: it changes as the model learns."""
        raise TypeError(f"a density of kind {self.kind!r} has no energy")

    def frozen(self, model: Model) -> Model:
        """A copy of the network, or of what its energy needs of it, that further training does not change."""
        return copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def log_density(self, model: Model, x: Tensor) -> Tensor:
        """``log p(x)`` up to a constant: (n, *shape) -> (n,)."""
        return -self.energy(model)(x)

    def score(self, model: Model, x: Tensor) -> Tensor:
        """``grad log p(x)``, (n, *shape)."""
        return score(self.energy(model), x)

    def denoised(self, model: Model, x: Tensor, width: float) -> Tensor:
        """The mean of what points may have been before noise of a width was added, (n, *shape); Tweedie's, unless it
        knows better.
        """
        return posterior_mean(self.energy(model), x, width)

    def sample(self, model: Model, n: int, generator: torch.Generator) -> Tensor:
        """n points of the model, (n, *shape)."""
        raise TypeError(f"a density of kind {self.kind!r} gives no samples")
