"""Outlier scores against Gaussians whose answers are known."""

import math

import pytest
import torch
from sklearn.metrics import roc_auc_score

from gedi.errors import UserError
from gedi.evaluation import auroc, ood_aurocs, ood_scores


def gaussian(x):
    return x.flatten(1).square().sum(1) / 2


def brute_force(inside, outside):
    above = (inside[:, None] > outside).double() + 0.5 * (inside[:, None] == outside).double()
    return above.mean().item()


def test_scores_of_a_gaussian_are_its_radius(g):
    x = torch.randn(1201, 3, 4, generator=g)  # more than one chunk, and a short one
    scores = ood_scores(gaussian, x)
    radius = x.flatten(1).norm(dim=1)
    torch.testing.assert_close(scores["score_norm"], -radius)
    torch.testing.assert_close(scores["log_density"], -radius.square() / 2)
    assert "max_probability" not in scores


def test_max_probability_is_that_of_the_softmax(g):
    logits = torch.randn(5, 3, generator=g)
    scores = ood_scores(gaussian, torch.zeros(5, 2), logits)
    torch.testing.assert_close(scores["max_probability"], (logits.exp() / logits.exp().sum(1, keepdim=True)).amax(1))


def test_no_graph_and_no_gradient_is_left_behind(g):
    layer = torch.nn.Linear(2, 1)
    scores = ood_scores(lambda x: layer(x.tanh()).squeeze(1), torch.randn(4, 2, generator=g))
    assert not any(score.requires_grad for score in scores.values())
    assert layer.weight.grad is None


def test_auroc_of_two_gaussians_is_the_closed_form(g):
    # log density of N(0, I) in the plane is -r^2/2, and r^2/2 is Exp(1) inside, Exp(1/s^2) outside
    n, s = 4000, 2.0
    inside, outside = torch.randn(n, 2, generator=g), s * torch.randn(n, 2, generator=g)
    figures = ood_aurocs(ood_scores(gaussian, inside), ood_scores(gaussian, outside))
    assert figures["auroc_log_density"] == pytest.approx(s**2 / (1 + s**2), abs=0.01)
    assert figures["auroc_score_norm"] == pytest.approx(figures["auroc_log_density"], abs=1e-4)


def test_auroc_of_shifted_scores_is_the_normal_distribution(g):
    inside, outside = 1 + torch.randn(20_000, generator=g), torch.randn(20_000, generator=g)
    assert auroc(inside, outside) == pytest.approx(0.5 * (1 + math.erf(1 / 2)), abs=0.01)


def test_auroc_counts_pairs_and_ties(g):
    inside, outside = torch.randint(6, (40,), generator=g), torch.randint(5, (30,), generator=g)
    side = [1] * 40 + [0] * 30
    assert auroc(inside, outside) == pytest.approx(brute_force(inside, outside))
    assert auroc(inside, outside) == pytest.approx(roc_auc_score(side, torch.cat([inside, outside])))
    assert auroc(inside, outside) == pytest.approx(1 - auroc(outside, inside))


def test_only_scores_of_both_sides_are_compared():
    figures = ood_aurocs({"a": torch.ones(2), "b": torch.ones(2)}, {"a": torch.zeros(2)})
    assert figures == {"auroc_a": 1.0}


def test_bad_input_is_named():
    with pytest.raises(UserError, match="1 of them not finite"):
        auroc(torch.tensor([1.0, math.nan]), torch.tensor([0.0]))
    with pytest.raises(UserError, match="0 outside"):
        auroc(torch.tensor([1.0]), torch.tensor([]))
    with pytest.raises(UserError, match="one row each"):
        ood_scores(gaussian, torch.zeros(3, 2), torch.zeros(2, 2))
