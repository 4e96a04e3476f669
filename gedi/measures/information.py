"""What a step to a near point keeps of the clusters found; no labels."""

from typing import ClassVar

import torch

from gedi.graph import information_kept
from gedi.measures.measure import Measure, Trained, seen_of


class Information(Measure):
    """On the graph of the points that the kernel density stands on."""

    kind: ClassVar[str] = "information"
    order: ClassVar[int] = 95
    about: ClassVar[dict[str, str]] = {
        "information_kept": "share of what clusters tell of a point that they tell of near points too; no labels"
    }

    def applies(self, trained: Trained) -> bool:
        """Clusters, and walks on the graph of the points."""
        return trained.has_clusters and trained.has_graph

    @torch.no_grad()
    def __call__(self, trained: Trained) -> dict[str, float]:
        """See :func:`gedi.graph.information_kept`."""
        graph = trained.graph
        logits = seen_of(trained.model, graph.points.float()).logits
        return {"information_kept": information_kept(graph, logits.double().log_softmax(dim=1))}
