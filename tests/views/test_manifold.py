import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from gedi.errors import UserError
from gedi.nn import MLP, Energy
from gedi.score import score
from gedi.views import manifold_walk

DIRECTIONS = ["constant", "fresh", "carried"]


def flat(x):
    return x.flatten(1).sum(1) * 0


def ring(x):
    """A density on the unit circle, 0.05 wide."""
    return 200 * (x.norm(dim=1) - 1).square()


def saddle(x):
    return (x[:, 0] ** 3 - 2 * x[:, 0] * x[:, 1] + torch.sin(3 * x[:, 1])) + x[:, 2:].square().sum(1)


def on_circle(n, dtype=torch.float32):
    angle = torch.linspace(0, 2 * math.pi, n + 1, dtype=dtype)[:n]
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def travelled(path):
    """The angle that each walk on the circle has gone round, either way: (n,)."""
    a, b = path[:-1], path[1:]
    turns = torch.atan2(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0], (a * b).sum(-1))
    return turns.sum(0).abs()


def delta_of(x, generator, direction="constant", radius=0.03):
    """The step that this generator draws: on a flat energy it is the whole move."""
    return manifold_walk(flat, x, generator, steps=1, radius=radius, direction=direction) - x


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_one_step_is_the_formula_of_the_paper(seeded, direction):
    x = torch.randn(20, 3, dtype=torch.float64)
    delta = delta_of(x, seeded(1), direction, radius=0.2)
    end = manifold_walk(saddle, x, seeded(1), steps=1, radius=0.2, direction=direction)
    for start, d, stop in zip(x, delta, end, strict=True):
        (gradient,) = torch.autograd.functional.jacobian(lambda y: saddle(y[None]), start + d)
        expected = start + d - (gradient @ d) / (gradient @ gradient) * gradient
        torch.testing.assert_close(stop, expected, rtol=1e-8, atol=1e-10)


def test_a_constant_direction_is_one_step_repeated_t_times(seeded):
    x = torch.randn(20, 3, dtype=torch.float64)
    delta = delta_of(x, seeded(1))
    expected = x.clone()
    for _ in range(7):
        y = (expected + delta).requires_grad_(True)
        (g,) = torch.autograd.grad(saddle(y).sum(), y)
        expected = expected + delta - (g * delta).sum(1, keepdim=True) / g.square().sum(1, keepdim=True) * g
    torch.testing.assert_close(manifold_walk(saddle, x, seeded(1), steps=7), expected)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_move_is_at_right_angles_to_the_score(seeded, direction):
    x = torch.randn(50, 3, dtype=torch.float64)
    delta = delta_of(x, seeded(2), direction, radius=0.1)
    move = manifold_walk(saddle, x, seeded(2), steps=1, radius=0.1, direction=direction) - x
    y = (x + delta).requires_grad_(True)
    (g,) = torch.autograd.grad(saddle(y).sum(), y)
    cosine = (move * g).sum(1) / g.norm(dim=1) / delta.norm(dim=1)
    torch.testing.assert_close(cosine, torch.zeros_like(cosine), rtol=0, atol=1e-10)
    assert (move.norm(dim=1) <= delta.norm(dim=1) + 1e-12).all()  # a projection never lengthens


@given(st.floats(-6, 6), st.sampled_from([-1.0, 1.0]), st.sampled_from(DIRECTIONS))
def test_neither_the_scale_nor_the_sign_of_the_energy_matters(exponent, sign, direction):
    x = on_circle(12, torch.float64) + 0.1

    def walk(factor):
        return manifold_walk(
            lambda y: factor * ring(y), x, torch.Generator().manual_seed(0), steps=5, direction=direction
        )

    torch.testing.assert_close(walk(sign * 10**exponent), walk(1.0))


@pytest.mark.parametrize("direction", ["constant", "carried"])
def test_where_the_energy_is_flat_every_step_is_the_whole_delta(seeded, direction):
    x = torch.randn(30, 4, dtype=torch.float64)
    delta = delta_of(x, seeded(3), direction)
    assert delta.norm(dim=1).min() > 0
    for steps in (1, 2, 9):
        end = manifold_walk(flat, x, seeded(3), steps=steps, direction=direction)
        torch.testing.assert_close(end - x, steps * delta)


