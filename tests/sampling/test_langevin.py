import math

import pytest
import torch
from torch import nn

from gedi.nn import MLP, Energy
from gedi.sampling import Box, Chain, Langevin, Teleport

N = 20_000  # chains: a variance is known to sqrt(2 / N) = 1 %


def gaussian(x):
    return x.square().sum(1) / 2


def flat(x):
    return x.sum(1) * 0


def box(low, high, d=1):
    return Box(torch.full((d,), float(low)), torch.full((d,), float(high)))


def test_sgld_reaches_the_stationary_variance_of_its_recursion(g):
    a, s = 0.5, 0.3  # x <- (1 - a) x + s * noise on a unit Gaussian
    x, acceptance = Langevin(noise=s, step_size=a, steps=30).run(gaussian, torch.zeros(N, 1), g)
    assert math.isclose(x.var().item(), s**2 / (1 - (1 - a) ** 2), rel_tol=0.04)
    assert abs(x.mean()) < 4 * 0.35 / N**0.5
    assert acceptance == 1.0


def test_one_step_of_sgld_is_drift_plus_noise(seeded):
    x = torch.randn(50, 3)
    epsilon = torch.randn(x.shape, generator=seeded(5))
    moved, _ = Langevin(noise=0.2, step_size=0.7).run(lambda x: x.pow(4).sum(1), x, seeded(5))
    torch.testing.assert_close(moved, x - 0.7 * 4 * x**3 + 0.2 * epsilon)


def test_sgld_climbs_the_density_when_there_is_no_noise(g):
    x = torch.randn(10, 2)
    moved, _ = Langevin(noise=0.0, step_size=0.1, steps=20).run(gaussian, x, g)
    torch.testing.assert_close(moved, 0.9**20 * x)


@pytest.mark.parametrize(("noise", "step_size", "temperature"), [(0.3, None, 1), (0.8, 0.16, 2), (0.01, 1, 5e-5)])
def test_the_temperature_is_half_the_noise_variance_over_the_step_size(noise, step_size, temperature):
    assert math.isclose(Langevin(noise=noise, step_size=step_size).temperature, temperature)


def test_without_a_step_size_the_temperature_is_one_and_small_steps_sample_the_density(g):
    x, _ = Langevin(noise=0.2, steps=150).run(gaussian, torch.randn(N, 1, generator=g), g)
    assert math.isclose(x.var().item(), 1 / (1 - 0.02 / 2), rel_tol=0.04)


def test_metropolis_samples_a_gaussian_exactly_even_with_large_steps(g):
    s = 1.5
    biased = s**2 / (1 - (1 - s**2 / 2) ** 2)  # where the plain recursion would end
    assert biased > 2
    x, acceptance = Langevin(noise=s, steps=60, metropolis=True).run(gaussian, torch.zeros(N, 1), g)
    assert math.isclose(x.var().item(), 1, rel_tol=0.04)
    assert math.isclose((x**4).mean().item(), 3, rel_tol=0.1)
    assert 0.3 < acceptance < 0.95


@pytest.mark.parametrize("temperature", [0.25, 2.0])
def test_metropolis_at_another_temperature_divides_the_energy_by_it(g, temperature):
    s = 1.2 * temperature**0.5
    method = Langevin(noise=s, step_size=s**2 / (2 * temperature), steps=60, metropolis=True)
    x, _ = method.run(gaussian, torch.zeros(N, 1), g)
    assert math.isclose(x.var().item(), temperature, rel_tol=0.04)


def test_metropolis_keeps_a_density_that_is_not_gaussian(g):
    # E = |x| + log(2): the Laplace density, variance 2, whose score jumps at 0
    x, _ = Langevin(noise=1.5, steps=150, metropolis=True).run(lambda x: x.abs().sum(1), torch.zeros(N, 1), g)
    assert math.isclose(x.var().item(), 2, rel_tol=0.06)
    assert math.isclose(x.abs().mean().item(), 1, rel_tol=0.03)


def test_metropolis_stays_exact_when_the_drift_is_clipped(g):
    method = Langevin(noise=1.0, steps=80, metropolis=True, clip=0.4)
    x, acceptance = method.run(gaussian, torch.zeros(N, 1), g)
    assert math.isclose(x.var().item(), 1, rel_tol=0.04)
    assert acceptance < 1


