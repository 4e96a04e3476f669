import torch
from torch import nn

from gedi.precision import full_precision
from gedi.score import energy_and_score, score


def quartic(x):
    return x.pow(4).flatten(1).sum(1)


def test_the_score_of_a_gaussian_points_to_its_mean_over_its_covariance():
    mean = torch.tensor([1.0, -2.0], dtype=torch.float64)
    precision = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    x = torch.randn(20, 2, dtype=torch.float64)
    gaussian = lambda x: ((x - mean) @ precision * (x - mean)).sum(1) / 2  # noqa: E731
    energy, s = energy_and_score(gaussian, x)
    torch.testing.assert_close(s, -(x - mean) @ precision)
    torch.testing.assert_close(energy, gaussian(x))


def test_the_score_of_an_image_has_the_shape_of_the_image():
    x = torch.randn(3, 2, 5, 5, dtype=torch.float64)
    torch.testing.assert_close(score(quartic, x), -4 * x**3)


def test_each_score_depends_on_its_own_point_only():
    x = torch.randn(6, 3)
    alone = torch.cat([score(quartic, row[None]) for row in x])
    torch.testing.assert_close(score(quartic, x), alone)


def test_under_no_grad_nothing_keeps_a_graph_and_no_parameter_gets_a_gradient():
    net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    with torch.no_grad():
        energy, s = energy_and_score(lambda x: net(x).squeeze(1), torch.randn(5, 2))
    assert energy.grad_fn is None
    assert s.grad_fn is None
    assert not energy.requires_grad
    assert not s.requires_grad
    assert all(p.grad is None for p in net.parameters())


def test_with_gradients_on_the_score_can_be_differentiated_in_the_parameters():
    k = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    x = torch.randn(7, 2, dtype=torch.float64)
    _, s = energy_and_score(lambda x: k * x.square().sum(1) / 2, x)  # score -k x, so d|s|^2/dk = 2 k |x|^2
    (gradient,) = torch.autograd.grad(s.square().sum(), k)
    torch.testing.assert_close(gradient, 2 * k.detach() * x.square().sum())


def test_with_gradients_on_the_energy_can_be_differentiated_in_the_parameters():
    k = torch.tensor(3.0, requires_grad=True)
    x = torch.randn(7, 2)
    energy, _ = energy_and_score(lambda x: k * x.square().sum(1), x)
    (gradient,) = torch.autograd.grad(energy.sum(), k)
    torch.testing.assert_close(gradient, x.square().sum())


def test_the_points_given_are_left_as_they_were():
    x = torch.randn(4, 2)
    energy_and_score(quartic, x)
    score(quartic, x)
    assert not x.requires_grad
    assert x.grad is None


def test_a_constant_energy_is_flat_everywhere():
    x = torch.randn(4, 2)
    energy, s = energy_and_score(lambda x: torch.full((len(x),), 2.0), x)
    assert torch.equal(energy, torch.full((4,), 2.0))
    assert torch.equal(s, torch.zeros(4, 2))


def test_an_energy_that_knows_its_score_is_asked_for_it():
    class Known:
        def __call__(self, x):
            raise AssertionError("the closed form makes this call unnecessary")

        def with_score(self, x):
            return x.sum(1), 5 * x

    x = torch.randn(4, 2)
    energy, s = energy_and_score(Known(), x)
    assert torch.equal(energy, x.sum(1))
    assert torch.equal(s, 5 * x)
    assert torch.equal(score(Known(), x), 5 * x)


def test_an_energy_in_half_precision_has_a_score_in_that_of_the_points():
    way = torch.randn(2, 50, 3)  # a quadratic form whose way back is a product of matrices
    energy = full_precision(lambda x: (x @ way[0].t() @ way[1]).square().sum(1))
    x = torch.randn(20, 3)
    with torch.autocast("cpu", torch.bfloat16):
        e, s = energy_and_score(energy, x)
    exact = energy_and_score(energy, x)
    assert torch.equal(e, exact[0])
    assert torch.equal(s, exact[1])
