"""Sums: images of the digits of two numbers, and what the numbers add up to; nobody says which digits they are."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gedi.data.addition import AS_STORED, digit_source
from gedi.data.dataset import Dataset
from gedi.data.pixels import Pixels, StoredImages
from gedi.errors import UserError


def totals(digits: Tensor) -> list[int]:
    """What the two numbers of each row of digits, (n, 2 k), most significant first, add up to.

    Example:
        >>> totals(torch.tensor([[1, 2, 3, 4]]))                       # 12 + 34
        [46]
    """
    k = digits.shape[1] // 2
    place = torch.tensor([10 ** (k - 1 - i) for i in range(k)])
    numbers = digits.view(len(digits), 2, k).long() @ place
    return [int(x) for x in numbers.sum(dim=1)]


def sum_dataset(
    source: str,
    n_pairs: int,
    digits: int,
    n_free: int,
    rng: np.random.Generator,
    data_dir: str | Path | None = None,
    *,
    n_validation: int = 0,
    pixels: Pixels = AS_STORED,
) -> Dataset:
    """Pairs of numbers in images, with their sums as answers: group after group, then free images; no image twice.

    The test part is the whole test set of the source. Training labels are kept for diagnostics and the supervised upper
    bound; learning by sums never sees them.

    Args:
        source: ``mnist`` (28 x 28, from files) or ``digits`` (8 x 8, comes with scikit-learn).
        n_pairs: pairs of numbers to train on.
        digits: digits of each number.
        n_free: further images that are in no pair.
        rng: everything drawn follows from it.
        data_dir: where the files of ``mnist`` are, see ``load_images``.
        n_validation: further pairs, held out.
        pixels: how stored images become points.

    Example:
        >>> data = sum_dataset("digits", 100, 1, 0, np.random.default_rng(0))
        >>> data.train.shape, data.groups, data.group_size
        (torch.Size([200, 1, 8, 8]), 100, 2)
        >>> data.answers == totals(data.train_labels.view(100, 2))
        True
    """
    images = digit_source(source, data_dir)
    train_labels, test_labels = images.labels()
    size, groups = 2 * digits, n_pairs + n_validation
    if groups * size + n_free > len(train_labels):
        most = (len(train_labels) - n_free) // size - n_validation
        raise UserError(
            f"{groups} pairs of {digits}-digit numbers and {n_free} free images need {groups * size + n_free} images, "
            f"no image twice, but there are {len(train_labels)}; use at most {max(most, 0)} pairs"
        )
    drawn = torch.from_numpy(rng.permutation(len(train_labels))[: groups * size + n_free])
    held_out = drawn[n_pairs * size : groups * size]
    order = torch.cat([drawn[: n_pairs * size], drawn[groups * size :]])
    return Dataset(
        f"{source}-sum",
        StoredImages(images.train[order], pixels),
        StoredImages(images.test, pixels),
        train_labels[order],
        test_labels,
        group_size=size,
        groups=n_pairs,
        source=images.source,
        validation=StoredImages(images.train[held_out], pixels) if n_validation else None,
        inputs=pixels,
        answers=_answers(train_labels[order[: n_pairs * size]], size),
        validation_answers=_answers(train_labels[held_out], size) if n_validation else None,
    )


def _answers(labels: Tensor, size: int) -> Sequence[int]:
    return totals(labels.view(-1, size))
