"""How usual points are by a density, as if they had not been learnt from: what strange points are told by."""

from typing import Any

import torch
from torch import Tensor

from gedi.data import chunks, spread
from gedi.densities.kernel import KernelPoints
from gedi.fitted import Fitted, as_points
from gedi.graph.bumps import log_bumps, squared_distances

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
    kernels = fitted.model.density
    if not isinstance(kernels, KernelPoints):
        return fitted.log_density(points)
    given = as_points(points)
    return _left_out(kernels, given, fitted) if len(kernels.points) > 1 else fitted.log_density(points)


def usual_log_density(fitted: Fitted, points: Any) -> Tensor:
    """The log density of some training points as if each had not been there, (m,)."""
    return apart_log_density(fitted, points[spread(len(points), _ENOUGH).numpy()])


def border(usual: Tensor, contamination: float) -> tuple[float, float]:
    """The log density that a share of the training points is below, and that of the median one."""
    return usual.quantile(contamination).item(), usual.median().item()


def _left_out(kernels: KernelPoints, given: Tensor, fitted: Fitted) -> Tensor:
    stood, centres = kernels.points.flatten(1).double(), kernels.centres.flatten(1).double()
    widths, middle = kernels.widths.double(), stood.mean(dim=0)
    stood, centres = stood - middle, centres - middle
    near = _SAME * stood.square().sum(dim=1).max()
    found = []
    for part in chunks(given, _AT_A_TIME):
        x = fitted.inputs(part).flatten(1).double() - middle
        nearest, number = squared_distances(x, stood).min(dim=1)
        logs = log_bumps(squared_distances(x, centres), widths, x.shape[1])
        own = nearest <= near
        logs[own.nonzero()[:, 0], number[own]] = -torch.inf
        found.append(logs.logsumexp(dim=1))
    return torch.cat(found).float()