def test_an_energy_without_a_graph_is_flat(seeded):
    x = torch.randn(30, 4)
    constant = manifold_walk(lambda x: torch.zeros(len(x)), x, seeded(3), steps=4)
    assert torch.equal(constant, manifold_walk(flat, x, seeded(3), steps=4))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_step_is_uniform_in_the_ball(g, d):
    n, radius = 20_000, 0.3
    delta = delta_of(torch.zeros(n, d, dtype=torch.float64), g, radius=radius)
    share = (delta.norm(dim=1) / radius) ** d  # the volume inside, uniform on (0, 1)
    assert share.max() <= 1
    assert kstest(share.numpy(), "uniform").pvalue > 1e-4
    expected = radius**2 / (d + 2) * torch.eye(d, dtype=torch.float64)  # the covariance of a uniform ball
    torch.testing.assert_close(delta.T @ delta / n, expected, rtol=0, atol=0.02 * radius**2)
    assert delta.mean(0).abs().max() < 0.02 * radius


def test_a_single_fresh_step_is_the_constant_one(seeded):
    x = torch.randn(10, 3)
    assert torch.equal(delta_of(x, seeded(1), "fresh"), delta_of(x, seeded(1), "constant"))


def test_a_carried_step_is_between_half_the_radius_and_the_radius(g):
    delta = delta_of(torch.zeros(20_000, 3, dtype=torch.float64), g, "carried", radius=0.3)
    length = delta.norm(dim=1)
    assert kstest(length.numpy(), "uniform", (0.15, 0.15)).pvalue > 1e-4


def test_fresh_steps_cover_the_square_root_of_the_distance(g):
    n, d, steps, radius = 5000, 2, 25, 0.1
    x = torch.zeros(n, d)
    one_step = radius**2 * d / (d + 2)  # the mean square of a step uniform in the ball
    fresh, constant = (
        manifold_walk(flat, x, g, steps=steps, radius=radius, direction=way).square().sum(1).mean().item()
        for way in ("fresh", "constant")
    )
    assert math.isclose(fresh, steps * one_step, rel_tol=0.06)
    assert math.isclose(constant, steps**2 * one_step, rel_tol=0.06)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_one_points_walk_does_not_depend_on_the_others(seeded, direction):
    x = torch.randn(10, 3)
    changed = x.clone()
    changed[4] += 3.0
    walk = [
        manifold_walk(saddle, start, seeded(4), steps=6, direction=direction, corrector=0.01) for start in (x, changed)
    ]
    others = torch.arange(10) != 4
    torch.testing.assert_close(walk[0][others], walk[1][others])
    assert not torch.allclose(walk[0][4], walk[1][4])


def test_a_carried_and_corrected_walk_stays_on_the_circle(g):
    path = manifold_walk(ring, on_circle(200), g, steps=200, radius=0.05, direction="carried", corrector=1e-3, every=1)
    off = (path.norm(dim=2) - 1).abs()
    assert off.max() < 0.05  # a first direction across the circle costs at most one radius
    assert off[50:].max() < 0.01  # once it runs along, every point of every walk is on the circle
    assert travelled(path).min() > 0.9 * 200 * 0.025  # and not by standing still: steps go their whole length


def test_the_corrector_brings_the_walk_back_to_the_ridge(seeded):
    x = 1.05 * on_circle(100)

    def off(corrector):
        end = manifold_walk(ring, x, seeded(0), steps=50, radius=0.03, direction="carried", corrector=corrector)
        return (end.norm(dim=1) - 1).abs().mean()

    assert off(0.0) > 0.03  # a walk along level sets stays about as far from the ridge as it began
    assert off(1e-3) < 0.003


def test_the_corrector_climbs_along_the_score_and_at_most_the_radius(seeded):
    x, radius = torch.randn(30, 3, dtype=torch.float64), 0.1
    delta = delta_of(x, seeded(6), radius=radius)
    y = (x + delta).requires_grad_(True)
    (gradient,) = torch.autograd.grad(-saddle(y).sum(), y)

    def climb(corrector):
        return manifold_walk(saddle, x, seeded(6), steps=1, radius=radius, corrector=corrector) - manifold_walk(
            saddle, x, seeded(6), steps=1, radius=radius
        )

    torch.testing.assert_close(climb(1e-3), 1e-3 * gradient)  # short enough: the climb is c * g
    unit = gradient / gradient.norm(dim=1, keepdim=True)
    torch.testing.assert_close(climb(1e6), radius * unit)  # too long: cut to the radius


def test_a_carried_direction_goes_farther_round_a_circle_than_a_constant_one(seeded):
    median = {
        way: travelled(
            manifold_walk(ring, on_circle(300), seeded(0), steps=150, radius=0.05, direction=way, every=1)
        ).median()
        for way in DIRECTIONS
    }
    # a constant direction stalls where the circle is at right angles to it
    assert median["constant"] < math.pi / 2
    assert median["carried"] > 2 * median["constant"]
    assert median["carried"] > 2 * median["fresh"]


