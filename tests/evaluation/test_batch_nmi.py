"""NMI by batches against scikit-learn, batch by batch, and the chance levels it has."""

import time

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from gedi.errors import UserError
from gedi.evaluation import batch_nmi, clustering_metrics, kmeans_clusters
from gedi.evaluation.clustering import _nmi_of_batches


@pytest.mark.parametrize(("classes", "clusters", "n"), [(10, 10, 640), (3, 7, 333), (100, 100, 1000), (2, 1, 130)])
def test_every_batch_agrees_with_scikit_learn(classes, clusters, n):
    rng = np.random.default_rng(0)
    labels, found = rng.integers(0, classes, n), 5 * rng.integers(0, clusters, n)
    ours = _nmi_of_batches(labels, found, 64)
    theirs = [normalized_mutual_info_score(labels[i : i + 64], found[i : i + 64]) for i in range(0, n, 64)]
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_batches_of_one_class_agree_with_scikit_learn_too(g):
    labels = np.repeat([0, 1, 2], [64, 64, 13])  # sorted data: a batch is one class
    same, other = labels.copy(), np.arange(141) % 2
    assert batch_nmi(labels, same, generator=g)["nmi_batch64"] == 1
    assert batch_nmi(labels, other, generator=g)["nmi_batch64"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("classes", "level"), [(10, 0.31), (100, 0.90)])
def test_random_labels_score_far_above_zero(classes, level, g):
    rng = np.random.default_rng(0)
    labels, found = rng.integers(0, classes, 10_000), rng.integers(0, classes, 10_000)
    figures = batch_nmi(labels, found, generator=g)
    assert figures["nmi_batch64"] == pytest.approx(level, abs=0.02)
    assert figures["nmi_batch64_chance"] == pytest.approx(level, abs=0.02)
    assert clustering_metrics(labels, found)["ami"] == pytest.approx(0, abs=0.02)


def test_chance_keeps_how_many_clusters_are_used(g):
    labels = np.random.default_rng(0).integers(0, 10, 5000)
    assert batch_nmi(labels, np.zeros(5000, dtype=int), generator=g)["nmi_batch64_chance"] == pytest.approx(0, abs=1e-9)


def test_names_do_not_matter_and_the_stream_decides(seeded):
    rng = np.random.default_rng(0)
    labels, found = rng.integers(0, 10, 500), rng.integers(0, 10, 500)
    first = batch_nmi(labels, found, generator=seeded(1))
    renamed = batch_nmi(rng.permutation(10)[labels], 100 - found, generator=seeded(1))
    assert first == pytest.approx(renamed, abs=1e-12)
    assert first["nmi_batch64_chance"] != batch_nmi(labels, found, generator=seeded(2))["nmi_batch64_chance"]


def test_a_large_test_set_takes_no_time(g):
    rng = np.random.default_rng(0)
    labels, found = rng.integers(0, 100, 26_000), rng.integers(0, 100, 26_000)
    started = time.process_time()
    batch_nmi(labels, found, generator=g)
    assert time.process_time() - started < 2


def test_labels_of_other_points_are_an_error(g):
    with pytest.raises(UserError, match="same points"):
        batch_nmi(np.zeros(3), np.zeros(4), generator=g)


@pytest.mark.parametrize("n", [300, 20_400])  # full and in mini-batches
def test_kmeans_finds_blobs_and_repeats(n):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, n)
    points = np.eye(4)[labels] * 10 + rng.normal(size=(n, 4))
    found = kmeans_clusters(points, 4, seed=0)
    assert clustering_metrics(labels, found)["accuracy"] == 1
    np.testing.assert_array_equal(found, kmeans_clusters(points, 4, seed=0))


def test_more_clusters_than_points_is_an_error():
    with pytest.raises(UserError, match="smaller k"):
        kmeans_clusters(np.zeros((3, 2)), 4, seed=0)
