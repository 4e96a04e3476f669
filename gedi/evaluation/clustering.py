"""How well clusters match true classes, on the whole test set at once."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    normalized_mutual_info_score,
)
from sklearn.metrics.cluster import contingency_matrix


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
    table = contingency_matrix(labels, predicted)
    rows, columns = linear_sum_assignment(-table)
    return {
        "nmi": float(normalized_mutual_info_score(labels, predicted)),
        "ami": float(adjusted_mutual_info_score(labels, predicted)),
        "ari": float(adjusted_rand_score(labels, predicted)),
        "accuracy": float(table[rows, columns].sum() / len(labels)),
        "clusters_used": len(np.unique(predicted)),
    }
