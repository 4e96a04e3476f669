"""Whether clusters or embeddings have collapsed; no labels."""

from typing import ClassVar

from gedi.evaluation import collapse_metrics
from gedi.measures.measure import Measure, Trained


class Collapse(Measure):
    """How evenly clusters share the points, how sure they are, and how many dimensions the embedding uses."""

    kind: ClassVar[str] = "collapse"
    order: ClassVar[int] = 30
    about: ClassVar[dict[str, str]] = {
        "cluster_entropy": "1: clusters share the points equally; 0: collapsed to one",
        "effective_clusters": "exp of the entropy of the clusters' shares",
        "largest_share": "share of test points in the largest cluster",
        "mean_confidence": "mean of the largest probability",
        "effective_rank": "dimensions the embedding really uses",
    }

    def applies(self, trained: Trained) -> bool:
        """A cluster head."""
        return trained.has_clusters

    def __call__(self, trained: Trained) -> dict[str, float]:
        """See :func:`gedi.evaluation.collapse_metrics`."""
        return collapse_metrics(trained.seen.embedding, trained.seen.logits)
