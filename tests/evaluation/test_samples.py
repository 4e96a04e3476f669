"""Precision and recall of samples: brute force, and the failures each must see."""

import pytest
import torch

from gedi.errors import UserError
from gedi.evaluation import precision_recall


def brute_force(real, fake, k):
    def radius(points, i):
        return sorted((points[i] - p).norm().item() for j, p in enumerate(points) if j != i)[k - 1]

    def share(points, of):
        radii = [radius(of, i) for i in range(len(of))]
        return sum(any((p - of[i]).norm() <= radii[i] for i in range(len(of))) for p in points) / len(points)

    return {"precision": share(fake, real), "recall": share(real, fake)}


@pytest.mark.parametrize("k", [1, 3])
def test_agrees_with_the_definition(k, g):
    real, fake = torch.randn(40, 3, generator=g), 0.5 + torch.randn(30, 3, generator=g)
    assert precision_recall(real, fake, k) == pytest.approx(brute_force(real, fake, k))


def modes(which, n, g):
    centres = 100 * torch.eye(4)[torch.tensor(which)]
    return centres[torch.randint(len(which), (n,), generator=g)] + torch.randn(n, 4, generator=g)


def test_a_missing_mode_costs_recall_and_an_invented_one_precision(g):
    real = modes([0, 1], 1500, g)  # more than a chunk
    missing = precision_recall(real, modes([0], 1200, g))
    assert missing["precision"] > 0.9  # the tails of 750 points are not covered
    assert missing["recall"] == pytest.approx(0.5, abs=0.05)
    invented = precision_recall(real, modes([0, 1, 2], 1200, g))
    assert invented["precision"] == pytest.approx(2 / 3, abs=0.05)
    assert invented["recall"] > 0.9


def test_swapping_the_sets_swaps_the_figures_and_a_shift_of_both_changes_nothing(g):
    a, b = torch.randn(300, 2, generator=g), 2 * torch.randn(200, 2, generator=g)
    one, other = precision_recall(a, b), precision_recall(b, a)
    assert (one["precision"], one["recall"]) == (other["recall"], other["precision"])
    assert precision_recall(a + 50, b + 50) == pytest.approx(one, abs=0.01)
    assert precision_recall(a, a) == {"precision": 1, "recall": 1}


def test_too_few_points_are_named():
    with pytest.raises(UserError, match="more than k=3 fake points"):
        precision_recall(torch.rand(9, 2), torch.rand(3, 2))
