import math

import torch

from gedi.sampling import Box

BOX = Box(torch.tensor([-1.0, 2.0]), torch.tensor([1.0, 6.0]))


def test_the_box_around_points_is_the_tightest_one_plus_its_margin():
    x = torch.randn(50, 3)
    tight, wide = Box.around(x, 0.0), Box.around(x, 0.25)
    assert tight.contains(x).all()
    for side in (tight.low, tight.high):  # each face touches a point
        assert (x == side).any(0).all()
    torch.testing.assert_close(wide.high - wide.low, tight.high - tight.low + 0.5)
    torch.testing.assert_close(wide.high + wide.low, tight.high + tight.low)


def test_samples_are_uniform_on_the_box(g):
    x = BOX.sample(40_000, g)
    assert BOX.contains(x).all()
    unit = (x - BOX.low) / (BOX.high - BOX.low)
    torch.testing.assert_close(unit.mean(0), torch.full((2,), 0.5), rtol=0, atol=0.01)
    torch.testing.assert_close(unit.T.cov(), torch.eye(2) / 12, rtol=0, atol=0.002)
    assert math.isclose((unit < 0.1).float().mean().item(), 0.1, abs_tol=0.005)


def test_clamping_is_the_projection_on_the_box():
    x = 10 * torch.randn(200, 2)
    clamped = BOX.clamp(x)
    assert BOX.contains(clamped).all()
    inside = BOX.contains(x)
    assert torch.equal(clamped[inside], x[inside])
    others = BOX.sample(200, torch.Generator().manual_seed(1))
    assert ((clamped - x).norm(dim=1)[:, None] <= torch.cdist(x, others) + 1e-4).all()  # none is nearer


def test_a_point_is_inside_only_if_every_coordinate_is():
    x = torch.tensor([[0.0, 3.0], [0.0, 7.0], [-2.0, 3.0], [1.0, 6.0]])
    assert BOX.contains(x).tolist() == [True, False, False, True]


def test_a_point_that_is_no_number_is_not_inside():
    assert BOX.contains(torch.tensor([[torch.nan, 3.0], [torch.inf, 3.0], [0.0, 3.0]])).tolist() == [False, False, True]


def test_a_box_of_images_contains_and_samples_images(g):
    box = Box(torch.zeros(1, 4, 4), torch.ones(1, 4, 4))
    x = box.sample(5, g)
    assert x.shape == (5, 1, 4, 4)
    x[2, 0, 3, 3] = 1.5
    assert box.contains(x).tolist() == [True, True, False, True, True]
