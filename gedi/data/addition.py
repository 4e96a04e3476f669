"""Addition: triplets of digit images where the third is the sum of the first two, and nobody says which digits."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gedi.data.dataset import Dataset
from gedi.data.digits import load_digits
from gedi.data.files import load_images
from gedi.data.images import ImageSet
from gedi.data.pixels import Pixels, StoredImages
from gedi.errors import UserError, unknown

#: The 55 pairs of digits whose sum is a digit.
PAIRS = torch.tensor([(a, b) for a in range(10) for b in range(10) if a + b <= 9])

_SOURCES: dict[str, Callable[[str | Path | None], ImageSet]] = {
    "mnist": lambda data_dir: load_images("mnist", data_dir),
    "digits": lambda _: load_digits(),
}

AS_STORED = Pixels()  # bytes to [0, 1] and nothing else


def digit_source(source: str, data_dir: str | Path | None = None) -> ImageSet:
    """Images of digits by the name of where they come from."""
    if source not in _SOURCES:
        raise unknown("source of digits", source, _SOURCES)
    return _SOURCES[source](data_dir)


def draw_triplets(labels: Tensor, n: int, rng: np.random.Generator) -> Tensor:
    """Indices (n, 3) of images with labels a, b and a + b, no image twice.

    Each pair (a, b) is uniform over the 55 with ``a + b <= 9``, the images are uniform among those of their label.
    Of three images, digit d is then ``(21 - d) / 55`` on average, so zeros are the first to run out.

    Args:
        labels: (m,) the digit of each image.
        n: how many triplets.
        rng: everything drawn follows from it.

    Example:
        >>> labels = torch.arange(10).repeat(100)
        >>> triplets = draw_triplets(labels, 50, np.random.default_rng(0))
        >>> a, b, c = labels[triplets].T
        >>> triplets.shape, torch.equal(a + b, c)
        (torch.Size([50, 3]), True)
    """
    if n < 1:
        raise UserError(f"the number of triplets must be >= 1, got {n}")
    if len(labels) == 0 or int(labels.min()) < 0 or int(labels.max()) > 9:
        raise UserError(f"labels must be digits 0 to 9, got {torch.unique(labels).tolist()[:12]}")
    pair = PAIRS[torch.from_numpy(rng.integers(0, len(PAIRS), n))]  # (n, 2)
    wanted = torch.cat([pair, pair.sum(dim=1, keepdim=True)], dim=1).flatten()  # (3 n,) digits
    chosen = torch.empty(3 * n, dtype=torch.int64)
    for digit in range(10):
        places, pool = (wanted == digit).nonzero()[:, 0], (labels == digit).nonzero()[:, 0]
        if len(places) > len(pool):
            raise UserError(
                f"{n} triplets need {len(places)} images of digit {digit}, no image twice, but there are "
                f"{len(pool)}; use at most about {_most_triplets(labels)} triplets"
            )
        chosen[places] = pool[torch.from_numpy(rng.permutation(len(pool))[: len(places)])]
    return chosen.view(n, 3)


def _most_triplets(labels: Tensor) -> int:
    """The most triplets that three standard deviations of the draw leave room for."""
    counts = torch.bincount(labels, minlength=10).tolist()
    room = [((math.sqrt(9 + 4 * count) - 3) / 2) ** 2 for count in counts]  # x + 3 sqrt(x) = count
    return int(min(55 / (21 - digit) * x for digit, x in enumerate(room)))


def free_images(labels: Tensor, taken: Tensor, n: int | None, rng: np.random.Generator) -> Tensor:
    """Indices (n,) of n further images, uniform among those that are not in ``taken``, no image twice; None: all.

    Example:
        >>> free_images(torch.zeros(5), torch.tensor([[0, 3, 1]]), 2, np.random.default_rng(0)).sort().values
        tensor([2, 4])
    """
    left = torch.ones(len(labels), dtype=torch.bool)
    left[taken.flatten()] = False
    pool = left.nonzero()[:, 0]
    n = len(pool) if n is None else n
    if not 0 <= n <= len(pool):
        raise UserError(f"the number of free images must be 0 to {len(pool)}, the images left by triplets, got {n}")
    return pool[torch.from_numpy(rng.permutation(len(pool))[:n])]


def addition_dataset(
    source: str,
    n_triplets: int,
    n_free: int | None,
    rng: np.random.Generator,
    data_dir: str | Path | None = None,
    *,
    n_validation: int = 0,
    pixels: Pixels = AS_STORED,
) -> Dataset:
    """Images of an addition task: triplet after triplet, then free ones.

    The test part is the whole test set of the source. Training labels are kept for diagnostics and for the
    supervised upper bound; learning by the rule never sees them.

    Args:
        source: ``mnist`` (28 x 28, from files) or ``digits`` (8 x 8, comes with scikit-learn).
        n_triplets: triplets to train on.
        n_free: further images that are in no triplet; None: all that are left.
        rng: everything drawn follows from it.
        data_dir: where the files of ``mnist`` are, see ``load_images``.
        n_validation: further triplets of training images, held out: settings are chosen on them.
        pixels: how stored images become points.

    Example:
        >>> data = addition_dataset("digits", 100, 50, np.random.default_rng(0))
        >>> data.train.shape, data.groups, data.group_size
        (torch.Size([350, 1, 8, 8]), 100, 3)
        >>> a, b, c = data.train_labels[:300].view(100, 3).T
        >>> torch.equal(a + b, c)
        True
    """
    images = digit_source(source, data_dir)
    train_labels, test_labels = images.labels()
    drawn = draw_triplets(train_labels, n_triplets + n_validation, rng)
    triplets, held_out = drawn[:n_triplets], drawn[n_triplets:]
    free = free_images(train_labels, drawn, n_free, rng)
    order = torch.cat([triplets.flatten(), free])
    return Dataset(
        f"{source}-addition",
        StoredImages(images.train[order], pixels),
        StoredImages(images.test, pixels),
        train_labels[order],
        test_labels,
        group_size=3,
        groups=n_triplets,
        source=images.source,
        validation=StoredImages(images.train[held_out.flatten()], pixels) if n_validation else None,
        inputs=pixels,
    )
