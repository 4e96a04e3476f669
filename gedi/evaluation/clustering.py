"""How well clusters match true classes: on the whole test set at once, and as some published code does it."""

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    normalized_mutual_info_score,
)
from sklearn.metrics.cluster import contingency_matrix

from gedi.errors import UserError

_PERMUTATIONS = 5
_LARGE = 20_000  # points beyond which ten full k-means take minutes


def clustering_metrics(labels: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """NMI, and beside it always AMI and ARI (chance-adjusted), accuracy after matching, clusters used.

    Args:
        labels: true classes, (n,).
        predicted: clusters, (n,); their names do not matter.

    Example:
        >>> m = clustering_metrics(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
        >>> m["nmi"], m["accuracy"], m["clusters_used"]
        (1.0, 1.0, 2)
    """
    _check(labels, predicted)
    table = contingency_matrix(labels, predicted)
    rows, columns = linear_sum_assignment(-table)
    return {
        "nmi": float(normalized_mutual_info_score(labels, predicted)),
        "ami": float(adjusted_mutual_info_score(labels, predicted)),
        "ari": float(adjusted_rand_score(labels, predicted)),
        "accuracy": float(table[rows, columns].sum() / len(labels)),
        "clusters_used": len(np.unique(predicted)),
    }


def matched(labels: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Clusters by the names of the classes they match one to one; one that matches none gets a name of its own.

    Example:
        >>> matched(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 2])).tolist()
        [0, 0, 1, 2]
    """
    _check(labels, predicted)
    classes, clusters = np.unique(labels), np.unique(predicted)
    rows, columns = linear_sum_assignment(-contingency_matrix(labels, predicted))
    names = np.zeros(len(clusters), dtype=int)
    names[columns] = classes[rows]
    left = np.setdiff1d(np.arange(len(clusters)), columns)
    names[left] = classes.max() + 1 + np.arange(len(left))
    return names[np.searchsorted(clusters, predicted)]


def batch_nmi(
    labels: np.ndarray, predicted: np.ndarray, batch: int = 64, *, generator: torch.Generator
) -> dict[str, float]:
    """NMI averaged over consecutive batches, and what chance scores by it: only to read a paper's figure.

    A batch of 64 has few points a class, so *random* labels score about 0.31 with 10 classes and 0.90 with
    100. The second figure is that level for these clusters: the same mean for ``predicted`` in random
    order. On the whole set use :func:`clustering_metrics`.

    Args:
        labels: true classes, (n,).
        predicted: clusters, (n,).
        batch: points a batch; the last one may be shorter and counts as much as the others.
        generator: stream for the random orders.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> m = batch_nmi(np.arange(640) % 10, np.arange(640) % 10, generator=g)
        >>> m["nmi_batch64"], 0.25 < m["nmi_batch64_chance"] < 0.35
        (1.0, True)
    """
    _check(labels, predicted)
    orders = [torch.randperm(len(predicted), generator=generator).numpy() for _ in range(_PERMUTATIONS)]
    chance = np.mean([_nmi_of_batches(labels, predicted[order], batch).mean() for order in orders])
    name = f"nmi_batch{batch}"
    return {name: float(_nmi_of_batches(labels, predicted, batch).mean()), f"{name}_chance": float(chance)}


def _nmi_of_batches(labels: np.ndarray, predicted: np.ndarray, batch: int) -> np.ndarray:
    """``(H(a) + H(b) - H(a, b)) / mean(H(a), H(b))`` of every batch, all batches at once."""
    a, b = (np.unique(names, return_inverse=True)[1] for names in (labels, predicted))
    both = a * (b.max() + 1) + b
    entropy_a, entropy_b, entropy_both = (_entropy_of_batches(names, batch) for names in (a, b, both))
    mean = (entropy_a + entropy_b) / 2
    alike = mean < 1e-12  # one class and one cluster: they agree
    return np.where(alike, 1.0, (entropy_a + entropy_b - entropy_both) / np.where(alike, 1.0, mean))


def _entropy_of_batches(names: np.ndarray, batch: int) -> np.ndarray:
    """``log n - sum_k n_k log n_k / n`` of every batch, from the counts of (batch, name) pairs."""
    where = np.arange(len(names)) // batch
    size = np.bincount(where)
    kinds = names.max() + 1
    pairs, counts = np.unique(where * kinds + names, return_counts=True)
    return np.asarray(np.log(size) - np.bincount(pairs // kinds, counts * np.log(counts)) / size)


def kmeans_clusters(features: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Clusters of the features of a method that has no cluster head: the best of ten k-means, (n, d) -> (n,).

    Beyond 20,000 points in mini-batches.

    Example:
        >>> kmeans_clusters(np.array([[0.0], [0.1], [9.0]]), 2, seed=0)[:2].std()
        np.float64(0.0)
    """
    if not 1 <= k <= len(features):
        raise UserError(f"k-means needs 1 to n clusters, got k={k} for {len(features)} points; choose a smaller k")
    method = KMeans if len(features) <= _LARGE else MiniBatchKMeans
    return np.asarray(method(k, n_init=10, random_state=seed).fit_predict(features))


def _check(labels: np.ndarray, predicted: np.ndarray) -> None:
    if len(labels) != len(predicted) or not len(labels):
        raise UserError(
            f"labels and clusters must be of the same points, got {len(labels)} labels and "
            f"{len(predicted)} clusters; pass both for the same test set"
        )
