"""How usual points are: without themselves, and held half against their surroundings."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from gedi import GEDI
from gedi.usual import how_usual


@pytest.fixture(scope="module")
def model():
    return GEDI(1, iterations=1, random_state=0).fit(np.random.default_rng(0).normal(size=(60, 3)))


def by_hand(kernels, x, without=None):
    """The log density at one point, bump by bump."""
    d, m = len(x), len(kernels.points)
    logs = [
        -((x - c).square().sum() / (2 * h * h)) - d * torch.log(h) - d * math.log(2 * math.pi) / 2 - math.log(m)
        for i, (c, h) in enumerate(zip(kernels.centres.double(), kernels.widths.double(), strict=True))
        if i != without
    ]
    return torch.stack(logs).logsumexp(dim=0)


def test_it_is_half_the_log_density_of_the_surroundings_that_is_taken_off(model):
    kernels, new = model.fitted_.model.density, np.random.default_rng(1).normal(size=(5, 3))
    usual = how_usual(model.fitted_, new)
    seen = model.fitted_.inputs(torch.from_numpy(new)).double()
    stood = kernels.points.double()
    for x, found, beside in zip(seen, usual.log_density, usual.beside, strict=True):
        around = (stood - x).norm(dim=1).argsort()[:40].tolist()
        known = sum(by_hand(kernels, stood[j], without=j) for j in around) / 40
        assert float(found) == pytest.approx(float(by_hand(kernels, x)), abs=1e-5)
        assert float(beside) == pytest.approx(float(by_hand(kernels, x) - known / 2), abs=1e-5)


def test_a_point_that_was_learnt_from_is_no_part_of_its_own_surroundings(model):
    kernels = model.fitted_.model.density
    stood = kernels.points.double()
    found = how_usual(model.fitted_, model.fitted_.inputs.back(kernels.points)[7:8])
    around = (stood - stood[7]).norm(dim=1).argsort()[1:41].tolist()
    known = sum(by_hand(kernels, stood[j], without=j) for j in around) / 40
    assert float(found.beside[0]) == pytest.approx(float(by_hand(kernels, stood[7], without=7) - known / 2), abs=1e-4)


def test_units_change_nothing():
    x = np.random.default_rng(2).normal(size=(200, 2))
    scores = [
        GEDI(1, iterations=1, random_state=0).fit(a * x + b).outlier_score(a * x + b) for a, b in ((1, 0), (50, 9))
    ]
    np.testing.assert_allclose(*scores, rtol=1e-3, atol=1e-3)


def test_strange_points_near_a_tight_group_show_though_a_wide_one_is_thinner():
    rng = np.random.default_rng(3)
    x = np.concatenate([0.1 * rng.normal(size=(300, 3)), 8 + 2 * rng.normal(size=(300, 3))])
    way = rng.normal(size=(100, 3))
    strange = 0.7 * way / np.linalg.norm(way, axis=1, keepdims=True)
    usual = np.concatenate([0.1 * rng.normal(size=(100, 3)), 8 + 2 * rng.normal(size=(100, 3))])
    model = GEDI(2, iterations=50, random_state=0).fit(x)
    asked, is_strange = np.concatenate([usual, strange]), np.repeat([0, 1], [200, 100])
    beside = roc_auc_score(is_strange, model.outlier_score(asked))
    alone = roc_auc_score(is_strange, -model.score_samples(asked))
    assert beside > 0.97
    assert beside > alone + 0.02


def test_strange_points_off_the_axes_of_wide_rows_show():
    rng = np.random.default_rng(4)
    axes = rng.normal(size=(8, 300))

    def rows(n, off):
        return rng.normal(size=(n, 8)) @ axes + off * rng.normal(size=(n, 300))

    model = GEDI(1, iterations=1, random_state=0).fit(rows(600, 0.5))
    assert model.fitted_.inputs.projection is not None
    asked, is_strange = np.concatenate([rows(100, 0.5), rows(100, 0.6)]), np.repeat([0, 1], [100, 100])
    assert roc_auc_score(is_strange, model.outlier_score(asked)) > 0.95
    assert roc_auc_score(is_strange, -model.score_samples(asked)) < 0.8
