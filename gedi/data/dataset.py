"""What a data set is: points to train on, points to test on, and what is known of them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gedi.data.toy import NoisyCurve
from gedi.errors import UserError


@dataclass(frozen=True)
class Dataset:
    """Train and test points with labels where there are any.

    Attributes:
        name: what it is called in results.
        train: (n, d); labels are for pictures and diagnostics, training never sees them.
        test: (m, d).
        train_labels: (n,) or None.
        test_labels: (m,) or None.
        truth: the density the points were drawn from, where it is known.
    """

    name: str
    train: Tensor
    test: Tensor
    train_labels: Tensor | None = None
    test_labels: Tensor | None = None
    truth: NoisyCurve | None = None

    def __post_init__(self) -> None:
        for part, x in (("training", self.train), ("test", self.test)):
            if x.dim() != 2 or len(x) == 0:
                raise UserError(f"{part} data must be a table (rows, columns), got shape {tuple(x.shape)}")
            bad = ~torch.isfinite(x).all(dim=1)
            if bad.any():
                first = int(bad.nonzero()[0])
                raise UserError(
                    f"{part} data must be finite: {int(bad.sum())} of {len(x)} rows hold NaN or infinity "
                    f"(the first is row {first}); drop or fill those rows"
                )

    @property
    def clusters(self) -> int | None:
        """The number of true clusters, where labels say it."""
        return None if self.train_labels is None else len(torch.unique(self.train_labels))
