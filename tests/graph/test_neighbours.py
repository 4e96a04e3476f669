"""Nearest neighbours and local scales, against all distances."""

import pytest
import torch

from gedi.errors import UserError
from gedi.graph import local_scales, neighbours, some_of


@pytest.mark.parametrize("columns", [1, 3, 40])
def test_neighbours_are_those_of_the_smallest_distances(columns, g):
    x = torch.randn(60, columns, generator=g, dtype=torch.float64)
    distance, number = neighbours(x, 5)
    every = torch.cdist(x, x).fill_diagonal_(torch.inf)
    torch.testing.assert_close(distance, every.topk(5, largest=False).values)
    assert torch.equal(number, every.topk(5, largest=False).indices)


def test_points_far_from_the_origin_have_the_same_neighbours(g):
    x = torch.randn(50, 30, generator=g, dtype=torch.float64)
    near, far = neighbours(x, 4), neighbours(x + 1e6, 4)
    assert torch.equal(near[1], far[1])
    torch.testing.assert_close(near[0], far[0], rtol=1e-6, atol=0)


def test_there_are_never_more_neighbours_than_fellows():
    assert neighbours(torch.rand(3, 2), 20)[1].shape == (3, 2)
    with pytest.raises(UserError, match="at least 2 points, got 1"):
        neighbours(torch.rand(1, 2), 3)


def test_the_scale_is_the_distance_to_the_seventh():
    x = torch.arange(30.0)[:, None]
    scale = local_scales(neighbours(x, 10)[0])
    assert scale[15] == 4  # three on each side, then the seventh
    assert scale[0] == 7


def test_ties_get_a_share_of_the_median_and_points_that_are_all_one_get_1():
    x = torch.cat([torch.zeros(20, 2), torch.rand(41, 2)])
    scale = local_scales(neighbours(x, 7)[0])
    positive = neighbours(x, 7)[0][:, 6]
    assert (scale > 0).all()
    torch.testing.assert_close(scale[:20], (0.3 * positive[positive > 0].median()).expand(20))
    assert torch.equal(local_scales(torch.zeros(5, 7)), torch.ones(5))


def test_some_are_all_or_as_many_as_wanted_each_once(g):
    few = some_of(10_000, 100, g)
    assert len(few.unique()) == 100
    assert torch.equal(few, few.sort().values)
    assert few.max() > 5000
