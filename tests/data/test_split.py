"""A fifth for the test: a partition, fair to every label, the same for ever."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from gedi.data.split import fifth


@given(st.lists(st.integers(0, 4), max_size=80))
def test_every_point_is_in_one_part_and_every_label_has_its_share(labels):
    y = torch.tensor(labels, dtype=torch.int64)
    train, test = fifth(len(y), y)
    assert sorted([*train.tolist(), *test.tolist()]) == list(range(len(y)))
    assert len(test) == len(y) // 5
    assert train.tolist() == sorted(train.tolist())
    assert test.tolist() == sorted(test.tolist())
    share = y[test].bincount(minlength=5) - y.bincount(minlength=5) / 5
    assert share.abs().max() < 1


def test_the_split_never_moves_and_is_no_rhythm():
    _, test = fifth(30)
    assert test.tolist() == [7, 17, 20, 21, 28, 29]
    _, many = fifth(10_000)
    assert (many % 5).bincount().min() > 340  # 400 each, were it not for chance


def test_a_seed_set_elsewhere_does_not_matter():
    torch.manual_seed(1)
    one = fifth(50)[1]
    torch.manual_seed(2)
    assert torch.equal(fifth(50)[1], one)
