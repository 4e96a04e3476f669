"""Figures about a trained model: its clusters, its density, its collapse."""

from gedi.evaluation.clustering import clustering_metrics
from gedi.evaluation.collapse import cluster_entropy, effective_rank
from gedi.evaluation.density import Truth, density_metrics, score_against_normal
from gedi.evaluation.twosample import mmd_test, nearest_neighbour_test
from gedi.evaluation.verdict import BOUNDS, density_verdict

__all__ = [
    "BOUNDS",
    "Truth",
    "cluster_entropy",
    "clustering_metrics",
    "density_metrics",
    "density_verdict",
    "effective_rank",
    "mmd_test",
    "nearest_neighbour_test",
    "score_against_normal",
]
