"""Cuts, the number of parts, the length of walks and what a step keeps: against brute force."""

import itertools
import math

import pytest
import torch
from test_walk_graph import moons

from gedi.errors import UserError
from gedi.graph import (
    OF_ONE_PART,
    Spectrum,
    WalkGraph,
    cut_shares,
    information_kept,
    information_kept_by_cut,
    longest_walk,
    normalised_cut,
    spectrum,
)


def same(a, b):
    """Whether two partitions are one up to names."""
    return len({*zip(a.tolist(), b.tolist(), strict=True)}) == len(a.unique()) == len(b.unique())


def cost(weights, parts):
    total = 0.0
    for part in parts.unique():
        inside = parts == part
        total += float(weights[inside][:, ~inside].sum() / weights[inside].sum())
    return total


def test_of_few_points_the_cut_is_the_best_of_all(g):
    x = torch.cat([torch.rand(5, 2, generator=g), torch.rand(4, 2, generator=g) + 1.3])
    graph = WalkGraph.of(x, count=8, rank=3)
    weights = torch.from_numpy(graph.weights.toarray())
    every = (torch.tensor([0, *rest]) for rest in itertools.product((0, 1), repeat=8) if any(rest))
    best = min(every, key=lambda parts: cost(weights, parts))
    assert same(normalised_cut(graph, 2, g).parts, best)


@pytest.mark.parametrize("n", [200, 1000])
def test_moons_fall_apart_and_the_spectrum_says_two(n, g):
    x, moon = moons(n, g)
    graph = WalkGraph.of(x)
    cut = normalised_cut(graph, 2, g)
    assert same(cut.parts, moon)
    torch.testing.assert_close(cut.shares, torch.tensor([0.5, 0.5]).double())
    assert spectrum(graph).clusters == 2


@pytest.mark.parametrize("clusters", [3, 7])
@pytest.mark.parametrize("columns", [2, 50])
def test_the_spectrum_counts_far_groups_of_unequal_sizes(clusters, columns, g):
    sizes = [40 + 30 * i for i in range(clusters)]
    places = 40 * torch.randn(clusters, columns, generator=g)
    x = torch.cat([torch.randn(n, columns, generator=g) + at for n, at in zip(sizes, places, strict=True)])
    assert spectrum(WalkGraph.of(x)).clusters == clusters


def test_the_finest_gap_counts_that_no_part_has_by_itself():
    group = torch.tensor([0.0, 5.0, 3.0, 1.0, 0.2])  # groups in groups: 2, or 3 of them
    assert Spectrum(torch.empty(0), group).clusters == 3
    line = torch.tensor([0.0, 1.2, 0.3, math.log(4), 0.8])  # long parts have gaps of up to log 4
    assert Spectrum(torch.empty(0), line).clusters == 4
    assert Spectrum(torch.empty(0), torch.tensor([0.0, 1.7, 0.3, math.log(4), 0.8])).clusters == 2


def test_a_ring_by_itself_has_no_gap_that_tells_parts(g):
    angle = 2 * math.pi * torch.rand(1500, generator=g)
    ring = torch.stack([angle.cos(), angle.sin()], dim=1) + 0.02 * torch.randn(1500, 2, generator=g)
    assert spectrum(WalkGraph.of(ring)).gaps[1:].max() < OF_ONE_PART


def test_unequal_parts_have_unequal_shares(g):
    x = torch.cat([torch.randn(180, 5, generator=g), torch.randn(20, 5, generator=g) + 6])
    assert normalised_cut(WalkGraph.of(x), 2, g).shares.sort().values.tolist() == [0.1, 0.9]
    assert cut_shares(torch.tensor([2, 2]), 3).tolist() == [0, 0, 1]


def test_more_parts_than_points_are_refused(g):
    with pytest.raises(UserError, match="fewer than the 5 points, got 5"):
        normalised_cut(WalkGraph.of(torch.rand(5, 2)), 5, g)


@pytest.mark.parametrize("n", [300, 700])  # all eigenvalues at once, and a few of them
def test_eigenvalues_are_those_of_the_walk(n, g):
    x, _ = moons(n, g)
    graph = WalkGraph.of(x)
    found = spectrum(graph, most=6)
    wanted = torch.linalg.eigvals(torch.from_numpy(graph.transition.toarray())).real.sort(descending=True).values[:7]
    torch.testing.assert_close(found.eigenvalues, wanted)
    assert found.eigenvalues[0].item() == pytest.approx(1)
    rates = (1 - wanted).clamp_min(1e-6)
    torch.testing.assert_close(found.gaps[1:].exp(), (rates[1:] / rates[:-1])[1:], rtol=1e-4, atol=0)


def test_the_longest_walk_is_that_of_powers_of_the_matrix(g):
    x, _ = moons(120, g)
    graph, parts = WalkGraph.of(x), (x[:, 0] > 0.5).long()
    transition, power, wanted = torch.from_numpy(graph.transition.toarray()), torch.eye(120).double(), 0
    together = (parts[:, None] == parts).double()
    while wanted < 40:
        power = power @ transition
        if (power * together).sum(dim=1).mean() < 0.9:
            break
        wanted += 1
    assert 1 < wanted < 40
    assert longest_walk(graph, parts, stay=0.9) == wanted
    assert longest_walk(graph, torch.randint(2, (120,), generator=g)) == 1  # never none
    assert longest_walk(graph, torch.zeros(120).long(), most=13) == 13


def test_the_information_kept_is_that_of_the_sum_over_all_pairs(g):
    x, _ = moons(50, g)
    graph = WalkGraph.of(x)
    log_p = torch.randn(50, 3, generator=g, dtype=torch.float64).log_softmax(dim=1)
    transition, p = torch.from_numpy(graph.transition.toarray()), log_p.exp()
    agreement = sum(
        -transition[i, j] * (p[i] @ log_p[j] + p[j] @ log_p[i]) / 2 / 50 for i in range(50) for j in range(50)
    )
    shares = p.mean(dim=0)
    entropy = -(shares * shares.log()).sum()
    assert information_kept(graph, log_p) == pytest.approx(float((entropy - agreement) / entropy))
    assert information_kept(graph, log_p[:, [2, 0, 1]]) == pytest.approx(information_kept(graph, log_p))


def test_a_right_cut_keeps_all_a_wrong_one_less_and_one_part_tells_nothing(g):
    x, moon = moons(400, g)
    graph = WalkGraph.of(x)
    across, any_two = (x[:, 0] > 0.5).long(), torch.randint(2, (400,), generator=g)

    def sure(parts):
        return torch.nn.functional.one_hot(parts, 2).double().clamp(1e-4, 1 - 1e-4).log()

    for kept in (
        lambda parts: information_kept_by_cut(graph, parts),
        lambda parts: information_kept(graph, sure(parts)),
    ):
        assert kept(moon) > 0.98 > kept(across) > 0.5 > kept(any_two)
    assert information_kept_by_cut(graph, any_two) == pytest.approx(0, abs=0.05)
    assert information_kept_by_cut(graph, torch.zeros(400).long()) == 0
    assert information_kept(graph, torch.tensor([[0.0, -math.inf]]).expand(400, 2).clamp_min(-700)) <= 1e-9
