"""Rows of a table as the network sees them, and back."""

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from gedi.data.projection import Projection, projected

#: How columns are scaled: one factor for all, one for each, what their ranges speak for, or rows to one length first.
Columns = Literal["together", "apart", "auto", "cosine"]

_MOST, _ALIKE = 0.75, 0.25  # share of the columns, and of the greatest range
_LEAST = 1e-12  # of a spread: columns that never change stay where they are
_MANY, _EQUAL = 16, 0.01  # columns from which on rows of equal length are no accident; how far lengths may differ


@dataclass(frozen=True)
class Scaling:
    """Points ``(x - centre) / spread``: every column centred, all scaled by one common factor or each by its own.

    One factor keeps the shape of the data: which column matters more is theirs to say. Columns of different units say
    nothing of that kind, and get a factor each. Of embeddings only the direction counts: their rows are brought to one
    length first.

    Attributes:
        centre: (d,), or None: rows are points as they are.
        spread: the root mean square of the columns' deviations, or the deviation of each, (d,).
        length: that rows are brought to, all of them; None leaves them as long as they are. Then what comes back are
            rows of about that length.
        projection: of wide rows onto fewer axes, after all else; what comes back lies on the axes.

    Example:
        >>> rows = torch.tensor([[0.0, 10.0], [2.0, 30.0]])
        >>> scaling = Scaling.of(rows)
        >>> scaling.back(scaling(rows))
        tensor([[ 0., 10.],
                [ 2., 30.]])
    """

    centre: Tensor | None = None
    spread: float | Tensor = 1.0
    length: float | None = None
    projection: Projection | None = None

    @classmethod
    def of(cls, rows: Tensor, columns: Columns = "together", components: int | str | None = None) -> "Scaling":
        """The scaling under which these rows have their mean at 0 and a mean square of 1 in each column.

        Args:
            rows: (n, d).
            columns: ``together``, so that the mean square is 1 on average; ``apart``, in each; ``auto``, together if
                their ranges are alike, as those of columns of one unit, or all rows are of one length; ``cosine``,
                together, and all rows brought to their median length before: only their direction counts.
            components: axes that wide rows are brought to; ``auto`` for as many as stand out from noise.
        """
        if components is not None:
            plain = cls.of(rows, columns)
            return replace(plain, projection=projected(components, plain(rows)))
        if columns == "cosine":
            length = float(rows.norm(dim=1).median().clamp_min(_LEAST))
            return replace(cls.of(_brought_to(length, rows), "together"), length=length)
        deviations = rows.std(dim=0) if len(rows) > 1 else torch.zeros(rows.shape[1:])
        ranges = rows.amax(dim=0) - rows.amin(dim=0)
        if columns == "apart" or (columns == "auto" and not alike(ranges) and not _of_one_length(rows)):
            return cls(rows.mean(dim=0), torch.where(deviations > _LEAST, deviations, 1.0))
        return cls(rows.mean(dim=0), float(deviations.square().mean().sqrt().clamp_min(_LEAST)))

    @classmethod
    def mixed(
        cls, rows: Tensor, apart: Tensor, columns: Columns = "together", components: int | str | None = None
    ) -> "Scaling":
        r"""The scaling of rows some of whose columns stand for words: those count as much as they should, not more.

        Two different words are :math:`\sqrt{1/2}` standard deviations of a number apart. Standardised they would be two
        and more, and groups of one word a gap from each other that no number has.

        Args:
            rows: (n, d).
            apart: the distance of two different words in each column, (d,); 0 for a column of numbers.
            columns: as for :meth:`of`, for the columns of numbers.
            components: as for :meth:`of`.

        Source: the weight of categories in k-prototypes, Huang 1998.

        Example:
            >>> rows = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 1.0]])
            >>> x = Scaling.mixed(rows, torch.tensor([0.0, 2.0**0.5, 2.0**0.5]))(rows)
            >>> round(float((x[0, 1:] - x[1, 1:]).norm()), 4)
            0.7071
        """
        numbers = apart == 0
        if columns == "cosine" or not numbers.any() or numbers.all():
            return cls.of(rows, columns, components)
        of_numbers = cls.of(rows[:, numbers], columns)
        spread = torch.where(numbers, torch.ones_like(apart), apart / math.sqrt(0.5)).to(rows.dtype)
        spread[numbers] = torch.as_tensor(of_numbers.spread, dtype=rows.dtype)
        plain = cls(rows.mean(dim=0), spread)
        return plain if components is None else replace(plain, projection=projected(components, plain(rows)))

    def __call__(self, rows: Tensor) -> Tensor:
        """Points of rows, (n, d)."""
        if self.centre is None:
            return rows.float()
        rows = rows if self.length is None else _brought_to(self.length, rows)
        points = ((rows - self.centre) / self.spread).float()
        return points if self.projection is None else self.projection(points)

    @property
    def columns(self) -> int | None:
        """Of rows as they are given; None: as many as points have."""
        return None if self.centre is None else len(self.centre)

    def back(self, points: Tensor) -> Tensor:
        """Rows of points, (n, d)."""
        points = points if self.projection is None else self.projection.back(points)
        return points if self.centre is None else points * self.spread + self.centre


def _brought_to(length: float, rows: Tensor) -> Tensor:
    own: Tensor = rows.norm(dim=1, keepdim=True).clamp_min(_LEAST)
    return rows * (length / own)


def _of_one_length(rows: Tensor) -> bool:
    """Whether rows of many columns are all of about the same length, as directions are."""
    lengths = rows.norm(dim=1)
    return rows.shape[1] >= _MANY and bool(lengths.std(correction=0) <= _EQUAL * lengths.mean())


def alike(ranges: Tensor) -> bool:
    """Whether most of the columns that vary have a good part of the greatest range.

    Example:
        >>> alike(torch.tensor([1.0, 2.0, 0.0])), alike(torch.tensor([1.0, 200.0]))
        (True, False)
    """
    varying = ranges[ranges > _LEAST]
    return len(varying) == 0 or bool((varying >= _ALIKE * ranges.max()).double().mean() >= _MOST)
