"""What a data set is: points to train on, points to test on, and what is known of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gedi.data.pixels import Pixels, StoredImages, chunks
from gedi.data.scaling import Scaling
from gedi.data.shards import is_sharded
from gedi.data.toy import NoisyCurve
from gedi.data.values import MOST
from gedi.errors import UserError
from gedi.types import Points

_CHUNK = 4096  # rows checked at a time: the check must not double the memory of an image set


@dataclass(frozen=True)
class Dataset:
    """Train and test points with labels where there are any.

    A point is a row of a table or an image: (n, d) or (n, channels, height, width). Points that a rule speaks
    about together stand in groups at the front of ``train``, group after group; the rest are free.

    Attributes:
        name: what it is called in results.
        train: (n, *shape), images kept as bytes, or rows in shards; labels are for pictures and diagnostics, training
            never sees them.
        test: (m, *shape).
        train_labels: (n,) or None.
        test_labels: (m,) or None.
        truth: the density the points were drawn from, where it is known.
        group_size: points in a group.
        groups: how many groups; they are the first ``groups * group_size`` training points, in order.
        source: where the points come from, in words for the results.
        inputs: how what was given became these points; it is needed again for further ones.
        notes: what was found out about the points as they were read, for the user to know.
        names: of a table's columns, where they have any.
        id: the name of the column that numbers a table's rows, where there is one.
        validation: groups held out of training, (k * group_size, *shape): a rule judges them without labels.
        answers: what was observed of each group, where a rule has several possible answers (a sum): a list with None
            where nothing was, or how likely each answer is, (groups, answers).
        validation_answers: the same of the groups held out.
        occurring: which combinations of symbols occur in groups, where that is known: by them it is told what a rule
            can name. Training never looks.

    Example:
        >>> pairs = Dataset("pairs", torch.zeros(7, 1, 8, 8), torch.zeros(2, 1, 8, 8), group_size=2, groups=3)
        >>> pairs.grouped.shape, pairs.free.shape
        (torch.Size([3, 2, 1, 8, 8]), torch.Size([1, 1, 8, 8]))
    """

    name: str
    train: Points
    test: Points
    train_labels: Tensor | None = None
    test_labels: Tensor | None = None
    truth: NoisyCurve | None = None
    group_size: int = 1
    groups: int = 0
    source: str = ""
    validation: Points | None = None
    notes: tuple[str, ...] = ()
    inputs: Scaling | Pixels = field(default_factory=Scaling)
    names: tuple[str, ...] = ()
    id: str | None = None
    answers: Sequence[Any] | Tensor | None = None
    validation_answers: Sequence[Any] | Tensor | None = None
    occurring: Sequence[tuple[Any, ...]] | None = None

    def __post_init__(self) -> None:
        for part, x, labels in (
            ("training", self.train, self.train_labels),
            ("test", self.test, self.test_labels),
        ):
            if len(x.shape) < 2 or len(x) == 0:
                raise UserError(f"{part} data must be points (n, *shape) with n > 0, got shape {tuple(x.shape)}")
            if labels is not None and labels.shape != (len(x),):
                raise UserError(
                    f"{part} labels must be one for each of the {len(x)} points, got shape {tuple(labels.shape)}"
                )
            if labels is not None and not torch.isfinite(labels).all():
                raise UserError(f"{part} labels must be numbers, but some are NaN or infinite; give none, or mend them")
            _refuse_rows_that_are_not_finite(part, x)
        if self.train.shape[1:] != self.test.shape[1:]:
            raise UserError(
                f"training and test points must have one shape, got {tuple(self.train.shape[1:])} "
                f"and {tuple(self.test.shape[1:])}"
            )
        if self.group_size < 1 or self.groups < 0:
            raise UserError(
                f"group_size must be >= 1 and groups >= 0, got group_size {self.group_size} and groups {self.groups}"
            )
        if self.groups * self.group_size > len(self.train):
            raise UserError(
                f"{self.groups} groups of {self.group_size} need {self.groups * self.group_size} training points, "
                f"got {len(self.train)}; use at most {len(self.train) // self.group_size} groups"
            )
        held_out = 0 if self.validation is None else len(self.validation) // self.group_size
        for name, answers, groups in (
            ("answers", self.answers, self.groups),
            ("validation_answers", self.validation_answers, held_out),
        ):
            if answers is not None and len(answers) != groups:
                raise UserError(f"{name} must be one for each of {groups} groups, or None for it, got {len(answers)}")

    @property
    def clusters(self) -> int | None:
        """The number of true clusters, where labels say it."""
        return None if self.train_labels is None else len(torch.unique(self.train_labels))

    @property
    def grouped(self) -> Tensor:
        """The training points in groups, (groups, group_size, *shape)."""
        n = self.groups * self.group_size
        return self.train[:n].view(self.groups, self.group_size, *self.train.shape[1:])

    @property
    def free(self) -> Tensor:
        """The training points in no group, (n - groups * group_size, *shape)."""
        return self.train[self.groups * self.group_size :]


def _refuse_rows_that_are_not_finite(part: str, x: Points) -> None:
    if isinstance(x, StoredImages) and not x.stored.is_floating_point():
        return
    if is_sharded(x):  # looked through when they were opened, and once only
        return
    if x[:1].is_complex():
        raise UserError(f"{part} data must be real numbers, got {x[:1].dtype}; give real and imaginary part apart")
    bad = torch.cat([~torch.isfinite(rows.flatten(1)).all(dim=1) for rows in chunks(x, _CHUNK)])
    if bad.any():
        first = int(bad.nonzero()[0])
        raise UserError(
            f"{part} data must be finite: {int(bad.sum())} of {len(x)} rows hold NaN or infinity "
            f"(the first is row {first}); drop or fill those rows"
        )
    sizes = torch.cat([rows.flatten(1).abs().amax(dim=1) for rows in chunks(x, _CHUNK)])
    if sizes.max() > MOST:
        raise UserError(
            f"{part} data must be numbers up to {MOST:g}, which float32 can square, got {sizes.max():g} in row "
            f"{int(sizes.argmax())}; mend it, drop the row or rescale"
        )
