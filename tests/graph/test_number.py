"""How many clusters the spectrum proposes: on shapes, groups in many dimensions and unequal shares."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs, make_circles, make_moons

from gedi.data import SHAPES
from gedi.graph import WalkGraph, spectrum


def groups(clusters, columns):
    """Gaussians whose distance, in their own widths, does not depend on the number of columns."""

    def make(seed):
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(clusters, columns)) * 4.8 / np.sqrt(columns)
        return np.repeat(centres, 200, axis=0) + rng.normal(size=(200 * clusters, columns)) * 1.2 / np.sqrt(columns)

    return make


def shape(name):
    return lambda seed: SHAPES[name]().draw(1000, np.random.default_rng(seed))[0].numpy()


UNEQUAL = {"centers": [[0, 0], [3, 0], [0, 3], [3, 3]], "cluster_std": [0.5, 0.4, 0.3, 0.3]}
SETS = {
    "moons, 200 points": (2, lambda seed: make_moons(200, noise=0.06, random_state=seed)[0]),
    "circles 90/10": (2, lambda seed: make_circles((900, 100), noise=0.05, factor=0.4, random_state=seed)[0]),
    "rings": (3, shape("rings")),
    "spirals": (2, shape("spirals")),
    "pinwheel": (5, shape("pinwheel")),
    "blobs": (3, shape("blobs")),
    "unequal blobs": (4, lambda seed: make_blobs([1000, 300, 100, 50], random_state=seed, **UNEQUAL)[0]),
    "5 groups, 50 columns": (5, groups(5, 50)),
    "5 groups, 200 columns": (5, groups(5, 200)),
    "9 groups, 20 columns": (9, groups(9, 20)),
}


@pytest.mark.parametrize("seed", [7, 8])
def test_nine_of_ten_sets_at_least_are_counted_right(seed):
    found = {
        name: spectrum(WalkGraph.of(torch.tensor(make(seed)).float())).clusters for name, (_, make) in SETS.items()
    }
    right = [name for name, (clusters, _) in SETS.items() if found[name] == clusters]
    assert len(right) >= 9, found
