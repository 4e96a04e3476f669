"""Whether walks hold the clusters found together; no labels."""

from typing import ClassVar

import torch

from gedi.evaluation import walk_connections
from gedi.measures.measure import Measure, Trained, chosen, seen_of

WALKED = 1000  # training points that are walked from
_PLACES = 20  # on a walk's way that are looked at


class Connection(Measure):
    """Walks on the final energy should connect a cluster's own points and leave it nowhere."""

    kind: ClassVar[str] = "connection"
    order: ClassVar[int] = 90
    about: ClassVar[dict[str, str]] = {
        "walks_connect": "share of a cluster's points in its largest connected piece, where it is least; no labels",
        "walks_leave": "share of walks on the final energy that leave the cluster found; no labels",
        "walks_cross": "the same among walks that come farther than the nearest point of another cluster; no labels",
    }

    def applies(self, trained: Trained) -> bool:
        """Clusters, a density on rows of a table, and walks."""
        walks = trained.config.walk.steps > 0
        return (
            trained.config.walk.energy != "graph"
            and trained.has_density
            and trained.has_clusters
            and not trained.images
            and walks
        )

    @torch.no_grad()
    def __call__(self, trained: Trained) -> dict[str, float]:
        """See :func:`gedi.evaluation.walk_connections`."""
        walk, generator = trained.walk, trained.streams["verdict"]
        x = trained.data.train[chosen(trained.data.train, WALKED, generator)]
        paths = walk(trained.energy, x, generator, every=max(1, walk.steps // _PLACES))
        found, ends = (seen_of(trained.model, places).logits.argmax(dim=1) for places in (x, paths[-1]))
        return walk_connections(x, paths, found, ends)
