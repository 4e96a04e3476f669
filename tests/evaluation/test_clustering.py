"""Cluster metrics against their definitions."""

import itertools

import numpy as np
import pytest
import torch

from gedi.evaluation import cluster_entropy, clustering_metrics, effective_rank, matched


def test_accuracy_is_the_best_over_all_matchings():
    rng = np.random.default_rng(0)
    labels, found = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
    best = max(np.mean(np.array(p)[found] == labels) for p in itertools.permutations(range(4)))
    assert clustering_metrics(labels, found)["accuracy"] == pytest.approx(best)


@pytest.mark.parametrize("clusters", [2, 4, 7])
def test_matched_clusters_are_the_same_parts_and_agree_as_far_as_accuracy_says(clusters):
    rng = np.random.default_rng(clusters)
    labels, found = 2 * rng.integers(0, 4, 80), rng.integers(0, clusters, 80)
    named = matched(labels, found)
    assert len(np.unique(named)) == len(np.unique(found)) == len(np.unique(np.stack([named, found]), axis=1).T)
    assert np.mean(named == labels) == pytest.approx(clustering_metrics(labels, found)["accuracy"])


def test_nmi_is_mutual_information_over_mean_entropy():
    labels, found = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])
    joint = np.array([[0.5, 0.0], [0.25, 0.25]])
    rows, columns = joint.sum(1), joint.sum(0)
    information = sum(p * np.log(p / (rows[i] * columns[j])) for (i, j), p in np.ndenumerate(joint) if p > 0)
    entropy = -np.sum(rows * np.log(rows)), -np.sum(columns * np.log(columns))
    assert clustering_metrics(labels, found)["nmi"] == pytest.approx(information / np.mean(entropy))


def test_one_symbol_for_everything_scores_nothing():
    metrics = clustering_metrics(np.array([0, 1] * 50), np.zeros(100, dtype=int))
    assert metrics["nmi"] == metrics["ari"] == 0
    assert metrics["clusters_used"] == 1


def test_adjusted_figures_are_zero_by_chance_where_nmi_is_not():
    rng = np.random.default_rng(0)
    many = [clustering_metrics(rng.integers(0, 10, 64), rng.integers(0, 10, 64)) for _ in range(50)]
    assert np.mean([m["nmi"] for m in many]) > 0.25
    assert abs(np.mean([m["ami"] for m in many])) < 0.03
    assert abs(np.mean([m["ari"] for m in many])) < 0.03


def test_effective_rank_counts_equal_directions():
    g = torch.Generator().manual_seed(0)
    flat = torch.randn(5000, 3, generator=g) @ torch.linalg.qr(torch.randn(8, 8, generator=g))[0][:3]
    assert effective_rank(flat) == pytest.approx(3, abs=0.05)
    assert effective_rank(flat[:, :1] * torch.ones(1, 8)) == pytest.approx(1, abs=0.05)


def test_cluster_entropy_goes_from_collapsed_to_balanced():
    collapsed = torch.zeros(10, 4)
    collapsed[:, 0] = 50
    assert cluster_entropy(collapsed) == pytest.approx(0, abs=1e-6)
    assert cluster_entropy(torch.eye(4).repeat(5, 1) * 50) == pytest.approx(1, abs=1e-6)
