"""NMI averaged over small batches, as some published figures may be, beside its chance level."""

from typing import ClassVar

from gedi.evaluation import batch_nmi
from gedi.measures.measure import Measure, Trained


class BatchNmi(Measure):
    """Only to be held against such a figure: it is inflated."""

    kind: ClassVar[str] = "batches"
    order: ClassVar[int] = 20
    about: ClassVar[dict[str, str]] = {
        "nmi_batch64": "NMI averaged over batches of 64, as some published figures may be; inflated, see the next line",
        "nmi_batch64_chance": "what the same clusters reach in that figure when they are dealt out at random",
    }

    def applies(self, trained: Trained) -> bool:
        """Labelled images."""
        return trained.images and trained.data.test_labels is not None

    def __call__(self, trained: Trained) -> dict[str, float]:
        """See :func:`gedi.evaluation.batch_nmi`."""
        labels = trained.data.test_labels
        assert labels is not None
        generator = trained.streams["batch_nmi"]
        return batch_nmi(labels.numpy(), trained.predicted.cpu().numpy(), generator=generator)
