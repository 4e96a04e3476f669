"""Barlow Twins: its formula entry by entry, what it is blind to, and where it is least."""

import itertools
import math

import pytest
import torch

from gedi.losses import barlow_twins


def entry_by_entry(w, v, off_diagonal, epsilon=1e-5):
    n, d = len(w), w.shape[1]

    def standard(column):
        mean = sum(column) / n
        variance = sum((a - mean) ** 2 for a in column) / n
        return [(a - mean) / math.sqrt(variance + epsilon) for a in column]

    ours, theirs = ([standard(column) for column in e.t().tolist()] for e in (w, v))
    total = 0.0
    for i, j in itertools.product(range(d), repeat=2):
        c = sum(a * b for a, b in zip(ours[i], theirs[j], strict=True)) / n
        total += (1 - c) ** 2 if i == j else off_diagonal * c**2
    return total


def views(n=7, d=4, noise=0.5):
    w = torch.randn(n, d, dtype=torch.float64)
    return w, w + noise * torch.randn(n, d, dtype=torch.float64)


def signs(d):
    """Every combination of signs: dimensions of variance one that do not correlate."""
    return torch.tensor(list(itertools.product([1.0, -1.0], repeat=d)), dtype=torch.float64)


@pytest.mark.parametrize(("n", "d"), [(2, 3), (7, 4), (5, 9)])
@pytest.mark.parametrize("off_diagonal", [0.0, 5e-3, 2.0])
def test_it_is_its_formula(n, d, off_diagonal):
    w, v = views(n, d)
    assert barlow_twins(w, v, off_diagonal).item() == pytest.approx(entry_by_entry(w, v, off_diagonal), rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_equal_views_that_do_not_correlate_cost_nothing(d):
    w = signs(d)
    assert barlow_twins(w, w, 1.0).item() == pytest.approx(0, abs=1e-8)
    assert barlow_twins(w, -w, 1.0).item() == pytest.approx(4 * d, rel=1e-4)  # C = -I


def test_one_dimension_said_twice_costs_the_two_entries_beside_the_diagonal():
    w = signs(2)
    twice = w[:, [0, 0]]
    assert barlow_twins(twice, twice, 0.3).item() == pytest.approx(2 * 0.3, rel=1e-4)


def test_dimensions_that_trade_places_are_all_wrong():
    w = signs(2)
    assert barlow_twins(w, w.flip(1), 0.3).item() == pytest.approx(2 + 2 * 0.3, rel=1e-4)  # C = [[0, 1], [1, 0]]


def test_scale_and_shift_of_a_dimension_change_nothing():
    w, v = views()
    scale, shift = torch.rand(4, dtype=torch.float64) * 9 + 1, torch.randn(4, dtype=torch.float64) * 5
    torch.testing.assert_close(barlow_twins(w * scale + shift, v), barlow_twins(w, v), rtol=1e-3, atol=0)
    torch.testing.assert_close(barlow_twins(w, v / scale * 20 - shift), barlow_twins(w, v), rtol=1e-3, atol=0)


def test_the_views_may_trade_places_and_so_may_dimensions_of_both():
    w, v = views()
    torch.testing.assert_close(barlow_twins(v, w), barlow_twins(w, v))
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(barlow_twins(w[:, order], v[:, order]), barlow_twins(w, v))


def test_the_order_of_the_batch_changes_nothing_unless_only_one_view_is_shuffled():
    w, v = views(noise=0.1)
    order = torch.randperm(7)
    torch.testing.assert_close(barlow_twins(w[order], v[order]), barlow_twins(w, v))
    assert barlow_twins(w[order], v) > barlow_twins(w, v) + 0.5


def test_a_constant_dimension_correlates_with_nothing():
    w, v = views()
    w, v = w.clone(), v.clone()
    w[:, 1] = v[:, 1] = 3.0
    w.requires_grad_(True)
    loss = barlow_twins(w, v)
    rest = [0, 2, 3]
    torch.testing.assert_close(loss, 1 + barlow_twins(w[:, rest], v[:, rest]))
    assert torch.autograd.grad(loss, w)[0].isfinite().all()


def test_its_gradient_is_its_finite_difference():
    w, v = (a.requires_grad_(True) for a in (torch.randn(6, 3).double(), torch.randn(6, 3).double()))
    assert torch.autograd.gradcheck(lambda a, b: barlow_twins(a, b, 0.5), (w, v))


def test_following_it_removes_the_redundancy():
    w = torch.randn(64, 1).double() @ torch.ones(1, 3).double() + 0.3 * torch.randn(64, 3).double()
    w.requires_grad_(True)
    assert torch.corrcoef(w.detach().t())[0, 1] > 0.8
    optimiser = torch.optim.Adam([w], lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        barlow_twins(w, w, 0.5).backward()
        optimiser.step()
    torch.testing.assert_close(torch.corrcoef(w.detach().t()), torch.eye(3).double(), rtol=0, atol=0.02)
