"""A density without training: a normal bump on each of some training points, as wide as its surroundings."""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from gedi.data import is_sharded, spread
from gedi.densities.density import Density
from gedi.graph import local_scales, neighbours, some_of
from gedi.nn import Model
from gedi.precision import no_autocast
from gedi.random import Streams
from gedi.settings import Positive, Width
from gedi.types import EnergyFn, Points

_RANK = 7  # the neighbour whose distance is a point's scale
_FACTORS = tuple(2 ** (power / 2) for power in range(-4, 3))  # of the width, to choose from
_BLOCK = 2**22  # distances held at a time
_AROUND = 0.5  # of the spread of scaled columns: bumps reach beyond the points they stand on


class KernelPoints(nn.Module):
    """The points a kernel density stands on and the width of each bump: kept, never trained.

    Args:
        points: (m, *shape).
        widths: (m,).
    """

    points: Tensor
    widths: Tensor

    def __init__(self, points: Tensor, widths: Tensor) -> None:
        super().__init__()
        self.register_buffer("points", points)
        self.register_buffer("widths", widths)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: Any, strict: bool, *lists: Any
    ) -> None:
        """Saved points are taken however many they are."""
        points, widths = (state_dict.get(prefix + name) for name in ("points", "widths"))
        if isinstance(points, Tensor) and isinstance(widths, Tensor):
            fits = points.shape[1:] == self.points.shape[1:] and widths.shape == points.shape[:1]
            if fits and bool(torch.isfinite(points).all()) and bool((widths > 0).all()):
                self.points, self.widths = torch.empty_like(points), torch.empty_like(widths)
            else:
                lists[-1].append(f"{prefix}points and {prefix}widths are no kernels on points like these")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, *lists)


class KernelEnergy:
    """``-log p(x)`` of a kernel density as a function, with its score in closed form."""

    def __init__(self, kernels: KernelPoints) -> None:
        self.points = kernels.points.flatten(1).double()
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

    .. math:: p(x) = \frac{1}{m} \sum_j N(x;\, x_j,\, h_j^2 I), \qquad h_j = c\, s_j / \sqrt{d}

    with the distance :math:`s_j` to the seventh neighbour and d the number of columns that vary. One factor c for all
    is the one under which the points, each left out in turn, are likeliest: few points get a smooth density.
    """

    points: Positive = 2500  # training points that it stands on, drawn by the seed
    width: Width | None = None  # c; None: found by leaving out each point in turn

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
        return make_kernels(train, self.points, self.width, streams["kernel"])

    def energy(self, model: Model) -> EnergyFn:
        """``-log p(x)``, of the points that the model keeps."""
        return KernelEnergy(_kernels(model))

    def sample(self, model: Model, n: int, generator: torch.Generator) -> Tensor:
        """A point, and noise of its width."""
        kernels = _kernels(model)
        device = generator.device
        chosen = torch.randint(len(kernels.points), (n,), generator=generator, device=device)
        points, widths = (
            kernels.points[chosen.to(kernels.points.device)],
            kernels.widths[chosen.to(kernels.widths.device)],
        )
        noise = torch.randn(points.shape, generator=generator, device=device, dtype=points.dtype).to(points.device)
        return points + widths.view(-1, *[1] * (points.dim() - 1)) * noise


def make_kernels(train: Points, most: int, factor: float | None, generator: torch.Generator) -> KernelPoints:
    """Bumps on some of the training points.

    Args:
        train: all of them, (n, *shape).
        most: how many to stand on.
        factor: of every width; None finds it.
        generator: the stream that chooses.
    """
    n = len(train)
    kept = train[spread(n, most) if is_sharded(train) else some_of(n, most, generator)].detach().cpu()
    rows = kept.flatten(1).double()
    if len(rows) < 2:
        return KernelPoints(kept, torch.ones(len(rows), dtype=kept.dtype))
    varying = max(1, int((rows != rows[0]).any(dim=0).sum()))
    widths = local_scales(neighbours(rows, _RANK)[0], _RANK) / math.sqrt(varying)
    return KernelPoints(kept, ((best_factor(rows, widths) if factor is None else factor) * widths).to(kept.dtype))


def best_factor(x: Tensor, widths: Tensor, factors: tuple[float, ...] = _FACTORS) -> float:
    """The factor of all widths under which points are likeliest by the bumps on the others.

    A point's copies are left out with it: of width 0 they would be likeliest.

    Args:
        x: (n, d).
        widths: of the bump on each, (n,).
        factors: to choose from.
    """
    columns = max(1, int((x != x[0]).any(dim=0).sum()))
    x = x - x.mean(dim=0)
    likelihood = torch.zeros(len(factors), dtype=x.dtype)
    for rows in torch.split(torch.arange(len(x)), max(1, _BLOCK // len(x))):
        squared = squared_distances(x[rows], x)
        same = squared <= 1e-12 * x.square().sum(dim=1).max()
        same[torch.arange(len(rows)), rows] = True
        alone = same.all(dim=1)
        for i, factor in enumerate(factors):
            logs = log_bumps(squared, factor * widths, columns).masked_fill(same, -torch.inf)
            likelihood[i] += logs[~alone].logsumexp(dim=1).sum()
    return factors[int(likelihood.argmax())]


def squared_distances(x: Tensor, points: Tensor) -> Tensor:
    """Between all pairs: (n, d), (m, d) -> (n, m). Differentiable everywhere, also where it is 0."""
    squares = x.square().sum(dim=1, keepdim=True) + points.square().sum(dim=1)
    return torch.addmm(squares, x, points.t(), alpha=-2).clamp_min(0)


def log_bumps(squared: Tensor, widths: Tensor, columns: int) -> Tensor:
    """The logarithm of each bump over their number, by squared distances: (n, m), (m,) -> (n, m)."""
    height = -columns * (widths.log() + math.log(2 * math.pi) / 2) - math.log(len(widths))
    return torch.addcdiv(height.expand_as(squared), squared, widths.square().expand_as(squared), value=-0.5)


def _kernels(model: Model) -> KernelPoints:
    if not isinstance(model.density, KernelPoints):
        raise TypeError("this model has no kernels: it was built with another density")
    return model.density
