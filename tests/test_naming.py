"""Clusters named after training, and the table that shows how few sums it takes."""

import json

import pytest
import torch

import gedi
from gedi.errors import UserError
from gedi.logic import Constraint, sorted_
from gedi.tables import few_sums

SHORT = {"stage1": {"iterations": 150}, "stage2": {"iterations": 150}, "walk": {"steps": 5}, "n_init": 1}
RISING = sorted_(2, range(3), strictly=True)


@pytest.fixture(scope="module")
def found():
    """Points, clusters that nobody named, and what the clusters mean: a symbol each, in another order."""
    g = torch.Generator().manual_seed(0)
    points = 0.3 * torch.randn(300, 2, generator=g) + torch.tensor([[0.0, 0.0], [4.0, 3.0], [8.0, 0.0]]).repeat(100, 1)
    fitted = gedi.fit(points, SHORT, clusters=3)
    clusters = fitted.predict(points)
    assert len(clusters.unique()) == 3
    return points, torch.tensor([1, 2, 0])[clusters], fitted


def rising_pairs(truth, n, g):
    rising = torch.tensor(RISING.solutions())[torch.randint(3, (n,), generator=g)].flatten()
    pools = [(truth == symbol).nonzero()[:, 0] for symbol in range(3)]
    return torch.stack([pools[symbol][torch.randint(len(pools[symbol]), (), generator=g)] for symbol in rising])


def test_clusters_are_named_without_another_training(found, g):
    points, truth, fitted = found
    before = fitted.predict(points)
    named = gedi.name_clusters(fitted, points[rising_pairs(truth, 60, g)], RISING)
    assert named.alignment.permutation.tolist() == [2, 0, 1]
    assert torch.equal(named.fitted.predict(points), truth)
    assert torch.equal(fitted.predict(points), before)  # the model that was given stays
    assert float(named.alignment.confidence.min()) > 0.9


def test_groups_that_say_too_little_leave_names_open(found):
    points, truth, fitted = found
    one = [int((truth == symbol).nonzero()[0]) for symbol in (0, 1)]
    named = gedi.name_clusters(fitted, points[one], RISING)  # one pair: the first is lower than the second
    assert len(named.alignment.ties) == 2
    assert float(named.alignment.confidence.max()) < 0.7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fitted": 3}, "needs a trained model"),
        ({"constraint": None}, "constraint must be a gedi.logic.Constraint, got NoneType"),
        ({"constraint": sorted_(2, range(4))}, "must have the 3 symbols that the model tells apart"),
        ({"points": torch.zeros(3, 2)}, "whole groups of 2, got 3"),
        ({"points": torch.zeros(0, 2)}, "n > 0"),
        ({"constraint": Constraint.from_function(lambda a, b: a + b, [range(3)] * 2)}, "align needs one query"),
    ],
)
def test_what_cannot_be_named_is_refused(found, change, message):
    points, _, fitted = found
    with pytest.raises(UserError, match=message):
        gedi.name_clusters(**{"fitted": fitted, "points": points[:4], "constraint": RISING, **change})


def test_the_table_of_few_sums_counts_names_and_says_when_they_were_sure(tmp_path):
    right = few_sums.Outcome(200, 0, 0.98, 0.98, 10, 0.99, 0)
    wrong, misled = right._replace(draw=1, accuracy=0.5, names=5, confidence=0.3), right._replace(draw=2, names=8)
    found = {"mnist": {"15": [right, wrong, misled], "30": []}}
    line = next(line for line in few_sums.markdown(found).splitlines() if "| 15 |" in line)
    assert "1/3" in line  # all ten names
    assert "| 2/3 | 1 |" in line  # sure twice, once of something wrong
    assert few_sums.curve(found, tmp_path / "c.png").stat().st_size > 1000


@pytest.mark.slow
def test_clusters_of_digits_are_named_by_thirty_sums(tmp_path):
    short = few_sums.Cell("digits", "clusters", 200, None, ("stage1.iterations=300", "stage2.iterations=400"))
    few_sums.run_cell(short, "laptop", tmp_path)
    fitted = few_sums.RunDirectory(tmp_path / "cells" / short.folder).fitted()
    found = few_sums.named(fitted, "digits", 200, draws=3)
    assert json.dumps([o._asdict() for o in found["30"]])
    assert sum(o.names == 10 for o in found["30"]) >= 2
    assert all(o.accuracy <= o.matched + 1e-9 for runs in found.values() for o in runs)
