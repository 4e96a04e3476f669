"""DeepCluster: k-means of remembered embeddings gives pseudo-labels, now and then anew."""

from typing import ClassVar, Literal

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from torch import Tensor

from gedi import losses
from gedi.objectives.objective import Carried, Look, Objective, Seen
from gedi.settings import Positive
from gedi.types import Clustered

_TRIES = 3  # of k-means


class DeepCluster(Objective):
    """Cross-entropy of data and look with the nearest centre of k-means; see :func:`gedi.losses.deep_cluster`.

    The last embeddings are remembered, and clustered again whenever all of them are new: an epoch. At first that is
    sooner: after the first batch, and whenever their number has doubled. New clusters keep the names of the symbols
    that most of their points have, so that nothing has to be learnt again. Where the model has finer clusters they have
    pseudo-labels of their own: many are what shapes features, as in the source.
    """

    look: Look = "view"
    memory: Positive = 4096  # points that are clustered

    kind: ClassVar[str] = "deep_cluster"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "clusters"

    @property
    def looks(self) -> tuple[Look, ...]:
        """The one that is taught the same."""
        return (self.look,)

    def begin(self) -> Carried:
        """Nothing remembered, no centre."""
        c = self._context
        sizes = [size for size in (c.clusters, c.finer) if size]
        return {
            "embeddings": torch.zeros(self.memory, c.embedding),
            "symbols": torch.zeros(self.memory, len(sizes), dtype=torch.long),
            "centres": [torch.zeros(size, c.embedding) for size in sizes],
            "seen": 0,
            "due": 1,
        }

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The cross-entropy; of nothing before there is a centre."""
        data, view = _logits(seen.data), _logits(seen.looks[self.look])
        if carried is None or carried["seen"] == 0:
            return 0 * (data[0].sum() + view[0].sum())
        total = torch.zeros((), dtype=data[0].dtype, device=data[0].device)
        for one, other, centres in zip(data, view, carried["centres"], strict=True):
            with torch.no_grad():
                assigned = torch.cdist(seen.data.embedding, centres.to(one)).argmin(dim=1)
            total = total + (losses.deep_cluster(one, assigned) + losses.deep_cluster(other, assigned)) / 2
        return total

    def after(self, seen: Seen, carried: Carried) -> Carried:
        """The batch is remembered in the place of the oldest; when it is time, centres are found anew."""
        carried = self.begin() if carried is None else carried
        rows = seen.data.embedding[: self.memory]
        symbols = torch.stack([logits[: self.memory].argmax(dim=1) for logits in _logits(seen.data)], dim=1)
        embeddings, before = carried["embeddings"].clone(), carried["symbols"].clone()
        places = (carried["seen"] + torch.arange(len(rows))) % self.memory
        embeddings[places], before[places] = rows.to(embeddings), symbols.to(before)
        now = {**carried, "embeddings": embeddings, "symbols": before, "seen": carried["seen"] + len(rows)}
        if now["seen"] < now["due"]:
            return now
        known = min(now["seen"], self.memory)
        names = before[:known].cpu()
        centres = [
            named_centres(embeddings[:known].cpu(), names[:, i], len(old), now["seen"]).to(embeddings)
            for i, old in enumerate(carried["centres"])
        ]
        return {**now, "centres": centres, "due": now["seen"] + known}


def _logits(seen: Clustered) -> list[Tensor]:
    """Of the clusters, and of finer ones where there are any."""
    return [seen.logits] if seen.finer is None else [seen.logits, seen.finer]


def named_centres(rows: Tensor, symbols: Tensor, clusters: int, seed: int) -> Tensor:
    """Centres of k-means, (clusters, d), in the order of the symbols that their points have.

    Args:
        rows: (n, d); with fewer than clusters, some centres stand together.
        symbols: what each is called now, (n,).
        clusters: how many.
        seed: of k-means.
    """
    x = rows.double().numpy()
    distinct = min(clusters, len(np.unique(x, axis=0)))
    found = KMeans(distinct, n_init=_TRIES, random_state=seed % 2**32).fit(x)
    shared = torch.zeros(clusters, clusters)
    shared.index_put_((torch.as_tensor(found.labels_).long(), symbols), torch.ones(len(rows)), accumulate=True)
    _, names = linear_sum_assignment(-shared.numpy())
    centres = torch.as_tensor(found.cluster_centers_)
    spare = centres[torch.arange(clusters) % distinct]  # rows repeat where there are too few
    ordered = torch.empty_like(spare)
    ordered[torch.as_tensor(names)] = spare
    return ordered.to(rows.dtype)
