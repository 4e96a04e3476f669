"""A normalizing flow: an exact likelihood by an invertible network."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from gedi.data import scales_of
from gedi.densities.density import Carried, Density, Draw, Joined, Values
from gedi.errors import UserError
from gedi.nn import Model
from gedi.nn.flow import Flow
from gedi.random import Streams
from gedi.settings import Amount, Positive
from gedi.types import Points


class FlowDensity(Density):
    r"""Term: ``likelihood``, :math:`-\frac1n \sum_i \log p(x_i)`, exact.

    Rows of a table only. It has a network of its own: an invertible one has no latent to share. Its latent is as long
    as a row, so walks may go there and back (``walk.direction=latent``).
    """

    transforms: Positive = 4
    hidden: Annotated[tuple[Positive, ...], Field(min_length=1)] = (64, 64)
    bins: Positive = 8
    blur: Amount = 0.5  # noise on the data, in distances to the nearest neighbour: copies have no density without

    kind: ClassVar[str] = "flow"
    terms: ClassVar[tuple[str, ...]] = ("likelihood",)
    has_latent: ClassVar[bool] = True
    coupling: ClassVar[bool] = True

    @property
    def encoders(self) -> int:
        """The clusters' and its own."""
        return 2

    def module(
        self, latent: int, encoder: Callable[[str], nn.Module], streams: Streams, shape: Sequence[int] = ()
    ) -> nn.Module:
        """The flow."""
        if len(shape) != 1:
            raise UserError(
                f"density.kind={self.kind} takes rows of a table, got points of shape {tuple(shape)}: images have "
                "density.kind=autoregressive, vae, denoiser or energy"
            )
        return Flow(
            shape[0],
            transforms=self.transforms,
            hidden=self.hidden,
            bins=self.bins,
            coupling=self.coupling,
            generator=streams["flow"],
        )

    def measure(self, model: Model, points: Points) -> None:
        """Centre and spread of the data, and the noise."""
        scales = scales_of(points)
        _flow(model).set_scales(scales.centre, scales.spread, self.blur * scales.near)

    def draw(
        self,
        model: Model,
        x: Tensor,
        anchor: Tensor,
        weights: Mapping[str, float],
        carried: Carried,
        streams: Streams,
    ) -> tuple[Draw, Carried]:
        """The batch with its noise."""
        if not weights.get("likelihood", 0) > 0:
            return Draw(), carried
        noise = torch.randn(x.shape, generator=streams["likelihood"], device=x.device, dtype=x.dtype)
        return Draw(apart={"likely": x + self._blur(model) * noise}), carried

    def values(
        self,
        model: Model,
        draw: Draw,
        latents: list[Tensor],
        weights: Mapping[str, float],
        joined: Joined,
        watching: bool,
    ) -> Values:
        """The mean negative log-likelihood of every process's points."""
        if "likely" not in draw.apart:
            return Values({}, {})
        (log_prob,) = joined(self._log_prob(model), [draw.apart["likely"]])
        return Values({"likelihood": -log_prob.mean()}, {})

    def _log_prob(self, model: Model) -> Callable[[Tensor], Tensor]:
        return _flow(model).log_prob

    def _blur(self, model: Model) -> Tensor:
        return _flow(model).blur

    def energy(self, model: Model) -> "FlowEnergy":
        """``-log p(x)``, with nothing left out."""
        return FlowEnergy(_flow(model))

    @torch.no_grad()
    def sample(self, model: Model, n: int, generator: torch.Generator) -> Tensor:
        """Normal numbers through the flow."""
        flow = _flow(model)
        z = torch.randn(n, flow.columns, generator=generator, device=generator.device)
        return flow.decoded(z.to(flow.centre))


class FlowEnergy:
    """``-log p(x)`` of a flow, its latent and the way back."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow

    def __call__(self, x: Tensor) -> Tensor:
        """The energy of each point: (n, d) -> (n,)."""
        return -self.flow.log_prob(x)

    def encoded(self, x: Tensor) -> Tensor:
        """The normal numbers that points come from."""
        return self.flow.encoded(x)

    def decoded(self, z: Tensor) -> Tensor:
        """And back."""
        return self.flow.decoded(z)


def _flow(model: Model) -> Flow:
    if not isinstance(model.density, Flow):
        raise TypeError("this model has no flow: it was built with another density")
    return model.density
