"""How usual points are by a density, as if they had not been learnt from: what strange points are told by."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gedi.data import chunks, spread
from gedi.densities.kernel import KernelPoints
from gedi.fitted import Fitted, as_points
from gedi.graph.bumps import log_bumps, squared_distances
from gedi.types import Points

_ENOUGH = 1000  # points, for quantiles
_AT_A_TIME = 250
_SAME = 1e-12  # of the greatest squared distance from the middle: a point itself
_ROUNDING = 1e-3  # of a spread: what rows off the axes differ by at least
_AROUND = 40  # points that are the surroundings of one
_LOCAL = 0.5  # how much their density counts: 0 is the density alone, 1 is only the ratio to the surroundings


class Usual(NamedTuple):
    """How usual points are, each (n,).

    Attributes:
        log_density: of each as if it had not been there.
        beside: the same, held half against the surroundings, where they are known.
    """

    log_density: Tensor
    beside: Tensor


def how_usual(fitted: Fitted, points: Any) -> Usual:
    r"""How usual points are, each one's own bump left out where a kernel density stands on it.

    That bump makes a point that was learnt from likelier than any new one like it, and a strange one among them usual.
    A density says how usual a point is among all. Near a tight group strange points are denser than usual ones of a
    wide group; so the density is held against that of the surroundings, and both count alike:

    .. math:: \log p(x) - \tfrac12 \, \frac{1}{40} \sum_{j \in N(x)} \log p_{-j}(x_j)

    with the forty nearest points that the density stands on. Other densities keep no points: theirs is
    :math:`\log p(x)` alone.

    Of wide rows on fewer axes the last column is how far off the axes they lie. It varies much less than bumps of so
    many columns are wide, and what lies further off than is usual would hardly count: half the square of how many
    deviations further is taken off as well.

    Args:
        fitted: what was learnt.
        points: (n, *shape), as they were given.
    """
    ask = _asking(fitted)
    return _joined([ask(fitted.inputs(part)) for part in chunks(as_points(points), _AT_A_TIME)])


def usual_known(fitted: Fitted, points: Any) -> Usual:
    """The same of some training points, (m,)."""
    return how_usual(fitted, points[spread(len(points), _ENOUGH).numpy()])


def usual_seen(fitted: Fitted, x: Points) -> Usual:
    """The same of training points as the network sees them: not all that was given can be had back from these."""
    ask = _asking(fitted)
    return _joined([ask(part) for part in chunks(x[spread(len(x), _ENOUGH)], _AT_A_TIME)])


def usual_kept(fitted: Fitted) -> Usual | None:
    """The same of the points that the density itself keeps; None where it keeps none."""
    kernels = fitted.model.density
    return usual_seen(fitted, kernels.points) if isinstance(kernels, KernelPoints) and len(kernels.points) else None


def _joined(parts: list[Usual]) -> Usual:
    return Usual(*(torch.cat(each) for each in zip(*parts, strict=True)))


def _asking(fitted: Fitted) -> Callable[[Tensor], Usual]:
    """What tells of points as the network sees them how usual they are."""
    kernels = fitted.model.density
    if isinstance(kernels, KernelPoints) and len(kernels.points) > 1:
        return _Apart(kernels, getattr(fitted.inputs, "projection", None) is not None)

    @torch.no_grad()
    def ask(x: Tensor) -> Usual:
        log_density = fitted.density.log_density(fitted.model, x)
        return Usual(log_density, log_density)

    return ask


class _Apart:
    """The bumps of a kernel density without a point's own, and how usual each of the points is that they stand on.

    Args:
        kernels: the bumps.
        projected: whether points are rows on fewer axes, their last column how far off the axes they lie.
    """

    def __init__(self, kernels: KernelPoints, projected: bool = False) -> None:
        stood, centres = kernels.points.flatten(1).double(), kernels.centres.flatten(1).double()
        self.middle, self.widths = stood.mean(dim=0), kernels.widths.double()
        self.stood, self.centres = stood - self.middle, centres - self.middle
        self.near = _SAME * self.stood.square().sum(dim=1).max()
        off = self.stood[:, -1]
        self.off = (off.mean(), off.std().clamp_min(_ROUNDING)) if projected else None
        self.known = torch.cat([self._log_density(part)[0] for part in torch.split(self.stood, _AT_A_TIME)])

    def __call__(self, x: Tensor) -> Usual:
        x = x.flatten(1).double() - self.middle
        log_density, squared = self._log_density(x)
        around = squared.topk(min(_AROUND, len(self.stood) - 1), dim=1, largest=False).indices
        beside = log_density - _LOCAL * self.known[around].mean(dim=1)
        if self.off is not None:
            beside -= ((x[:, -1] - self.off[0]) / self.off[1]).clamp_min(0).square() / 2
        return Usual(log_density.float(), beside.float())

    def _log_density(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Without each point's own bump, (n,), and the squared distances to all other points, (n, m)."""
        squared = squared_distances(x, self.stood)
        nearest, number = squared.min(dim=1)
        logs = log_bumps(squared_distances(x, self.centres), self.widths, x.shape[1])
        own = nearest <= self.near
        logs[own.nonzero()[:, 0], number[own]] = -torch.inf
        squared[own.nonzero()[:, 0], number[own]] = torch.inf
        return logs.logsumexp(dim=1), squared


def border(usual: Tensor, contamination: float) -> tuple[float, float]:
    """What a share of the training points is below, and what the median one has."""
    return usual.quantile(contamination).item(), usual.median().item()
