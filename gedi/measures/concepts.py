"""Symbols that a rule names, against true ones: wrong names, symbols never used, how sure."""

from typing import ClassVar

from gedi.evaluation.concepts import concept_metrics
from gedi.measures.measure import Measure, Trained


class Concepts(Measure):
    """Where a rule names the clusters and labels tell whether rightly."""

    kind: ClassVar[str] = "concepts"
    order: ClassVar[int] = 15
    about: ClassVar[dict[str, str]] = {
        "concept_accuracy": "share of test points that are called by their true name",
        "concept_f1": "the same as F1, every symbol counted alike",
        "concept_collapse": "share of the symbols that nothing is called by",
        "concept_ece": "calibration error of each symbol's probability, averaged; 0: as often right as it says",
        "concept_entropy": "0: every point is called by one name for certain; 1: by all alike",
    }

    def applies(self, trained: Trained) -> bool:
        """A rule, a cluster head, and labels that number its symbols."""
        labels = trained.data.test_labels
        if trained.constraint is None or not trained.has_clusters or labels is None:
            return False
        return bool(((labels >= 0) & (labels < trained.seen.logits.shape[1])).all())

    def __call__(self, trained: Trained) -> dict[str, float]:
        """See :func:`gedi.evaluation.concepts.concept_metrics`."""
        assert trained.data.test_labels is not None
        return concept_metrics(trained.data.test_labels, trained.seen.logits.softmax(dim=1).cpu())
