"""The small digits that come with scikit-learn: no download, minutes instead of hours."""

import torch
from sklearn import datasets
from sklearn.model_selection import train_test_split

from gedi.data.images import ImageSet

_TEST = 500
_SPLIT_SEED = 0  # its own: another seed of a run must not move test images into training


def load_digits() -> ImageSet:
    """1797 handwritten digits of 8 x 8 pixels in [0, 1]: 1297 to train on, 500 to test on, always the same ones.

    Every digit has the same share of both parts. E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten
    Digits, UCI 1998; scikit-learn holds its test part.

    Example:
        >>> digits = load_digits()
        >>> digits.train.shape, digits.test.shape, digits.train.max().item()
        (torch.Size([1297, 1, 8, 8]), torch.Size([500, 1, 8, 8]), 1.0)
    """
    pixels, labels = datasets.load_digits(return_X_y=True)  # (1797, 64) of 0 .. 16
    train, test = train_test_split(range(len(labels)), test_size=_TEST, stratify=labels, random_state=_SPLIT_SEED)
    images = torch.tensor(pixels / 16, dtype=torch.float32).view(-1, 1, 8, 8)
    y = torch.tensor(labels, dtype=torch.int64)
    return ImageSet(
        "digits", images[train], y[train], images[test], y[test], True, "digits, as scikit-learn ships them"
    )
