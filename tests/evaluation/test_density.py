"""The density's figures must tell the truth from each kind of fake."""

import math

import pytest
import torch

from gedi.data import SHAPES
from gedi.evaluation import (
    density_check,
    density_metrics,
    mmd_test,
    nearest_neighbour_test,
    score_against_normal,
)
from gedi.sampling import Box

TRUTH = SHAPES["circles"]()
BOX = Box(torch.tensor([-1.7, -1.7]), torch.tensor([1.7, 1.7]))


class TrueEnergy:
    def __call__(self, x):
        return -TRUTH.log_density(x) + 3.0  # any constant

    def with_score(self, x):
        return self(x), TRUTH.score(x)


def points(n=800, seed=0):
    import numpy as np

    return TRUTH.draw(n, np.random.default_rng(seed))[0]


def metrics_of(energy):
    return density_metrics(energy, TRUTH, points(), BOX.low, BOX.high, torch.Generator().manual_seed(0))


def test_the_true_energy_is_perfect_by_every_figure():
    metrics = metrics_of(TrueEnergy())
    assert metrics["kl"] == pytest.approx(0, abs=0.02)
    assert metrics["density_correlation"] == pytest.approx(1, abs=1e-6)
    assert metrics["score_cosine"] == pytest.approx(1, abs=1e-4)
    assert metrics["far_mass"] < 2e-4


def test_kl_of_a_uniform_density_is_its_entropy_deficit():
    metrics = metrics_of(lambda x: x.sum(1) * 0)
    entropy = -TRUTH.log_density(points()).mean().item()
    assert metrics["kl"] == pytest.approx(math.log(3.4**2) - entropy, abs=1e-3)
    assert metrics["kl"] == pytest.approx(metrics["kl_uniform"], abs=1e-3)


FAKES = {
    "radial": lambda x: x.square().sum(1) / 2,
    "flipped": lambda x: TRUTH.log_density(x),
    "one ring only": lambda x: 200 * (x.norm(dim=1) - 1).square(),
    "far too sharp": lambda x: -20 * TRUTH.log_density(x),
    "uniform": lambda x: x.sum(1) * 0,
}


@pytest.mark.parametrize("name", FAKES)
def test_every_fake_is_caught(name):
    assert not density_check(metrics_of(FAKES[name]))["genuine"]


def test_the_truth_is_called_genuine():
    assert density_check(metrics_of(TrueEnergy()))["genuine"]


def test_a_figure_that_is_not_a_number_fails():
    assert not density_check({"kl": math.nan})["genuine"]


def test_the_normal_of_a_ring_is_the_radius_and_not_the_tangent():
    x = points(100)
    assert score_against_normal(TrueEnergy(), x + 0.02) > 0.95
    assert score_against_normal(lambda p: torch.atan2(p[:, 1], p[:, 0]), x) < 1e-3


def test_mmd_and_neighbours_accept_the_same_and_reject_another_distribution():
    g = torch.Generator().manual_seed(0)
    a, b = points(400, 1), points(400, 2)
    thick = b + 0.1 * torch.randn(b.shape, generator=g)
    assert mmd_test(a, b, g)["p_value"] > 0.05
    assert mmd_test(a, thick, g)["p_value"] < 0.05
    assert abs(nearest_neighbour_test(a, b) - 0.5) < 0.08
    assert nearest_neighbour_test(a, BOX.sample(400, g)) > 0.75


def test_mmd_matches_the_double_sum():
    g = torch.Generator().manual_seed(0)
    a, b = torch.randn(6, 2, generator=g), torch.randn(5, 2, generator=g)
    pooled = torch.cat([a, b]).double()
    width = 0.1 * torch.cdist(pooled, pooled).square().median().sqrt()

    def k(x, y):
        return math.exp(-float((x.double() - y.double()).square().sum()) / (2 * float(width) ** 2))

    aa = sum(k(a[i], a[j]) for i in range(6) for j in range(6) if i != j) / 30
    bb = sum(k(b[i], b[j]) for i in range(5) for j in range(5) if i != j) / 20
    ab = sum(k(x, y) for x in a for y in b) / 30
    assert mmd_test(a, b, g, permutations=1)["mmd2"] == pytest.approx(aa + bb - 2 * ab, rel=1e-6)
