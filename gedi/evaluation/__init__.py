"""Figures about a trained model: its clusters, features, density, samples, outliers and collapse."""

from gedi.evaluation.bounds import BOUNDS, density_check
from gedi.evaluation.clustering import batch_nmi, clustering_metrics, kmeans_clusters, matched
from gedi.evaluation.collapse import cluster_entropy, cluster_usage, collapse_metrics, effective_rank, energy_gap
from gedi.evaluation.connectivity import walk_connections
from gedi.evaluation.density import Truth, density_metrics, score_against_normal
from gedi.evaluation.fid import FeatureNetwork, features_of, fid, frechet_distance
from gedi.evaluation.inception import inception_from_file, installed_inception
from gedi.evaluation.neighbours import nearest
from gedi.evaluation.ood import auroc, ood_aurocs, ood_scores
from gedi.evaluation.probe import knn_accuracy, linear_probe
from gedi.evaluation.samples import precision_recall
from gedi.evaluation.twosample import (
    energy_distance_test,
    mmd_test,
    nearest_neighbour_shares,
    nearest_neighbour_test,
)
from gedi.evaluation.verdict import CHECKS, Subject, verdict

__all__ = [
    "BOUNDS",
    "CHECKS",
    "FeatureNetwork",
    "Subject",
    "Truth",
    "auroc",
    "batch_nmi",
    "cluster_entropy",
    "cluster_usage",
    "clustering_metrics",
    "collapse_metrics",
    "density_check",
    "density_metrics",
    "effective_rank",
    "energy_distance_test",
    "energy_gap",
    "features_of",
    "fid",
    "frechet_distance",
    "inception_from_file",
    "installed_inception",
    "kmeans_clusters",
    "knn_accuracy",
    "linear_probe",
    "matched",
    "mmd_test",
    "nearest",
    "nearest_neighbour_shares",
    "nearest_neighbour_test",
    "ood_aurocs",
    "ood_scores",
    "precision_recall",
    "score_against_normal",
    "verdict",
    "walk_connections",
]
