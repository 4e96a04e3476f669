import itertools
import math

import pytest
import torch

from gedi.nn import MLP

ACTIVATIONS = ("silu", "leaky_relu", "sine")
SHAPES = list(itertools.product(ACTIVATIONS, (None, *ACTIVATIONS), (1, 2, 3)))


def encoder(activation, first, depth):
    widths = (7, 6, 5)[:depth]
    return MLP(3, widths, 4, activation=activation, first=first, sharpness=2.0).double()


def by_autograd(net, direction, x):
    x = x.clone().requires_grad_(True)
    value = net(x) @ direction
    (gradient,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    return value, gradient


@pytest.mark.parametrize(("activation", "first", "depth"), SHAPES)
def test_along_is_the_value_and_the_gradient_of_autograd(activation, first, depth):
    net = encoder(activation, first, depth)
    direction, x = torch.randn(4, dtype=torch.float64), torch.randn(9, 3, dtype=torch.float64)
    for ours, theirs in zip(net.along(direction, x), by_autograd(net, direction, x), strict=True):
        assert ours.dtype == torch.float64
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("activation", "first", "depth"), SHAPES)
def test_parameter_gradients_through_along_are_those_of_double_backward(activation, first, depth):
    net = encoder(activation, first, depth)
    direction = torch.randn(4, dtype=torch.float64, requires_grad=True)
    x = torch.randn(9, 3, dtype=torch.float64)
    a, b = torch.randn(9, dtype=torch.float64), torch.randn(9, 3, dtype=torch.float64)
    wanted = [direction, *net.parameters()]

    def of(value, gradient):  # a loss that depends on the value and, not linearly, on the gradient
        return torch.autograd.grad((a * value.square()).sum() + (b * gradient.square()).sum(), wanted)

    ours, theirs = of(*net.along(direction, x)), of(*by_autograd(net, direction, x))
    for mine, his in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, his, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_along_agrees_with_finite_differences(activation):
    net = encoder(activation, None, 2)
    direction, x = torch.randn(4, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    way, h = torch.randn(5, 3, dtype=torch.float64), 1e-6
    slope = (net.along(direction, x + h * way)[0] - net.along(direction, x - h * way)[0]) / (2 * h)
    torch.testing.assert_close((net.along(direction, x)[1] * way).sum(1), slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_along_works_in_half_the_precision(activation):
    net = MLP(2, (8, 8), 4, activation=activation).bfloat16()
    value, gradient = net.along(torch.randn(4).bfloat16(), torch.randn(3, 2).bfloat16())
    assert value.dtype == gradient.dtype == torch.bfloat16


@pytest.mark.parametrize("inputs", [1, 3, 20])
@pytest.mark.parametrize("points", [1, 8, 9, 50])
def test_many_points_in_parts_are_the_points_together(monkeypatch, inputs, points):
    net = MLP(inputs, (7, 6), 4, first="sine").double()
    direction, x = torch.randn(4, dtype=torch.float64), torch.randn(points, inputs, dtype=torch.float64)
    together = net.along(direction, x)
    monkeypatch.setattr("gedi.nn.mlp._CACHED", 8 * 6 * 8)  # eight rows of the last hidden layer
    rows = []
    net.layers[0].register_forward_hook(lambda layer, args, z: rows.append(len(z)))
    with torch.no_grad():
        in_parts = net.along(direction, x)
    assert sum(rows) == points
    assert max(rows) <= 8
    for part, whole in zip(in_parts, together, strict=True):
        torch.testing.assert_close(part, whole, rtol=1e-12, atol=1e-12)


def test_with_a_graph_points_stay_together(monkeypatch):
    net = MLP(2, (7, 6), 4)
    monkeypatch.setattr("gedi.nn.mlp._CACHED", 1)
    rows = []
    net.layers[0].register_forward_hook(lambda layer, args, z: rows.append(len(z)))
    net.along(torch.randn(4), torch.randn(30, 2))
    assert rows == [30]


def test_along_is_linear_in_the_direction():
    net = encoder("silu", "sine", 2)
    u, v = torch.randn(2, 4, dtype=torch.float64)
    x = torch.randn(6, 3, dtype=torch.float64)
    parts = zip(net.along(u, x), net.along(v, x), net.along(2 * u - 3 * v, x), strict=True)
    for of_u, of_v, of_both in parts:
        torch.testing.assert_close(of_both, 2 * of_u - 3 * of_v)


@pytest.mark.parametrize(
    ("activation", "formula"),
    [
        ("silu", lambda z: z / (1 + torch.exp(-z))),
        ("leaky_relu", lambda z: torch.where(z > 0, z, 0.2 * z)),
        ("sine", torch.sin),
    ],
)
def test_forward_is_the_formula_of_its_layers(activation, formula):
    net = MLP(3, (5, 4), 2, activation=activation)
    x = torch.randn(6, 3)
    (w1, b1), (w2, b2), (w3, b3) = ((layer.weight, layer.bias) for layer in net.layers)
    by_hand = formula(formula(x @ w1.T + b1) @ w2.T + b2) @ w3.T + b3
    torch.testing.assert_close(net(x), by_hand)


def test_only_the_first_layer_takes_the_first_activation():
    net = MLP(1, (4, 4), 1, activation="leaky_relu", first="sine")
    first, second, last = net.layers
    x = torch.randn(5, 1)
    hidden = torch.nn.functional.leaky_relu(second(torch.sin(first(x))), 0.2)
    torch.testing.assert_close(net(x), last(hidden))


def test_sine_features_are_periodic_along_a_row_of_the_first_layer():
    net = MLP(2, (1,), 3, first="sine", sharpness=4.0)
    row = net.layers[0].weight[0]
    x = torch.randn(8, 2)
    torch.testing.assert_close(net(x), net(x + 2 * math.pi * row / row.square().sum()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sharpness", [0.5, 3.0, 20.0])
def test_sharpness_is_the_norm_of_every_row_of_the_first_layer(sharpness):
    net = MLP(3, (200, 10), 2, sharpness=sharpness)
    norms = net.layers[0].weight.norm(dim=1)
    torch.testing.assert_close(norms, torch.full((200,), sharpness))
    assert net.layers[1].weight.abs().max() <= 200**-0.5  # the other layers keep their own scale


def test_sharp_features_have_their_zero_lines_spread_evenly_over_the_extent():
    net = MLP(2, (4000,), 2, sharpness=5.0, extent=1.2)
    offset = net.layers[0].bias / 5.0  # signed distance of the zero line from the origin, uniform on +-extent
    assert offset.abs().max() <= 1.2
    assert abs(offset.mean()) < 0.05
    assert math.isclose(offset.var().item(), 1.2**2 / 3, rel_tol=0.05)
    directions = net.layers[0].weight / 5.0
    torch.testing.assert_close(directions.T @ directions / 4000, torch.eye(2) / 2, rtol=0, atol=0.03)


def test_without_sharpness_the_layers_are_uniform_with_pytorchs_bound():
    net = MLP(25, (400,), 100)
    for layer, inputs in zip(net.layers, (25, 400), strict=True):
        bound = inputs**-0.5
        for drawn in (layer.weight, layer.bias):
            assert drawn.abs().max() <= bound
        assert math.isclose(layer.weight.var().item(), bound**2 / 3, rel_tol=0.05)


@pytest.mark.parametrize("sharpness", [None, 3.0])
def test_the_same_seed_gives_the_same_weights(seeded, sharpness):
    def weights(seed):
        torch.rand(seed + 1)  # the global generator is somewhere else each time
        return torch.cat(
            [p.flatten() for p in MLP(2, (8, 8), 3, sharpness=sharpness, generator=seeded(seed)).parameters()]
        )

    assert torch.equal(weights(4), weights(4))
    assert not torch.equal(weights(4), weights(5))


def test_drawing_weights_from_a_stream_shifts_no_other_stream(seeded):
    before = torch.get_rng_state()
    MLP(2, (8,), 3, sharpness=1.0, generator=seeded(0))
    expected = torch.rand(3)
    torch.set_rng_state(before)
    # nn.Linear draws its own weights first, from the global generator, whatever we overwrite them with
    torch.nn.Linear(2, 8)
    torch.nn.Linear(8, 3)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_raw_inputs_beside_the_first_layer_reach_the_value_and_the_gradient(depth):
    net = MLP(3, (7, 6, 5)[:depth], 4, first="sine", sharpness=2.0, raw=True).double()
    direction, x = torch.randn(4, dtype=torch.float64), torch.randn(9, 3, dtype=torch.float64)
    for ours, theirs in zip(net.along(direction, x), by_autograd(net, direction, x), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    assert net.linears[1].in_features == 7 + 3
    with torch.no_grad():
        net.linears[0].weight.zero_()
    assert not torch.equal(net(x), net(x + 1))  # without the first layer they still arrive
