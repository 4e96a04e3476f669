"""The toy shapes: their draws, and the densities they claim to come from."""

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import make_circles, make_moons

from gedi.data import SHAPES, NoisyCurve, draw_toy
from gedi.errors import UserError

EVERY = sorted(SHAPES)


@pytest.mark.parametrize("name", EVERY)
def test_the_density_of_every_shape_integrates_to_one(name):
    truth = SHAPES[name]()
    side = torch.linspace(-3.5, 3.5, 300)
    cells = torch.cartesian_prod(side, side)
    mass = truth.log_density(cells).double().exp().sum() * (side[1] - side[0]).double() ** 2
    assert math.isclose(mass.item(), 1, rel_tol=0.01)


@pytest.mark.parametrize("name", EVERY)
def test_the_score_of_every_shape_is_the_gradient_of_its_log_density(name):
    truth = SHAPES[name]()
    x, _ = truth.draw(50, np.random.default_rng(0))
    step = 1e-2 * truth.noise
    for axis in range(2):
        shift = torch.zeros(2)
        shift[axis] = step
        slope = (truth.log_density(x + shift) - truth.log_density(x - shift)) / (2 * step)
        torch.testing.assert_close(truth.score(x)[:, axis], slope, rtol=0.05, atol=0.2)


@pytest.mark.parametrize("name", EVERY)
def test_draws_follow_the_density_and_labels_their_curve(name):
    x, y, truth = draw_toy(name, 4000, np.random.default_rng(1))
    assert sorted(y.unique().tolist()) == list(range(truth.clusters))
    # the score has mean zero under its own density (and does not under another)
    spread = truth.score(x).std(dim=0) / math.sqrt(len(x))
    assert (truth.score(x).mean(dim=0).abs() < 5 * spread).all()
    assert (truth.nearest_cluster(x) == y).float().mean() > 0.97


def test_moons_and_circles_lie_where_scikit_learn_puts_them():
    for name, theirs in (
        ("moons", make_moons(500, noise=None)[0]),
        ("circles", make_circles(500, noise=None, factor=0.5)[0]),
    ):
        on_curve = SHAPES[name](noise=0.01).log_density(torch.tensor(theirs, dtype=torch.float32))
        assert (on_curve > 1).all()  # half the density where a moon ends


def test_a_circle_has_the_closed_form_density():
    """A ring of radius r with noise s: exp(-(|x|^2 + r^2) / 2s^2) I0(|x| r / s^2) / (2 pi s^2)."""
    from scipy.special import ive

    truth = NoisyCurve(1, lambda label, t: np.stack([np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)], 1), 0.1)
    radius = np.array([0.7, 0.95, 1.0, 1.3])
    exact = np.log(ive(0, radius / 0.01)) - (radius - 1) ** 2 / 0.02 - np.log(2 * np.pi * 0.01)
    points = torch.tensor(np.stack([radius, np.zeros(4)], 1), dtype=torch.float32)
    np.testing.assert_allclose(truth.log_density(points).numpy(), exact, atol=2e-3)


def brute_force(truth, x, k=30_000):
    """log p by nodes a hundred times closer than the noise wherever the data are, in double precision."""
    t = np.linspace(-8, 8, k) if truth.normal else (np.arange(k) + 0.5) / k
    weight = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi) * (t[1] - t[0]) if truth.normal else np.full(k, 1 / k)
    log_p = []
    for label in range(truth.clusters):
        nodes = torch.tensor(truth.curve(np.full(k, label), t))
        apart = torch.stack([(point - nodes).square().sum(dim=1) for point in x.double()])
        log_p.append((torch.tensor(np.log(weight)) - apart / (2 * truth.noise**2)).logsumexp(dim=1))
    return torch.stack(log_p).logsumexp(dim=0) - math.log(truth.clusters * 2 * math.pi * truth.noise**2)


@pytest.mark.parametrize("noise", [None, 0.02])
@pytest.mark.parametrize("name", EVERY)
def test_the_density_is_the_integral_to_a_thousandth_of_a_nat(name, noise):
    """With 600 nodes at equal shares, pinwheel's tails were 131 nats off and its KL 0.04 too low."""
    truth = SHAPES[name](noise=noise)
    draws, _ = truth.draw(4000, np.random.default_rng(0))
    far = draws[(-truth.log_density(draws)).topk(30).indices]  # the tails, where few nodes used to be
    x = torch.cat([draws[:30], far, far + 2 * truth.noise * torch.randn(far.shape)])
    torch.testing.assert_close(truth.log_density(x).double(), brute_force(truth, x), atol=1e-3, rtol=0)


def test_blobs_have_the_density_of_three_gaussians():
    truth = SHAPES["blobs"]()
    axis = torch.tensor([0.8, -0.6], dtype=torch.double)
    covariance = 0.25 * torch.outer(axis, axis) + 0.01 * torch.eye(2, dtype=torch.double)
    centres = torch.tensor([[-1.1, -0.8], [0.0, 0.0], [1.1, 0.8]], dtype=torch.double)
    x = truth.draw(20_000, np.random.default_rng(0))[0]
    parts = [torch.distributions.MultivariateNormal(c, covariance).log_prob(x.double()) for c in centres]
    exact = torch.stack(parts).logsumexp(dim=0) - math.log(3)
    torch.testing.assert_close(truth.log_density(x).double(), exact, atol=1e-4, rtol=0)


def test_the_entropy_of_the_truth_by_its_draws_and_by_a_grid_agree():
    """KL figures are differences of these: nodes too far apart made pinwheel's log p too low on its own draws."""
    truth = SHAPES["pinwheel"]()
    draws = truth.draw(20_000, np.random.default_rng(0))[0]
    side = torch.linspace(-3.5, 3.5, 200)
    log_p = truth.log_density(torch.cartesian_prod(side, side)).double()
    entropy = -(log_p.exp() * log_p).sum() * (side[1] - side[0]).double() ** 2
    values = -truth.log_density(draws).double()
    assert abs(values.mean() - entropy) < 4 * values.std() / math.sqrt(len(draws))


def test_noise_too_fine_to_integrate_is_drawn_without_a_truth():
    x, _, truth = draw_toy("pinwheel", 10, np.random.default_rng(0), noise=1e-5)
    assert len(x) == 10
    assert truth is None
    assert draw_toy("pinwheel", 10, np.random.default_rng(0), noise=0.01)[2] is not None


def test_the_same_generator_gives_the_same_points():
    a, _, _ = draw_toy("spirals", 50, np.random.default_rng(3))
    b, _, _ = draw_toy("spirals", 50, np.random.default_rng(3))
    assert torch.equal(a, b)


def test_options_change_the_shape():
    narrow = SHAPES["circles"](factor=0.2)
    assert narrow.log_density(torch.tensor([[0.2, 0.0]])) > narrow.log_density(torch.tensor([[0.5, 0.0]])) + 5


def test_unknown_shape_and_bad_noise_are_refused():
    with pytest.raises(UserError, match="did you mean 'circles'"):
        draw_toy("circels", 10, np.random.default_rng(0))
    with pytest.raises(UserError, match="noise must be > 0"):
        draw_toy("moons", 10, np.random.default_rng(0), noise=-1)
