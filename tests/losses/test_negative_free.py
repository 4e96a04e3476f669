import math

import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from gedi.losses import negative_free


def scatter(w, ridge):
    centred = w - w.mean(0)
    return centred.T @ centred + ridge * torch.eye(w.shape[1], dtype=w.dtype)


def in_covariance_form(w, xi, xi_view, ridge):
    s = scatter(w, ridge)
    return (s.trace() - torch.logdet(s)) / 2 + (xi - xi_view).square().sum() / 2


def draw(n, d, h=3):
    return [torch.randn(n, k, dtype=torch.float64) for k in (d, h, h)]


def test_it_is_a_sum_of_kl_divergences_of_gaussians_up_to_the_constant():
    w, xi, xi_view = draw(20, 4)
    spread = kl_divergence(
        MultivariateNormal(torch.zeros(4).double(), scatter(w, 0.1)),
        MultivariateNormal(torch.zeros(4).double(), torch.eye(4).double()),
    )
    eye = torch.eye(3).double()
    invariance = kl_divergence(MultivariateNormal(xi, eye), MultivariateNormal(xi_view, eye)).sum()
    constant = 4 / 2  # the divergence has the dimension subtracted
    torch.testing.assert_close(negative_free(w, xi, xi_view, ridge=0.1), spread + invariance + constant)


@pytest.mark.parametrize(("n", "d"), [(2, 5), (4, 5), (5, 5), (6, 5), (30, 5), (8, 64)])
@pytest.mark.parametrize("ridge", [1e-4, 0.5])
def test_the_gram_form_is_the_covariance_form(n, d, ridge):
    w, xi, xi_view = draw(n, d)
    torch.testing.assert_close(
        negative_free(w, xi, xi_view, ridge), in_covariance_form(w, xi, xi_view, ridge), rtol=1e-9, atol=0
    )


def test_the_gram_form_has_the_gradient_of_the_covariance_form():
    w, xi, xi_view = draw(4, 9)
    w.requires_grad_(True)
    (ours,) = torch.autograd.grad(negative_free(w, xi, xi_view, 0.1), w)
    (theirs,) = torch.autograd.grad(in_covariance_form(w, xi, xi_view, 0.1), w)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [4, 20])
def test_rotating_and_shifting_embeddings_and_latents_changes_nothing(n):
    w, xi, xi_view = draw(n, 6)
    turn_w = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64))[0]
    turn_xi = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64))[0]
    moved = negative_free(w @ turn_w + 5, xi @ turn_xi - 2, xi_view @ turn_xi - 2)
    torch.testing.assert_close(moved, negative_free(w, xi, xi_view), rtol=1e-8, atol=0)


@pytest.mark.parametrize("n", [3, 10])
def test_its_gradient_is_its_finite_difference(n):
    w, xi, xi_view = draw(n, 5)
    ways, h = draw(n, 5), 1e-6
    inputs = [t.requires_grad_(True) for t in (w, xi, xi_view)]
    gradients = torch.autograd.grad(negative_free(*inputs, 0.1), inputs)
    slope = sum((g * way).sum() for g, way in zip(gradients, ways, strict=True))
    ahead, behind = (
        negative_free(*(t.detach() + step * way for t, way in zip(inputs, ways, strict=True)), 0.1) for step in (h, -h)
    )
    assert math.isclose(slope.item(), ((ahead - behind) / (2 * h)).item(), rel_tol=1e-6)


def test_the_scatter_is_a_sum_and_not_a_mean():
    w, xi, _ = draw(10, 2)
    # twice the points: S doubles, so tr S doubles and log det S gains d log 2
    s = scatter(w, 0.0)
    gained = negative_free(w.repeat(2, 1), xi, xi, 1e-12) - negative_free(w, xi, xi, 1e-12)
    assert math.isclose(gained.item(), (s.trace().item() - 2 * math.log(2)) / 2, rel_tol=1e-6)


def test_the_spread_is_best_where_the_scatter_is_the_identity():
    w, xi, _ = draw(12, 3)
    centred = w - w.mean(0)
    white = centred @ torch.linalg.inv(torch.linalg.cholesky(centred.T @ centred)).T
    best = negative_free(white, xi, xi, 1e-9)
    assert math.isclose(best.item(), 3 / 2, rel_tol=1e-6)
    for scale in (0.8, 1.25):
        assert negative_free(scale * white, xi, xi, 1e-9) > best + 0.01


def test_collapse_costs_ever_more_as_it_nears():
    w, xi, _ = draw(12, 3)
    costs = [negative_free(scale * w, xi, xi, 1e-8).item() for scale in (1e-1, 1e-2, 1e-3)]
    assert costs[0] < costs[1] < costs[2]
    assert math.isclose(costs[2] - costs[1], 3 * math.log(10), rel_tol=0.01)  # -log det / 2 of a scale, cubed


def test_latents_that_agree_cost_nothing_and_pay_half_their_squared_distance_otherwise():
    w, xi, _ = draw(10, 4)
    away = torch.zeros_like(xi)
    away[3, 1] = 2.0
    gap = negative_free(w, xi, xi + away) - negative_free(w, xi, xi)
    assert math.isclose(gap.item(), 2.0, rel_tol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("n", "d"), [(512, 2), (512, 8), (2048, 64), (600, 700)])
def test_embeddings_at_two_opposite_points_are_factored(n, d, dtype):
    # what two tight clusters come to: n in one direction, nothing but the ridge in all others
    way = torch.nn.functional.normalize(torch.randn(1, d), dim=1)
    w = (torch.where(torch.arange(n)[:, None] % 2 == 0, 1.0, -1.0) * way).to(dtype).requires_grad_()
    exact = w.detach().double().requires_grad_()
    xi = torch.zeros(n, 3)
    with torch.autocast("cpu", torch.bfloat16):
        value = negative_free(w, xi, xi)
    torch.testing.assert_close(value.double(), in_covariance_form(exact, xi, xi, 1e-4), rtol=1e-6, atol=0)
    (gradient,) = torch.autograd.grad(value, w)
    (true,) = torch.autograd.grad(in_covariance_form(exact, xi, xi, 1e-4), exact)
    torch.testing.assert_close(gradient.double(), true, rtol=1e-2, atol=1e-2)
