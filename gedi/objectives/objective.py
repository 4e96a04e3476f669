"""What a training term is: its settings, what it needs, and its value from what the network saw."""

from typing import Any, ClassVar, Literal, NamedTuple, Self

import torch
from pydantic import PrivateAttr
from torch import Tensor

from gedi.logic import Constraint
from gedi.settings import Amount, Section, Share
from gedi.types import Clustered

#: A look at the data beside the data themselves: the augmented view, or the end of a walk.
Look = Literal["view", "walk"]


def view_names(number: int) -> tuple[str, ...]:
    """Looks that are augmented views, each on its own.

    Example:
        >>> view_names(3)
        ('view', 'view2', 'view3')
    """
    return ("view", *(f"view{i}" for i in range(2, number + 1)))


#: State that a term carries from step to step: tensors in dictionaries and lists, or None.
Carried = Any


class Few(NamedTuple):
    """The few training points whose labels are told.

    Attributes:
        rows: which they are, (m,).
        labels: (m,).
        swaps: the other one-to-one namings that the rule allows, as numbers of symbols, where they are known.
    """

    rows: Tensor
    labels: Tensor
    swaps: tuple[tuple[int, ...], ...] = ()


class Context(NamedTuple):
    """What a term may have to know of the run.

    Attributes:
        clusters: how many there are.
        embedding: dimension of the embedding.
        temperature: ``tau`` of the prototypes.
        finer: how many finer clusters the model has; 0 has none.
        log_shares: log of each cluster's share, (clusters,); None is equal shares.
        constraint: what is known of groups of points, or None.
        labelled: whether the training points have labels, which only the upper bound looks at.
        proposed: whether a clustering of the training points was proposed, to begin from.
        answers: what was observed of each group, where the constraint has several queries.
        finds_shares: whether a move of the stage may find other shares.
        few: points whose labels are told, or None.
    """

    clusters: int
    embedding: int
    temperature: float
    finer: int = 0
    log_shares: Tensor | None = None
    constraint: Constraint | None = None
    labelled: bool = False
    proposed: bool = False
    answers: Tensor | None = None
    finds_shares: bool = False
    few: Few | None = None


class Seen(NamedTuple):
    """What the network saw in one step: rows of all processes.

    Attributes:
        data: the data themselves.
        looks: the same rows through each look that a term of the stage needs.
        progress: share of the stage that is over.
        grouped: how many rows, from the first on, come in groups of the constraint.
        labels: only where a term needs them.
        proposed: the cluster that was proposed for each row, where a proposal was made.
        answers: what was observed of each group, where the constraint has several queries.
        few: labels of the last rows, where some points have one.
    """

    data: Clustered
    looks: dict[str, Clustered]
    progress: float
    grouped: int = 0
    labels: Tensor | None = None
    proposed: Tensor | None = None
    answers: Tensor | None = None
    few: Tensor | None = None

    def both(self, rows: int | None = None) -> Tensor:
        """Logits of the data and of the augmented view, one below the other."""
        return torch.cat([self.data.logits[:rows], self.looks["view"].logits[:rows]])


class Objective(Section):
    """A training term; its settings are the part. A subclass is one file and nothing else.

    Attributes:
        weight: of the term in the sum.
        start: the weight is 0 for this share of the stage,
        ramp: and then rises over this share.
        kind: what settings and the log call it.
        shapes: ``clusters`` tell good restarts from bad by their sum; ``embedding`` shapes what clusters stand on.
        needs_labels: looks at labels, which only the upper bound does.
        needs_few: looks at the few labels that are told.
        shares_out: gives every cluster its share of the points, so that one cluster for all is an accident.
    """

    weight: Amount
    start: Share = 0.0
    ramp: Share = 0.0

    kind: ClassVar[str]
    shapes: ClassVar[Literal["clusters", "embedding"]]
    shares_out: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = False
    needs_few: ClassVar[bool] = False
    _context: Context = PrivateAttr()

    @property
    def looks(self) -> tuple[str, ...]:
        """The looks at the data that it needs: a :data:`Look`, or further views by :func:`view_names`."""
        return ("view",)

    def bind(self, context: Context) -> Self:
        """The same term for one run; what cannot be is refused here."""
        bound = self.model_copy()
        bound._context = context
        return bound

    def at(self, progress: float) -> float:
        """The weight at a share of the stage."""
        if progress < self.start:
            return 0.0
        return self.weight * (min(1.0, (progress - self.start) / self.ramp) if self.ramp > 0 else 1.0)

    def loss_range(self) -> tuple[float, float] | None:
        """Its value for a perfect clustering, and for one that knows nothing, where they are known without data."""
        return None

    def begin(self) -> Carried:
        """State of its own at the beginning of a stage, tensors whose shapes stay; None for a term that has none."""
        return None

    def __call__(self, seen: Seen, carried: Carried = None) -> Tensor:
        """A scalar to minimise."""
        raise TypeError(f"{type(self).__name__} must define __call__(seen, carried)")

    def after(self, seen: Seen, carried: Carried) -> Carried:
        """Its state after a step; nothing of it has a gradient."""
        return carried

    def moved(self, carried: Carried, order: Tensor | None, log_shares: Tensor | None) -> Carried:
        """Its state once a move has changed the prototypes: renamed them in an order, or drawn them with shares."""
        return carried
