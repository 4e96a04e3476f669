"""Signs of collapse, from constructed cases."""

import math

import pytest
import torch

from gedi.evaluation import cluster_entropy, cluster_usage, collapse_metrics, effective_rank, energy_gap


def test_usage_of_uneven_clusters_is_the_exponential_of_their_entropy():
    usage = cluster_usage(torch.tensor([0] * 6 + [1] * 3 + [4]), 5)
    entropy = -(0.6 * math.log(0.6) + 0.3 * math.log(0.3) + 0.1 * math.log(0.1))
    assert usage["clusters_used"] == 3
    assert usage["effective_clusters"] == pytest.approx(math.exp(entropy))
    assert usage["largest_share"] == pytest.approx(0.6)


def test_everything_in_one_cluster_is_one_cluster():
    expected = {"clusters_used": 1, "effective_clusters": 1, "largest_share": 1}
    assert cluster_usage(torch.full((9,), 3), 5) == pytest.approx(expected)


def test_the_gap_is_positive_where_samples_are_less_dense(g):
    data = torch.randn(4000, generator=g)
    energy = data.square() / 2
    assert energy_gap(energy, (3 * data).square() / 2) == pytest.approx(8 * float(energy.mean()), rel=1e-5)
    assert energy_gap(energy, energy) == 0


def test_every_sign_together(g):
    embedding, logits = torch.randn(200, 5, generator=g), torch.randn(200, 4, generator=g)
    figures = collapse_metrics(embedding, logits)
    assert figures["effective_rank"] == effective_rank(embedding)
    assert figures["cluster_entropy"] == cluster_entropy(logits)
    assert figures["mean_confidence"] == pytest.approx(float(logits.softmax(1).max(1).values.mean()))
    assert figures.items() >= cluster_usage(logits.argmax(1), 4).items()


def test_collapse_shows_in_every_figure(g):
    embedding = torch.randn(200, 1, generator=g) * torch.ones(1, 5)
    logits = torch.zeros(200, 4)
    logits[:, 2] = 50
    figures = collapse_metrics(embedding, logits)
    assert figures["effective_rank"] == pytest.approx(1, abs=0.01)
    assert figures["cluster_entropy"] == pytest.approx(0, abs=1e-6)
    assert (figures["clusters_used"], figures["largest_share"]) == (1, 1)
    assert figures["mean_confidence"] == pytest.approx(1)
    unsure = collapse_metrics(embedding, torch.zeros(200, 4))
    assert unsure["mean_confidence"] == pytest.approx(1 / 4)
