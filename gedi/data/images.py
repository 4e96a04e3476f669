"""What a set of labelled images is, before anything is drawn from it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gedi.errors import UserError


@dataclass(frozen=True)
class ImageSet:
    """Train and test images with their labels, in the order of their files.

    Attributes:
        name: what the set is called.
        train: (n, channels, height, width), uint8 as in the files or float in [0, 1].
        train_labels: (n,) int64.
        test: (m, channels, height, width).
        test_labels: (m,) int64.
        exact: whether every byte is known to be the official one.
        source: where it comes from, in words for the results.
    """

    name: str
    train: Tensor
    train_labels: Tensor
    test: Tensor
    test_labels: Tensor
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
            if labels.shape != (len(images),):
                raise UserError(
                    f"{self.name}: {part} images must have one label each, got {len(images)} images "
                    f"and labels of shape {tuple(labels.shape)}; get all its files from one place"
                )


def unit_range(images: Tensor) -> Tensor:
    """Images as float32 in [0, 1]: uint8 is divided by 255, floats are taken to be there already.

    Example:
        >>> unit_range(torch.tensor([0, 51, 255], dtype=torch.uint8)).tolist()
        [0.0, 0.20000000298023224, 1.0]
    """
    return images.float() / 255 if images.dtype == torch.uint8 else images.float()
