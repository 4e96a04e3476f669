"""A density without training: a normal bump at each of some training points, as wide as its surroundings."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gedi.data import is_sharded, spread
from gedi.densities.density import Density
from gedi.graph import some_of
from gedi.graph.bumps import fit_bumps, log_bumps, squared_distances
from gedi.nn import Model
from gedi.precision import no_autocast
from gedi.random import Streams
from gedi.settings import Positive, Share, Width
from gedi.types import EnergyFn, Points

_BLOCK = 2**22  # distances held at a time
_AROUND = 0.5  # of the spread of scaled columns: bumps reach beyond the points they stand on


class KernelPoints(nn.Module):
    """The points a kernel density stands on, the centre and the width of each bump: kept, never trained.

    Args:
        points: (m, *shape).
        widths: (m,).
        centres: (m, *shape); None: the points.
    """

    points: Tensor
    centres: Tensor
    widths: Tensor

    def __init__(self, points: Tensor, widths: Tensor, centres: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("points", points)
        self.register_buffer("centres", points if centres is None else centres)
        self.register_buffer("widths", widths)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: Any, strict: bool, *lists: Any
    ) -> None:
        """Saved points are taken however many they are."""
        points, centres, widths = (state_dict.get(prefix + name) for name in ("points", "centres", "widths"))
        if isinstance(points, Tensor) and isinstance(centres, Tensor) and isinstance(widths, Tensor):
            fits = points.shape[1:] == self.points.shape[1:] and widths.shape == points.shape[:1]
            finite = points.shape == centres.shape and all(bool(torch.isfinite(x).all()) for x in (points, centres))
            if fits and finite and bool((widths > 0).all()):
                self.points, self.centres = torch.empty_like(points), torch.empty_like(centres)
                self.widths = torch.empty_like(widths)
            else:
                lists[-1].append(f"{prefix}points and {prefix}widths are no kernels on points like these")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, *lists)


class KernelEnergy:
    """``-log p(x)`` of a kernel density as a function, with its score in closed form."""

    def __init__(self, kernels: KernelPoints) -> None:
        self.points = kernels.centres.flatten(1).double()
        self.widths = kernels.widths.double()
        self.centre = self.points.mean(dim=0)  # far from the origin squared distances would lose their digits

    def __call__(self, x: Tensor) -> Tensor:
        """The energy of each point: (n, *shape) -> (n,)."""
        with no_autocast():
            return torch.cat([-self._logs(part).logsumexp(dim=1) for part in self._parts(x)]).to(x.dtype)

    @torch.no_grad()
    def with_score(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Energy (n,) and score (n, *shape)."""
        energies, scores = [], []
        with no_autocast():
            for part in self._parts(x):
                logs = self._logs(part)
                pull = logs.softmax(dim=1) / self.widths.square()  # (n, m)
                energies.append(-logs.logsumexp(dim=1))
                scores.append(pull @ (self.points - self.centre) - pull.sum(dim=1, keepdim=True) * (part - self.centre))
        return torch.cat(energies).to(x.dtype), torch.cat(scores).view(x.shape).to(x.dtype)

    def _parts(self, x: Tensor) -> tuple[Tensor, ...]:
        return torch.split(x.flatten(1).to(self.points), max(1, _BLOCK // len(self.points)))

    def _logs(self, x: Tensor) -> Tensor:
        """The logarithm of each bump at each point, (n, m)."""
        return log_bumps(squared_distances(x - self.centre, self.points - self.centre), self.widths, x.shape[1])


class KernelDensity(Density):
    r"""Exact, and there before any training: what learnt densities are held against.

    .. math:: p(x) = \frac{1}{m} \sum_j N(x;\, c_j,\, h_j^2 I)

    with centres between the points and the means of their surroundings, and widths that follow from the distance to
    the seventh neighbour: see :func:`~gedi.graph.bumps.fit_bumps`. Both are such that points, each left out in
    turn, are likeliest: few points get a smooth density.
    """

    points: Positive = 2500  # training points that it stands on, drawn by the seed
    width: Width | None = None  # c; None: found by leaving out each point in turn
    pull: Share | None = None  # 0: bumps stand on the points, 1: on local means; None: found in the same way

    kind: ClassVar[str] = "kernel"
    exact: ClassVar[bool] = True

    @property
    def beyond(self) -> float:
        """Half of a spread."""
        return _AROUND

    def footprint(self) -> dict[str, int]:
        """The points it stands on."""
        return {f"density.points={self.points}": self.points}

    def module(
        self, latent: int, encoder: Callable[[str], nn.Module], streams: Streams, shape: Sequence[int] = ()
    ) -> KernelPoints:
        """Its points and widths; none yet where they will be loaded."""
        place = getattr(self, "_place", None)
        train: Points | None = None if place is None else place.points
        if train is None:
            return KernelPoints(torch.empty(0, *shape), torch.empty(0))
        return make_kernels(train, self.points, self.width, streams["kernel"], self.pull)

    def energy(self, model: Model) -> EnergyFn:
        """``-log p(x)``, of the points that the model keeps."""
        return KernelEnergy(_kernels(model))

    def sample(self, model: Model, n: int, generator: torch.Generator) -> Tensor:
        """A centre, and noise of its width."""
        kernels = _kernels(model)
        device = generator.device
        chosen = torch.randint(len(kernels.points), (n,), generator=generator, device=device)
        points, widths = (x[chosen.to(x.device)] for x in (kernels.centres, kernels.widths))
        noise = torch.randn(points.shape, generator=generator, device=device, dtype=points.dtype).to(points.device)
        return points + widths.view(-1, *[1] * (points.dim() - 1)) * noise


def make_kernels(
    train: Points, most: int, factor: float | None, generator: torch.Generator, pull: float | None = None
) -> KernelPoints:
    """Bumps at some of the training points.

    Args:
        train: all of them, (n, *shape).
        most: how many to stand on.
        factor: of every width; None finds it.
        generator: the stream that chooses.
        pull: of the bumps towards local means; None finds it.
    """
    n = len(train)
    kept = train[spread(n, most) if is_sharded(train) else some_of(n, most, generator)].detach().cpu()
    rows = kept.flatten(1).double()
    if len(rows) < 2:
        return KernelPoints(kept, torch.ones(len(rows), dtype=kept.dtype))
    bumps = fit_bumps(rows, factor, pull)
    return KernelPoints(kept, bumps.widths.to(kept.dtype), bumps.centres.view(kept.shape).to(kept.dtype))


def _kernels(model: Model) -> KernelPoints:
    if not isinstance(model.density, KernelPoints):
        raise TypeError("this model has no kernels: it was built with another density")
    return model.density
