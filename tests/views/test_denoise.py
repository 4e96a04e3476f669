"""Walks of noise and denoising: closed forms on a Gaussian, and the control that is as long."""

import pytest
import torch

from gedi.errors import UserError
from gedi.score import posterior_mean
from gedi.views import denoise_walk, noise_as_long


def blurred(width):
    """The energy of points N(0, 1) with noise of a width."""
    return lambda x: x.flatten(1).square().sum(1) / (2 * (1 + width**2))


def test_of_a_gaussian_the_mean_before_the_noise_is_a_share_of_the_point(g):
    x = torch.randn(7, 2, 3, generator=g)
    torch.testing.assert_close(posterior_mean(blurred(0.5), x, 0.5), x / 1.25)


def test_an_energy_that_knows_its_mean_is_asked_for_it():
    class Knowing:
        def __call__(self, x):
            pytest.fail("its score was taken")

        def denoised(self, x, width):
            return width * x

    assert posterior_mean(Knowing(), torch.ones(1, 2), 3.0).tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize("steps", [1, 3])
def test_spread_and_memory_of_a_walk_on_a_gaussian(steps, seeded):
    width, start = 0.7, torch.randn(200_000, 1, generator=seeded(0))
    end = denoise_walk(blurred(width), start, seeded(1), steps=steps, width=width)
    share, variance = 1 / (1 + width**2), 1.0
    for _ in range(steps):
        variance = share**2 * (variance + width**2)
    assert end.var().item() == pytest.approx(variance, rel=0.02)
    assert (end * start).mean().item() == pytest.approx(share**steps, rel=0.02)


def test_the_path_begins_at_the_point_and_ends_at_the_end(seeded):
    x = torch.randn(4, 1, 3, 3, generator=seeded(0))
    path = denoise_walk(blurred(0.5), x, seeded(1), steps=5, width=0.5, every=2)
    assert path.shape == (4, 4, 1, 3, 3)
    assert torch.equal(path[0], x)
    assert torch.equal(path[-1], denoise_walk(blurred(0.5), x, seeded(1), steps=5, width=0.5))
    assert torch.equal(denoise_walk(blurred(0.5), x, seeded(1), steps=0, width=0.5), x)


def test_what_cannot_be_is_refused(g):
    with pytest.raises(UserError, match="steps"):
        denoise_walk(blurred(1), torch.zeros(1, 2), g, steps=-1)
    with pytest.raises(UserError, match="width of its noise > 0, got 0"):
        denoise_walk(blurred(1), torch.zeros(1, 2), g, width=0.0)


@pytest.mark.parametrize("places", [(), (3,)])
def test_the_control_goes_as_far_in_any_direction(places, seeded):
    x = torch.randn(2000, 1, 3, 3, generator=seeded(0))
    ends = x + torch.randn(*places, 2000, 1, 3, 3, generator=seeded(1))
    control = noise_as_long(x, ends, seeded(2))
    away, went = (control - x).flatten(-3), (ends - x).flatten(-3)
    torch.testing.assert_close(away.norm(dim=-1), went.norm(dim=-1))
    assert torch.cosine_similarity(away, went, dim=-1).mean().abs() < 0.02
    assert (away / away.norm(dim=-1, keepdim=True)).mean(dim=-2).abs().max() < 0.04
