import math

import pytest
import torch

from gedi.losses import denoising


def orthonormal_sample(n):
    """Two columns of n numbers with means 0, variances 1 and covariance 0, exactly."""
    draws = torch.randn(n, 2, dtype=torch.float64)
    return torch.linalg.qr(draws - draws.mean(0))[0] * math.sqrt(n)


def normal_quantiles(n):
    """A sample whose averages are very nearly expectations under a standard normal."""
    return torch.special.ndtri((torch.arange(n, dtype=torch.float64) + 0.5) / n)


@pytest.mark.parametrize(("mean", "s", "sigma"), [(0.0, 1.0, 0.5), (0.0, 0.2, 0.3), (2.0, 1.5, 0.1)])
def test_the_best_linear_score_is_that_of_the_blurred_gaussian(mean, s, sigma):
    draws = orthonormal_sample(500)
    x, noise = mean + s * draws[:, :1], draws[:, 1:]
    y = x + sigma * noise

    def loss(ab):
        return denoising(ab[0] * y + ab[1], noise, sigma)

    # the loss is quadratic in (a, b): one Newton step from anywhere is the least-squares solution
    start = torch.zeros(2, dtype=torch.float64)
    gradient = torch.autograd.functional.jacobian(loss, start)
    hessian = torch.autograd.functional.hessian(loss, start)
    slope, offset = (start - torch.linalg.solve(hessian, gradient)).tolist()
    assert math.isclose(slope, -1 / (s**2 + sigma**2), rel_tol=1e-8)
    assert math.isclose(offset, mean / (s**2 + sigma**2), rel_tol=1e-8, abs_tol=1e-8)


def test_the_score_of_a_blurred_mixture_is_stationary_in_every_direction():
    # two point masses at +-1, blurred: score (tanh(y / sigma^2) - y) / sigma^2
    sigma, n = 0.6, 20_000
    noise = normal_quantiles(n).repeat(2)[:, None]
    y = torch.cat([torch.ones(n), -torch.ones(n)])[:, None] + sigma * noise
    best = (torch.tanh(y / sigma**2) - y) / sigma**2
    for change in (torch.ones_like(y), y, y**2, torch.sin(3 * y), torch.tanh(5 * y)):
        t = torch.zeros((), dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(denoising(best + t * change, noise, sigma), t)
        assert abs(slope.item()) < 1e-3
        assert denoising(best + 0.1 * change, noise, sigma) > denoising(best, noise, sigma)
        assert denoising(best - 0.1 * change, noise, sigma) > denoising(best, noise, sigma)
    of_the_data_unblurred_toward_one_mass = (1 - y) / sigma**2
    assert denoising(of_the_data_unblurred_toward_one_mass, noise, sigma) > denoising(best, noise, sigma) + 0.1


def test_a_score_of_zero_costs_the_dimension():
    d = 3
    noise = torch.stack([normal_quantiles(5000)] * d, dim=1)
    assert math.isclose(denoising(torch.zeros_like(noise), noise, 0.3).item(), d, rel_tol=1e-3)


@pytest.mark.parametrize("sigma", [0.01, 1.0, 7.0])
def test_a_point_mass_has_a_score_of_no_cost_at_any_width(sigma):
    noise = torch.randn(10, 2, dtype=torch.float64)
    assert denoising(-noise / sigma, noise, sigma) < 1e-20


def test_it_is_the_mean_over_points_of_the_squared_length():
    score, noise = torch.randn(5, 3), torch.randn(5, 3)
    by_hand = sum(float((0.4 * s + e).norm() ** 2) for s, e in zip(score, noise, strict=True)) / 5
    assert math.isclose(denoising(score, noise, 0.4).item(), by_hand, rel_tol=1e-5)


def test_images_count_as_vectors():
    score, noise = torch.randn(5, 1, 4, 4), torch.randn(5, 1, 4, 4)
    torch.testing.assert_close(denoising(score, noise, 0.4), denoising(score.flatten(1), noise.flatten(1), 0.4))
