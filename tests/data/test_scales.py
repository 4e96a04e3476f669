"""The lengths that points have by themselves, against a search by hand, and in other units."""

import numpy as np
import pytest
import torch

from gedi.data import scales_of


@pytest.mark.parametrize("shape", [(1,), (5,), (1, 4, 4)])
def test_they_are_what_a_search_by_hand_finds(shape, g):
    x = torch.randn(41, *shape, generator=g)
    rows = x.flatten(1).double().numpy()
    nearest = [min(np.linalg.norm(a - b) for j, b in enumerate(rows) if j != i) for i, a in enumerate(rows)]
    found = scales_of(x)
    torch.testing.assert_close(found.centre, x.mean(dim=0))
    assert found.spread == pytest.approx(np.sqrt(rows.var(axis=0).mean()), rel=1e-4)
    assert found.near == pytest.approx(np.median(nearest) / np.sqrt(rows.shape[1]), rel=1e-3)


def test_they_follow_the_units_and_no_turn_or_order(g):
    x = torch.randn(200, 3, generator=g)
    turn = torch.linalg.qr(torch.randn(3, 3, generator=g))[0]
    plain, moved = scales_of(x), scales_of((10 * x @ turn + 5).flip(0))
    assert moved.spread == pytest.approx(10 * plain.spread, rel=1e-4)
    assert moved.near == pytest.approx(10 * plain.near, rel=1e-3)


def test_copies_are_no_neighbours(g):
    x = torch.randn(50, 2, generator=g)
    assert scales_of(torch.cat([x, x])).near == pytest.approx(scales_of(x).near, rel=1e-4)


def test_a_set_without_any_length_has_one_all_the_same():
    assert scales_of(torch.ones(4, 2))[1:] == (1.0, 1.0)
    assert scales_of(torch.ones(1, 2))[1:] == (1.0, 1.0)
