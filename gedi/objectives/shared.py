"""Terms that give every cluster its share of the points, and hear of shares that a move has found."""

import math
from typing import ClassVar

import torch
from torch import Tensor

from gedi.objectives.objective import Carried, Objective


class SharesOut(Objective):
    """A term with a prior on the clusters' shares: equal, as the run knows them, or as a move of the stage finds them.

    Found shares are state: they go with the term through checkpoints, restarts and the guard.
    """

    shares_out: ClassVar[bool] = True

    def begin(self) -> Carried:
        """The logs of the shares, where a move may find others; else nothing."""
        clusters = self._context.clusters
        return torch.full((clusters,), -math.log(clusters)) if self._context.finds_shares else None

    def moved(self, carried: Carried, order: Tensor | None, log_shares: Tensor | None) -> Carried:
        """Shares that were found with the prototypes, or renamed as they were; of others nothing is known yet."""
        if carried is None:
            return None
        if log_shares is not None:
            return log_shares.to(carried)
        return self.begin().to(carried) if order is None else carried[order.to(carried.device)]

    def log_shares(self, carried: Carried, like: Tensor) -> Tensor | None:
        """The logs of the shares in force, (c,); None is equal ones."""
        shares: Tensor | None = self._context.log_shares if carried is None else carried
        return None if shares is None else shares.to(like)
