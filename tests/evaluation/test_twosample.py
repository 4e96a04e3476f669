"""Two sets of points: energy distance and neighbours against sums written out, and densities that must be refused."""

import math
from types import SimpleNamespace

import pytest
import torch

from gedi.evaluation import energy_distance_test, nearest_neighbour_shares, nearest_neighbour_test, verdict
from gedi.judge import of_samples
from gedi.measures.samples import Samples
from gedi.random import Streams
from gedi.sampling import Box

COLUMNS = (2, 10, 50, 200)


def test_the_distance_is_its_sum(g):
    a, b = torch.randn(7, 3, generator=g).double(), torch.randn(5, 3, generator=g).double() + 1
    across = sum(math.dist(x, y) for x in a.tolist() for y in b.tolist()) / 35
    within = [sum(math.dist(x, y) for x in s.tolist() for y in s.tolist()) / (len(s) * (len(s) - 1)) for s in (a, b)]
    found = energy_distance_test(a, b, g, 1)["distance"]
    assert found == pytest.approx((2 * across - sum(within)) / (2 * across))


def test_two_places_are_as_far_as_can_be_and_one_is_not_far(g):
    assert energy_distance_test(torch.zeros(9, 4), torch.ones(9, 4), g)["distance"] == 1
    assert energy_distance_test(torch.ones(9, 4), torch.ones(9, 4), g) == {"distance": 0.0, "null_99": 0.0}


def test_moving_turning_and_scaling_change_nothing(g):
    a, b = torch.randn(60, 3, generator=g).double(), 2 * torch.randn(60, 3, generator=g).double()
    turn = torch.linalg.qr(torch.randn(3, 3, generator=g).double())[0]
    found = [
        energy_distance_test(x, y, torch.Generator().manual_seed(1))
        for x, y in ((a, b), (7 * a @ turn + 100, 7 * b @ turn + 100))
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_shares_of_both_sets_make_the_share_of_all(g):
    a, b = torch.randn(40, 2, generator=g), torch.randn(60, 2, generator=g) + 0.5
    of_a, of_b = nearest_neighbour_shares(a, b)
    assert nearest_neighbour_test(a, b) == pytest.approx((40 * of_a + 60 * of_b) / 100)
    nearest = [
        min((j for j in range(100) if j != i), key=lambda j: math.dist(torch.cat([a, b])[i], torch.cat([a, b])[j]))
        for i in range(40)
    ]
    assert of_a == pytest.approx(sum(j < 40 for j in nearest) / 40)


def judged(samples, test, seed):
    """The verdict on a density, of its samples alone."""
    trained = SimpleNamespace(
        samples=samples, data=SimpleNamespace(test=test), some=slice(None), energy=lambda x: x.sum(dim=1),
        streams=Streams(seed), box=Box.around(test, 0.5),
    )  # fmt: skip
    return verdict(of_samples(Samples()(trained)), ("density",))


def groups(n, columns, g):
    """Five Gaussians whose distance, in their own widths, does not depend on the number of columns."""
    centres = torch.randn(5, columns, generator=torch.Generator().manual_seed(columns)) * 4.8 / columns**0.5
    return centres[torch.randint(5, (n,), generator=g)] + 1.2 / columns**0.5 * torch.randn(n, columns, generator=g)


def wide(test, g):
    return test.mean(dim=0) + 3 * test.std(dim=0) * torch.randn(test.shape, generator=g)


def even(test, g):
    return Box.around(test, 0.0).sample(len(test), g)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("fake", [wide, even], ids=["three times too wide", "spread evenly"])
@pytest.mark.parametrize(
    "data", [groups, lambda n, d, g: torch.randn(n, d, generator=g)], ids=["groups", "one Gaussian"]
)
def test_a_density_that_is_none_has_failed(columns, fake, data, g):
    test = data(500, columns, g)
    assert judged(fake(test, g), test, 0)["word"] == "failed"


@pytest.mark.parametrize("columns", COLUMNS)
def test_a_density_that_is_right_is_trusted(columns):
    words = []
    for seed in range(10):
        g = torch.Generator().manual_seed(seed)
        words.append(judged(groups(150, columns, g), groups(150, columns, g), seed)["word"])
    assert words.count("trusted") >= 9
