"""The walk graph: its weights against the formula, its invariances, and walks against powers of its matrix."""

import pytest
import torch
from scipy.sparse.csgraph import connected_components

from gedi.graph import WalkGraph, local_scales, neighbours


def moons(n, g):
    angle = torch.pi * torch.rand(n, generator=g, dtype=torch.float64)
    lower = torch.arange(n) % 2
    x = torch.stack([angle.cos() + lower, angle.sin() * (1 - 2 * lower) + 0.5 * lower], dim=1)
    return x + 0.05 * torch.randn(n, 2, generator=g, dtype=torch.float64), lower


def dense(graph):
    return torch.from_numpy(graph.weights.toarray())


def test_weights_are_those_of_the_formula_between_neighbours_and_0_elsewhere(g):
    x, _ = moons(80, g)
    distance, number = neighbours(x, 9)
    scale = local_scales(distance, 7)
    wanted = torch.exp(-torch.cdist(x, x).square() / (scale[:, None] * scale))
    near = torch.zeros(80, 80, dtype=torch.bool).scatter_(1, number, True)
    near |= near.t().clone()
    graph = WalkGraph.of(x, count=9)
    assert connected_components(graph.weights)[0] == 1
    torch.testing.assert_close(dense(graph)[near], wanted[near].clamp_min(1e-12))
    bridges = (dense(graph) > 0) & ~near
    assert bridges.sum() <= 2  # the two moons, if at all
    assert torch.equal(dense(graph), dense(graph).t())
    assert (dense(graph).diagonal() == 0).all()


def test_moving_turning_and_scaling_all_points_changes_nothing(g):
    x, _ = moons(100, g)
    turn = torch.linalg.qr(torch.randn(2, 2, generator=g, dtype=torch.float64))[0]
    torch.testing.assert_close(dense(WalkGraph.of(x)), dense(WalkGraph.of(1000 * x @ turn + 7)))


def test_far_pieces_are_joined_by_a_trace():
    x = torch.cat([torch.rand(30, 2), torch.rand(30, 2) + 1e3, torch.rand(30, 2) - 1e3])
    graph = WalkGraph.of(x)
    across = dense(graph)[:30, 30:].flatten()
    assert connected_components(graph.weights)[0] == 1
    assert set(across[across > 0].tolist()) == {1e-12}


def test_one_step_has_the_probabilities_of_the_matrix(g):
    x, _ = moons(40, g)
    graph = WalkGraph.of(x, count=6)
    transition = torch.from_numpy(graph.transition.toarray())
    torch.testing.assert_close(transition.sum(dim=1), torch.ones(40).double())
    for start in (0, 17, 39):
        ends = graph.step(torch.full((20_000,), start), g)
        seen = torch.bincount(ends, minlength=40) / 20_000
        assert (seen - transition[start]).abs().max() < 0.015
        assert (transition[start][ends] > 0).all()


def test_a_walk_has_the_probabilities_of_the_matrix_to_the_power(g):
    x, _ = moons(40, g)
    graph = WalkGraph.of(x, count=6)
    wanted = torch.linalg.matrix_power(torch.from_numpy(graph.transition.toarray()), 5)[3]
    seen = torch.bincount(graph.walk(torch.full((20_000,), 3), 5, g), minlength=40) / 20_000
    assert (seen - wanted).abs().max() < 0.015
    assert torch.equal(graph.walk(torch.arange(40), 0, g), torch.arange(40))


def test_walks_follow_from_the_generator_and_stay_in_their_moon(g, seeded):
    x, moon = moons(400, g)
    graph = WalkGraph.of(x)
    begun = torch.arange(400)
    ends = graph.walk(begun, 20, seeded(1))
    assert torch.equal(ends, graph.walk(begun, 20, seeded(1)))
    assert not torch.equal(ends, graph.walk(begun, 20, seeded(2)))
    assert (moon[ends] == moon).float().mean() > 0.99
    one_step = (x[graph.walk(begun, 1, seeded(1))] - x).norm(dim=1).mean()
    assert (x[ends] - x).norm(dim=1).mean() > 2 * one_step  # they get somewhere


@pytest.mark.parametrize(
    "x",
    [
        torch.zeros(30, 3),
        torch.rand(2, 1),
        torch.cat([torch.rand(60, 1), torch.full((60, 999), 5.0)], dim=1),
        torch.randint(3, (500, 2)).float(),
        torch.cat([torch.rand(200, 2), torch.tensor([[1e6, 0.0], [0.0, 1e6]])]),
    ],
    ids=["one point", "two points", "constant columns", "ties", "far outliers"],
)
def test_odd_tables_have_a_graph_in_one_piece(x, g):
    graph = WalkGraph.of(x)
    assert connected_components(graph.weights)[0] == 1
    assert torch.isfinite(torch.from_numpy(graph.transition.toarray())).all()
    ends = graph.walk(torch.arange(len(x)), 3, g)
    assert ((ends >= 0) & (ends < len(x))).all()
