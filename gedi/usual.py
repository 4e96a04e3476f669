"""How usual points are by a density, as if they had not been learnt from: what strange points are told by."""

from collections.abc import Callable
from functools import partial
from typing import Any

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


def apart_log_density(fitted: Fitted, points: Any) -> Tensor:
    """The log density of points (n,), each one's own bump left out where a kernel density stands on it.

    That bump makes a point that was learnt from likelier than any new one like it, and a strange one among them usual.

    Args:
        fitted: what was learnt.
        points: (n, *shape), as they were given.
    """
    apart = _bumps_apart(fitted)
    if apart is None:
        return fitted.log_density(points)
    return torch.cat([apart(fitted.inputs(part)) for part in chunks(as_points(points), _AT_A_TIME)])


def usual_log_density(fitted: Fitted, points: Any) -> Tensor:
    """The log density of some training points as if each had not been there, (m,)."""
    return apart_log_density(fitted, points[spread(len(points), _ENOUGH).numpy()])


@torch.no_grad()
def usual_of_seen(fitted: Fitted, x: Points) -> Tensor:
    """The same of training points as the network sees them: not all that was given can be had back from these."""
    some = x[spread(len(x), _ENOUGH)]
    ask = _bumps_apart(fitted) or partial(fitted.density.log_density, fitted.model)
    return torch.cat([ask(part) for part in chunks(some, _AT_A_TIME)])


def border(usual: Tensor, contamination: float) -> tuple[float, float]:
    """The log density that a share of the training points is below, and that of the median one."""
    return usual.quantile(contamination).item(), usual.median().item()


def _bumps_apart(fitted: Fitted) -> Callable[[Tensor], Tensor] | None:
    """What tells the log density of points as the network sees them without their own bumps; None where none stand."""
    kernels = fitted.model.density
    if not isinstance(kernels, KernelPoints) or len(kernels.points) < 2:
        return None
    stood, centres = kernels.points.flatten(1).double(), kernels.centres.flatten(1).double()
    widths, middle = kernels.widths.double(), stood.mean(dim=0)
    stood, centres = stood - middle, centres - middle
    near = _SAME * stood.square().sum(dim=1).max()

    def ask(x: Tensor) -> Tensor:
        x = x.flatten(1).double() - middle
        nearest, number = squared_distances(x, stood).min(dim=1)
        logs = log_bumps(squared_distances(x, centres), widths, x.shape[1])
        own = nearest <= near
        logs[own.nonzero()[:, 0], number[own]] = -torch.inf
        return logs.logsumexp(dim=1).float()

    return ask
