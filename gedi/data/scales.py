"""Lengths that a set of points has by itself, for whatever must not depend on units."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from gedi.data.shards import is_sharded, spread
from gedi.types import Points

_ENOUGH = 10_000  # points to tell the scales of all by
_ENOUGH_READ = 2000  # the same of points in shards, each of which is read for it
_ASKED = 500  # of them, whose nearest neighbours are looked for


class Scales(NamedTuple):
    """How points lie.

    Attributes:
        centre: their mean, (*shape).
        spread: root mean square of what a coordinate is off the mean.
        near: the median distance to the nearest other point over the root of the number of coordinates: noise of this
            width takes a point about as far as its nearest neighbour.
    """

    centre: Tensor
    spread: float
    near: float


def scales_of(points: Points) -> Scales:
    """The scales of points (n, *shape), from at most ten thousand of them; of copies the distance is not 0.

    Example:
        >>> scales_of(torch.tensor([[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 2.0]]))
        Scales(centre=tensor([2., 1.]), spread=1.581138..., near=1.414213...)
    """
    x = points[spread(len(points), _ENOUGH_READ if is_sharded(points) else _ENOUGH)].float()
    centre, rows = x.mean(dim=0), x.flatten(1)
    width = float((rows - centre.flatten()).square().mean().sqrt())
    if not width > 0:
        return Scales(centre, 1.0, 1.0)  # one point, or copies of one: any scale is as good
    rows = rows - centre.flatten()
    asked = rows[spread(len(rows), _ASKED)].double()  # in single precision a point may seem to lie beside itself
    distance = torch.cat([torch.cdist(asked, part.double()) for part in torch.split(rows, 1000)], dim=1)
    other = distance > 1e-6 * width * math.sqrt(rows.shape[1])  # neither itself nor a copy of it
    nearest = distance.masked_fill(~other, math.inf).amin(dim=1)
    return Scales(centre, width, float(nearest.median()) / math.sqrt(rows.shape[1]))