def test_metropolis_keeps_the_correlations_of_many_dimensions(g):
    covariance = torch.tensor([[1.0, 0.8], [0.8, 1.0]])
    precision = covariance.inverse()
    x, _ = Langevin(noise=0.7, steps=80, metropolis=True).run(
        lambda x: (x @ precision * x).sum(1) / 2, torch.zeros(N, 2), g
    )
    torch.testing.assert_close(x.T.cov(), covariance, rtol=0, atol=0.05)


def test_a_rejected_chain_stays_where_it_was_with_its_own_energy_and_score(g):
    with torch.no_grad():
        before = Chain.at(gaussian, torch.randn(500, 2))
        after, accepted = Langevin(noise=1.5, metropolis=True).step(gaussian, before, g)
    assert 0 < accepted.sum() < 500
    for old, new in zip(before, after, strict=True):
        assert torch.equal(new[~accepted], old[~accepted])
    assert (after.x[accepted] != before.x[accepted]).any(1).all()
    torch.testing.assert_close(after.energy, gaussian(after.x))  # what is carried is what stands there
    torch.testing.assert_close(after.score, -after.x)


@pytest.mark.parametrize("clip", [None, 0.7])
@pytest.mark.parametrize(("noise", "step_size"), [(0.8, None), (0.5, 0.5), (1.0, 0.1)])
def test_moves_are_accepted_by_the_ratio_of_both_densities_and_both_proposals(seeded, clip, noise, step_size):
    """The rule by the book: log p(x') q(x | x') - log p(x) q(x' | x), with q the Gaussian of a move."""
    quartic = lambda x: x.pow(4).sum(1) / 4  # noqa: E731
    sampler = Langevin(noise=noise, step_size=step_size, metropolis=True, clip=clip)
    with torch.no_grad():
        before = Chain.at(quartic, 1.5 * torch.randn(2000, 2, dtype=torch.float64))
    _, accepted = sampler.step(quartic, before, seeded(3))

    draws = seeded(3)
    epsilon = torch.randn(2000, 2, generator=draws, dtype=torch.float64)
    uniform = torch.rand(2000, generator=draws, dtype=torch.float64)

    def mean(x):
        drift = -x.pow(3)
        return x + sampler.alpha * (drift if clip is None else drift.clamp(-clip, clip))

    def log_q(to, start):
        return -(to - mean(start)).square().sum(1) / (2 * noise**2)

    x, y = before.x, mean(before.x) + noise * epsilon
    log_p = lambda x: -quartic(x) / sampler.temperature  # noqa: E731
    by_hand = uniform.log() < log_p(y) + log_q(x, y) - log_p(x) - log_q(y, x)
    assert torch.equal(accepted, by_hand)
    assert 0 < accepted.sum() < 2000


def test_the_acceptance_is_the_share_of_moves_made(g):
    x = torch.zeros(1000, 1)
    moved, acceptance = Langevin(noise=2.0, metropolis=True).run(lambda x: 3 * gaussian(x), x, g)
    assert math.isclose(acceptance, (moved != x).float().mean().item(), abs_tol=1e-6)


def test_a_move_to_where_the_energy_is_not_finite_is_rejected(g):
    def walled(x):  # the unit interval, outside of which there is nothing
        return torch.where(x.abs() < 1, 0 * x, torch.inf).sum(1)

    x, _ = Langevin(noise=0.5, steps=20, metropolis=True).run(walled, torch.zeros(200, 1), g)
    assert (x.abs() < 1).all()
    assert (x != 0).all()


def test_plain_chains_are_clamped_to_the_box(g):
    x, _ = Langevin(noise=3.0, steps=5, box=box(-1, 1, 2)).run(gaussian, torch.zeros(500, 2), g)
    assert x.abs().max() == 1
    assert (x.abs() == 1).float().mean() > 0.3  # they pile up on the walls: clamping is not exact


