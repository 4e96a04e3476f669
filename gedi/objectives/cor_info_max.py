"""CorInfoMax: determinants of running covariances spread the embeddings, and looks are close."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi import losses
from gedi.losses.cor_info_max import second_moments
from gedi.objectives.objective import Carried, Seen
from gedi.objectives.paired import Paired
from gedi.settings import Amount, Share, Width


class CorInfoMax(Paired):
    """See :func:`gedi.losses.cor_info_max`; the covariances of both looks run on from step to step."""

    ridge: Width = 1e-3
    invariance: Amount = 1.0
    keep: Share = 0.9  # of what earlier batches say of the covariances; the first steps know of none

    kind: ClassVar[str] = "cor_info_max"

    def begin(self) -> Carried:
        """No covariance yet."""
        d = self._context.embedding
        return {"covariances": [torch.zeros(d, d, dtype=torch.float64) for _ in range(2)], "steps": 0}

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """The loss of data and look."""
        past, keep = self._past(carried)
        return losses.cor_info_max(
            *self.embeddings(seen), ridge=self.ridge, invariance=self.invariance, past=past, keep=keep
        )

    def after(self, seen: Seen, carried: Carried) -> Carried:
        """The covariances with this batch's in them."""
        past, keep = self._past(carried)
        now = [second_moments(F.normalize(z, dim=1)) for z in self.embeddings(seen)]
        if past is not None:
            now = [keep * before.to(found) + (1 - keep) * found for before, found in zip(past, now, strict=True)]
        return {"covariances": now, "steps": (0 if carried is None else carried["steps"]) + 1}

    def _past(self, carried: Carried) -> tuple[list[Tensor] | None, float]:
        """What earlier batches say, and what it counts: as one batch among those there were, at first."""
        if carried is None or carried["steps"] == 0:
            return None, 0.0
        steps = carried["steps"]
        return carried["covariances"], min(self.keep, steps / (steps + 1))
