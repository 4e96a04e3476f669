"""Where walks on the final energy end, by the true classes."""

from typing import ClassVar

import torch
from torch import Tensor

from gedi.evaluation import nearest
from gedi.measures.measure import Measure, Trained, chosen

LABELLED = 20_000  # training points that say which true cluster is nearest


class Crossing(Measure):
    """Walks should stay in their cluster; here labels say which that is."""

    kind: ClassVar[str] = "crossing"
    order: ClassVar[int] = 80
    about: ClassVar[dict[str, str]] = {
        "walk_crossing": "share of walks on the final energy that end in another true cluster"
    }

    def applies(self, trained: Trained) -> bool:
        """A density on rows of a table that have labels."""
        return (
            trained.config.walk.energy != "graph"
            and trained.has_density
            and not trained.images
            and trained.data.test_labels is not None
        )

    def __call__(self, trained: Trained) -> dict[str, float]:
        """Walks from the test points."""
        labels, test = trained.data.test_labels, trained.data.test[trained.some]
        assert labels is not None
        ends = trained.walk(trained.energy, test, trained.streams["assess"])
        true = _true_cluster(trained, ends, trained.streams["labelled"])
        return {"walk_crossing": float((true != labels[trained.some]).float().mean())}


def _true_cluster(trained: Trained, x: Tensor, generator: torch.Generator) -> Tensor:
    data = trained.data
    if data.truth is not None:
        return data.truth.nearest_cluster(x)
    assert data.train_labels is not None
    some = chosen(data.train, LABELLED, generator)
    return data.train_labels[some][nearest(x, data.train[some])]