def test_a_walk_keeps_to_a_straight_manifold_exactly(g):
    x = torch.zeros(50, 3, dtype=torch.float64)  # the energy grows with z alone: the manifold is the plane z = 0
    for direction in DIRECTIONS:
        end = manifold_walk(lambda x: 1 + 5 * x[:, 2], x, g, steps=30, radius=0.1, direction=direction)
        assert end[:, 2].abs().max() < 1e-12
        assert end[:, :2].norm(dim=1).median() > 0.2


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("steps", "every"), [(12, 1), (12, 3), (12, 12), (10, 3), (0, 2)])
def test_every_returns_the_path_of_the_same_walk(seeded, direction, steps, every):
    x = on_circle(8)
    path = manifold_walk(ring, x, seeded(1), steps=steps, direction=direction, every=every)
    assert path.shape == (1 + -(-steps // every), 8, 2)
    for k, points in enumerate(path):
        shorter = manifold_walk(ring, x, seeded(1), steps=min(k * every, steps), direction=direction)
        torch.testing.assert_close(points, shorter)
    assert torch.equal(path[-1], manifold_walk(ring, x, seeded(1), steps=steps, direction=direction))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_no_steps_return_the_start(g, direction):
    x = torch.randn(6, 2)
    assert torch.equal(manifold_walk(ring, x, g, steps=0, direction=direction), x)


def test_images_are_walked_as_vectors(seeded):
    x = torch.randn(5, 1, 4, 4)
    end = manifold_walk(lambda x: x[:, 0, 0, :3].pow(3).sum(1), x, seeded(0), steps=5)
    assert end.shape == x.shape
    flattened = manifold_walk(lambda x: x[:, :3].pow(3).sum(1), x.flatten(1), seeded(0), steps=5)
    torch.testing.assert_close(end.flatten(1), flattened)


def test_a_walk_keeps_no_graph_and_leaves_its_start_as_it_was(g):
    energy = Energy(MLP(2, (8,), 3), torch.nn.Parameter(torch.randn(3)))
    x = torch.randn(6, 2)
    before = x.clone()
    end = manifold_walk(energy, x, g, direction="carried", corrector=0.1)
    assert end.grad_fn is None
    assert not end.requires_grad
    assert energy.direction.grad is None
    assert all(p.grad is None for p in energy.encoder.parameters())
    assert torch.equal(x, before)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_same_seed_walks_the_same_way(seeded, direction):
    x = on_circle(20)
    first, again, other = (manifold_walk(ring, x, seeded(s), direction=direction) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_negative_number_of_steps_is_refused(g):
    with pytest.raises(UserError, match=r"steps \(T\) >= 0, got -1"):
        manifold_walk(ring, torch.zeros(1, 2), g, steps=-1)


@pytest.mark.parametrize("radius", [0.0, -0.1])
def test_a_radius_that_is_not_positive_is_refused(g, radius):
    with pytest.raises(UserError, match=rf"radius \(epsilon\) > 0, got {radius}"):
        manifold_walk(ring, torch.zeros(1, 2), g, radius=radius)


def test_a_walk_that_relaxes_follows_a_curve_in_many_dimensions(g):
    """A ring in 2 of 50 dimensions: the projection alone drifts off into the other 48, relaxing comes back."""

    def energy(x):
        ring = (x[:, :2].norm(dim=1) - 1).square()
        return 200 * (ring + x[:, 2:].square().sum(dim=1))

    def relax(energy, x, generator):
        for _ in range(5):
            x = x + 1e-3 * score(energy, x)
        return x

    start = torch.zeros(200, 50)
    start[:, 0] = 1
    settings = {"steps": 40, "radius": 1.0, "direction": "fresh"}
    plain = manifold_walk(energy, start, g, **settings)
    relaxed = manifold_walk(energy, start, g, relax=relax, **settings)
    assert energy(relaxed).mean() < 0.05 * energy(plain).mean()
    angle = torch.atan2(relaxed[:, 1], relaxed[:, 0]).abs()
    assert angle.mean() > 0.3  # and it has gone somewhere


def test_a_relaxed_path_begins_at_the_start_and_ends_where_the_walk_does(seeded):
    energy = lambda x: x.square().sum(dim=1) / 2  # noqa: E731
    relax = lambda energy, x, generator: x + 0.1 * score(energy, x)  # noqa: E731
    x = torch.randn(5, 3)
    path = manifold_walk(energy, x, seeded(1), steps=4, relax=relax, every=1)
    torch.testing.assert_close(path[0], x)
    torch.testing.assert_close(path[-1], manifold_walk(energy, x, seeded(1), steps=4, relax=relax))
