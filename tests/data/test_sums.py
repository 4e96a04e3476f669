"""Images of two numbers with their sum."""

import numpy as np
import pytest
import torch

from gedi.data import fingerprint, sum_dataset
from gedi.data.fingerprint import differences
from gedi.data.sums import totals
from gedi.errors import UserError


@pytest.mark.parametrize("digits", [1, 2])
def test_answers_are_the_sums_of_the_numbers_in_the_images(digits):
    data = sum_dataset("digits", 60, digits, 20, np.random.default_rng(0), n_validation=10)
    size = 2 * digits
    assert (data.groups, data.group_size) == (60, size)
    assert data.train.shape == (60 * size + 20, 1, 8, 8)
    shown = data.train_labels[: 60 * size].view(60, 2, digits)
    numbers = sum(shown[..., i] * 10 ** (digits - 1 - i) for i in range(digits))
    assert data.answers == numbers.sum(dim=1).tolist()
    assert len(data.validation_answers) == 10
    assert len(data.validation) == 10 * size
    flat = data.train[:].flatten(1)
    assert len(torch.unique(torch.cat([flat, data.validation[:].flatten(1)]), dim=0)) > 0.95 * (len(flat) + 10 * size)


def test_the_same_stream_draws_the_same_and_other_answers_show():
    one, two = (sum_dataset("digits", 30, 1, 0, np.random.default_rng(0)) for _ in range(2))
    assert torch.equal(one.train[:], two.train[:])
    assert differences(fingerprint(one), fingerprint(two)) == []
    other = fingerprint(one) | {"answers": "0"}
    assert differences(fingerprint(one), other) == ["other answers of the groups"]


def test_a_long_sum():
    assert totals(torch.tensor([[9, 9, 9, 9, 9, 8], [0, 0, 1, 0, 0, 2]])) == [999 + 998, 3]


def test_more_images_than_there_are_is_refused():
    with pytest.raises(UserError, match="use at most 648 pairs"):
        sum_dataset("digits", 5000, 1, 0, np.random.default_rng(0))
