"""The test part of data that comes without one: a fifth, always the same."""

import torch
from torch import Tensor

_SEED = 0  # its own: another seed of a run must not move test images into training


def fifth(n: int, labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Indices of the training and of the test part of n points, each in rising order; every label has its share.

    Points are shuffled, sorted by label where there are labels, and every fifth is a test point. Fewer than five
    points have no test part.

    Example:
        >>> train, test = fifth(10, torch.tensor([0, 1] * 5))
        >>> len(train), (test % 2).tolist()
        (8, [0, 1])
    """
    order = torch.randperm(n, generator=torch.Generator().manual_seed(_SEED))
    if labels is not None:
        order = order[torch.argsort(labels[order], stable=True)]
    is_test = torch.zeros(n, dtype=torch.bool)
    is_test[order[4::5]] = True
    return (~is_test).nonzero()[:, 0], is_test.nonzero()[:, 0]