def test_metropolis_chains_fill_the_box_evenly_when_the_energy_is_flat(g):
    walls = box(-1, 3)
    x, acceptance = Langevin(noise=1.5, steps=60, metropolis=True, box=walls).run(flat, torch.zeros(N, 1), g)
    assert walls.contains(x).all()
    assert not (x == 3).any()
    unit = (x + 1) / 4
    for k in (1, 2, 3, 4):
        assert math.isclose(unit.pow(k).mean().item(), 1 / (k + 1), abs_tol=0.01)
    assert acceptance < 0.95


def test_metropolis_in_a_box_samples_the_truncated_density(g):
    x, _ = Langevin(noise=1.0, steps=60, metropolis=True, box=box(0, 5)).run(gaussian, torch.ones(N, 1), g)
    assert (x >= 0).all()
    assert math.isclose(x.mean().item(), (2 / math.pi) ** 0.5, rel_tol=0.03)  # the half-normal


def test_clip_bounds_the_drift_of_every_component(g):
    def steep(x):
        return 1000 * x[:, 0] - 0.5 * x[:, 1]

    method = Langevin(noise=0.0, step_size=0.1, steps=1, clip=2.0)
    moved, _ = method.run(steep, torch.zeros(4, 2), g)
    torch.testing.assert_close(moved, torch.tensor([-0.2, 0.05]).expand(4, 2))
    moved, _ = Langevin(noise=0.0, step_size=0.1).run(steep, torch.zeros(4, 2), g)
    torch.testing.assert_close(moved, torch.tensor([-100.0, 0.05]).expand(4, 2))


@pytest.mark.parametrize("metropolis", [False, True])
@pytest.mark.parametrize("closed_form", [True, False])
def test_sampling_gives_no_parameter_a_gradient_and_keeps_no_graph(g, closed_form, metropolis):
    encoder = MLP(2, (8,), 3) if closed_form else nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))
    direction = nn.Parameter(torch.randn(3))
    x = torch.randn(16, 2)
    moved, _ = Langevin(noise=0.1, steps=3, metropolis=metropolis).run(Energy(encoder, direction), x, g)
    assert not moved.requires_grad
    assert moved.grad_fn is None
    assert direction.grad is None
    assert all(p.grad is None and p.requires_grad for p in encoder.parameters())
    assert not x.requires_grad
    assert torch.is_grad_enabled()


def test_sampling_leaves_the_starting_points_as_they_were(g):
    x = torch.randn(16, 2)
    before = x.clone()
    Langevin(noise=0.5, steps=3, metropolis=True).run(gaussian, x, g)
    assert torch.equal(x, before)


def test_no_steps_return_the_start(g):
    x = torch.randn(5, 2)
    moved, acceptance = Langevin(noise=0.5, steps=0).run(gaussian, x, g)
    assert torch.equal(moved, x)
    assert acceptance == 0


def test_chains_of_images_keep_their_shape_and_their_law(g):
    def images(x):
        return x.square().flatten(1).sum(1) / 2

    x, acceptance = Langevin(noise=0.5, steps=40, metropolis=True).run(images, torch.zeros(1000, 1, 4, 4), g)
    assert x.shape == (1000, 1, 4, 4)
    assert math.isclose(x.var().item(), 1, rel_tol=0.05)
    assert 0.5 < acceptance < 1


