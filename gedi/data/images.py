"""What a set of images is, before anything is drawn from it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gedi.errors import UserError


@dataclass(frozen=True)
class ImageSet:
    """Train and test images, with their labels where there are any, in the order of their files.

    Attributes:
        name: what the set is called.
        train: (n, channels, height, width), uint8 as in the files or float in [0, 1].
        train_labels: (n,) int64, or None.
        test: (m, channels, height, width).
        test_labels: (m,) int64, or None.
        exact: whether every byte is known to be the official one.
        source: where it comes from, in words for the results.
    """

    name: str
    train: Tensor
    train_labels: Tensor | None
    test: Tensor
    test_labels: Tensor | None
    exact: bool
    source: str

    def __post_init__(self) -> None:
        for part, images, labels in (
            ("training", self.train, self.train_labels),
            ("test", self.test, self.test_labels),
        ):
            if images.dim() != 4:
                raise UserError(
                    f"{self.name}: {part} images must be (n, channels, height, width), got {tuple(images.shape)}"
                )
            if labels is not None and labels.shape != (len(images),):
                raise UserError(
                    f"{self.name}: {part} images must have one label each, got {len(images)} images "
                    f"and labels of shape {tuple(labels.shape)}; get all its files from one place"
                )
        if self.train.shape[1:] != self.test.shape[1:] or self.train.dtype != self.test.dtype:
            raise UserError(
                f"{self.name}: training and test images must be alike, got {tuple(self.train.shape[1:])} in "
                f"{self.train.dtype} and {tuple(self.test.shape[1:])} in {self.test.dtype}"
            )

    def labels(self) -> tuple[Tensor, Tensor]:
        """The labels of both parts, for what cannot do without them.

        Example:
            >>> x = torch.zeros(2, 1, 8, 8)
            >>> ImageSet("bare", x, None, x, None, False, "made here").labels()
            Traceback (most recent call last):
            gedi.errors.UserError: bare must have labels for every image, but has none; put each class into a ...
        """
        if self.train_labels is None or self.test_labels is None:
            raise UserError(
                f"{self.name} must have labels for every image, but has none; put each class into a folder of its own, "
                "or store them as y beside x"
            )
        return self.train_labels, self.test_labels


def unit_range(images: Tensor) -> Tensor:
    """Images as float32 in [0, 1]: uint8 is divided by 255, floats are taken to be there already.

    Example:
        >>> unit_range(torch.tensor([0, 51, 255], dtype=torch.uint8)).tolist()
        [0.0, 0.20000000298023224, 1.0]
    """
    return images.float() / 255 if images.dtype == torch.uint8 else images.float()
