"""Clusters against true classes, where there are labels."""

from typing import ClassVar

import torch

from gedi.evaluation import clustering_metrics
from gedi.measures.measure import Measure, Trained


class Clusters(Measure):
    """Agreement with the classes, on the whole test set."""

    kind: ClassVar[str] = "clusters"
    order: ClassVar[int] = 10
    about: ClassVar[dict[str, str]] = {
        "nmi": "normalised mutual information with the true classes, whole test set",
        "ami": "the same, adjusted for chance",
        "ari": "adjusted Rand index",
        "accuracy": "share of points in the right cluster; clusters are matched to classes unless a rule names them",
        "clusters_used": "clusters that hold at least one test point",
        "accuracy_matched": "the same with clusters matched to classes one to one",
    }

    def __call__(self, trained: Trained) -> dict[str, float]:
        """Without labels only how many clusters are used."""
        labels, predicted = trained.data.test_labels, trained.predicted
        if labels is None:
            return {"clusters_used": len(torch.unique(predicted))}
        found = clustering_metrics(labels.numpy(), predicted.cpu().numpy())
        if trained.data.groups:  # the rule names the symbols, so a wrong name is an error
            found["accuracy_matched"] = found["accuracy"]
            found["accuracy"] = float((predicted.cpu() == labels).float().mean())
        return found