@pytest.mark.parametrize("metropolis", [False, True])
def test_the_same_seed_gives_the_same_samples_bit_for_bit(seeded, metropolis):
    method = Langevin(noise=0.5, steps=20, metropolis=metropolis)
    x = torch.randn(50, 2)
    first, again, other = (method.run(gaussian, x, seeded(s))[0] for s in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


# two wells on a line, with 0.8 of the mass on the left and nothing in between

LEFT, WIDTH = 0.8, 0.3


def wells(x):
    left, right = (-0.5 * ((x[:, 0] - centre) / WIDTH) ** 2 for centre in (-2, 2))
    return -torch.logaddexp(left + math.log(LEFT), right + math.log(1 - LEFT))


def two_halves(n):
    x = torch.full((n, 1), 2.0)
    x[: n // 2] = -2
    return x


def alternate(methods, x, rounds, g):
    with torch.no_grad():
        chain = Chain.at(wells, x)
        for _ in range(rounds):
            for method in methods:
                chain, _ = method.step(wells, chain, g)
    return chain


def test_langevin_alone_keeps_the_masses_it_started_with(g):
    local = Langevin(noise=0.25, metropolis=True, box=box(-4, 4))
    x = alternate([local], two_halves(4000), 80, g).x
    assert (x < 0).float().mean() == 0.5


def test_jumps_bring_two_wells_to_their_exact_masses(g):
    walls, n = box(-4, 4), 4000
    local = Langevin(noise=0.25, metropolis=True, box=walls)
    chain = alternate([local, Teleport(walls)], two_halves(n), 80, g)
    left = chain.x[:, 0] < 0
    assert abs(left.float().mean().item() - LEFT) < 4 * (LEFT * (1 - LEFT) / n) ** 0.5
    for side in (left, ~left):  # and each well keeps its own shape
        assert math.isclose(chain.x[side].std().item(), WIDTH, rel_tol=0.12)
    torch.testing.assert_close(chain.energy, wells(chain.x))


def test_jumps_at_another_temperature_give_the_masses_of_that_temperature(g):
    walls, n, t = box(-4, 4), 4000, 0.5
    local = Langevin(noise=0.2, step_size=0.2**2 / (2 * t), metropolis=True, box=walls)
    x = alternate([local, Teleport(walls, temperature=t)], two_halves(n), 150, g).x
    mass = LEFT**2 / (LEFT**2 + (1 - LEFT) ** 2)  # both wells narrow alike
    assert abs((x < 0).float().mean().item() - mass) < 4 * (mass * (1 - mass) / n) ** 0.5


def test_jumps_alone_sample_a_density_on_the_box(g):
    x = torch.zeros(N, 1)
    walls = box(0, 1)
    slope = lambda x: -(1e-6 + x).log().sum(1)  # noqa: E731  p(x) = 2 x on the unit interval
    with torch.no_grad():
        chain = Chain.at(slope, x + 0.5)
        for _ in range(40):
            chain, _ = Teleport(walls).step(slope, chain, g)
    assert math.isclose(chain.x.mean().item(), 2 / 3, abs_tol=0.01)
    assert math.isclose(chain.x.square().mean().item(), 1 / 2, abs_tol=0.01)


def test_the_same_seed_gives_the_same_jumps_bit_for_bit(seeded):
    walls = box(-4, 4)
    methods = [Langevin(noise=0.25, metropolis=True, box=walls), Teleport(walls)]
    first, again = (alternate(methods, two_halves(100), 20, seeded(2)).x for _ in range(2))
    assert torch.equal(first, again)


def test_chains_that_begin_with_a_jump_are_chains_that_then_jump(seeded):
    walls, x = box(-4, 4), two_halves(200)
    at_once = Teleport(walls).begin(wells, x, seeded(5))
    with torch.no_grad():
        in_turn, _ = Teleport(walls).step(wells, Chain.at(wells, x), seeded(5))
    assert (at_once.x != x).any()
    assert (at_once.x == x).any()
    for one, other in zip(at_once, in_turn, strict=True):
        torch.testing.assert_close(one, other)


def test_chains_and_where_they_may_jump_to_are_evaluated_in_one_call(seeded):
    rows = []

    def counted(x):
        rows.append(len(x))
        return wells(x)

    chain = Teleport(box(-4, 4)).begin(counted, two_halves(10), seeded(0), jumps=3)
    assert rows == [40]
    assert len(chain.x) == 10


def test_no_jumps_begin_where_they_are(g):
    chain = Teleport(box(-4, 4)).begin(wells, two_halves(10), g, jumps=0)
    assert torch.equal(chain.x, two_halves(10))
    torch.testing.assert_close(chain.energy, wells(chain.x))


def test_many_jumps_at_the_beginning_sample_the_density(g):
    slope = lambda x: -(1e-6 + x).log().sum(1)  # noqa: E731  p(x) = 2 x on the unit interval
    chain = Teleport(box(0, 1)).begin(slope, torch.full((N, 1), 0.5), g, jumps=40)
    assert math.isclose(chain.x.mean().item(), 2 / 3, abs_tol=0.01)
    assert math.isclose(chain.x.square().mean().item(), 1 / 2, abs_tol=0.01)
