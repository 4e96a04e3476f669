"""Probes against scikit-learn, and against what each recipe promises."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

from gedi.errors import UserError
from gedi.evaluation import knn_accuracy, linear_probe
from gedi.evaluation.probe import RIDGE, fit_lbfgs, fit_sgd


def blobs(n, g, classes=4, d=6, spread=1.5):
    centres = 2 * torch.eye(classes, d)
    y = torch.randint(classes, (n,), generator=g)
    return centres[y] + spread * torch.randn(n, d, generator=g), y


def test_lbfgs_finds_the_weights_of_scikit_learn(g):
    x, y = blobs(500, g)
    x = x.double()
    weight, bias = fit_lbfgs(x, y)
    reference = LogisticRegression(C=1 / (RIDGE * len(x)), tol=1e-10, max_iter=5000).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(weight - weight.mean(0), reference.coef_ - reference.coef_.mean(0), atol=1e-3)
    np.testing.assert_allclose(bias - bias.mean(), reference.intercept_ - reference.intercept_.mean(), atol=1e-3)


def test_lbfgs_accuracy_is_that_of_scikit_learn_on_standardised_features(g):
    scales = torch.tensor([1.0, 100.0, 0.01, 1.0, 1.0, 0.0])  # the last feature is dead
    (x, y), (test_x, test_y) = blobs(800, g), blobs(1000, g)
    x, test_x = x * scales + 5, test_x * scales + 5
    mean, width = x.mean(0), x.std(0, correction=0).clamp_min(1e-12)
    reference = LogisticRegression(C=1 / (RIDGE * len(x)), max_iter=5000).fit(((x - mean) / width)[:, :5].numpy(), y)
    expected = reference.score(((test_x - mean) / width)[:, :5].numpy(), test_y)
    assert linear_probe(x, y, test_x, test_y, generator=g) == pytest.approx(expected, abs=0.003)


def test_lbfgs_does_not_see_scale_or_shift_and_runs_without_gradients(g):
    (x, y), (test_x, test_y) = blobs(400, g), blobs(400, g)
    with torch.no_grad():
        plain = linear_probe(x, y, test_x, test_y, generator=g)
        moved = linear_probe(3 * x - 7, y, 3 * test_x - 7, test_y, generator=g)
    assert plain == pytest.approx(moved, abs=0.003)


def test_sgd_is_torch_s_own_sgd_on_a_linear_layer(seeded):
    x, y = blobs(230, seeded(0))
    weight, bias = fit_sgd(x, y, seeded(1))
    g = seeded(1)
    layer = nn.Linear(6, 4)
    start = (2 * torch.rand(4, 7, generator=g) - 1) / 6**0.5
    layer.load_state_dict({"weight": start[:, :6], "bias": start[:, 6]})
    optimiser = torch.optim.SGD(layer.parameters(), lr=1e-3, momentum=0.9)
    for _ in range(100):
        order = torch.randperm(230, generator=g)
        for i in range(0, 230, 100):
            optimiser.zero_grad()
            nn.functional.cross_entropy(layer(x[order[i : i + 100]]), y[order[i : i + 100]]).backward()
            optimiser.step()
    torch.testing.assert_close(weight, layer.weight.detach(), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(bias, layer.bias.detach(), atol=1e-5, rtol=1e-4)


def test_the_two_recipes_agree_where_features_are_of_order_one(seeded):
    (x, y), (test_x, test_y) = blobs(2000, seeded(0)), blobs(1000, seeded(1))
    fast = linear_probe(x, y, test_x, test_y, generator=seeded(2))
    paper = linear_probe(x, y, test_x, test_y, recipe="sgd", generator=seeded(2))
    assert paper == pytest.approx(fast, abs=0.02)


def test_nearest_neighbour_is_scikit_learn_s(g):
    (x, y), (test_x, test_y) = blobs(500, g), blobs(2300, g)  # more than a chunk
    reference = KNeighborsClassifier(1, metric="cosine").fit(x.numpy(), y.numpy())
    assert knn_accuracy(x, y, test_x, test_y, k=1) == pytest.approx(reference.score(test_x.numpy(), test_y), abs=1e-3)


def test_votes_carry_their_weight(g):
    (x, y), (test_x, test_y) = blobs(500, g), blobs(300, g)
    reference = KNeighborsClassifier(20, metric="cosine", weights=lambda d: np.exp((1 - d) / 0.07))
    expected = reference.fit(x.numpy(), y.numpy()).score(test_x.numpy(), test_y)
    assert knn_accuracy(x, y, test_x, test_y) == pytest.approx(expected, abs=0.004)
    # one close point against two far ones: the temperature decides
    x, y = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 1, 1])
    query, label = torch.tensor([[1.0, 0.5]]), torch.tensor([0])
    assert knn_accuracy(x, y, query, label, k=3, temperature=0.07) == 1
    assert knn_accuracy(x, y, query, label, k=3, temperature=10) == 0


def test_bad_input_is_named(g):
    x, y = blobs(10, g)
    with pytest.raises(UserError, match="unknown probe recipe 'sdg': did you mean 'sgd'"):
        linear_probe(x, y, x, y, recipe="sdg", generator=g)
    with pytest.raises(UserError, match="one label a point"):
        linear_probe(x, y[:5], x, y, generator=g)
    with pytest.raises(UserError, match="one width"):
        knn_accuracy(x, y, x[:, :3], y)
    with pytest.raises(UserError, match="lower k"):
        knn_accuracy(x, y, x, y, k=11)
