"""What a data set accepts."""

import pytest
import torch

from gedi.data import Dataset, ImageSet
from gedi.errors import UserError


@pytest.mark.parametrize("shape", [(3,), (1, 8, 8), (3, 4, 4)])
def test_points_may_have_any_shape(shape):
    data = Dataset("x", torch.rand(8, *shape), torch.rand(2, *shape), group_size=3, groups=2)
    assert torch.equal(data.grouped.flatten(0, 1), data.train[:6])
    assert torch.equal(data.grouped[1, 0], data.train[3])
    assert torch.equal(data.free, data.train[6:])


def test_a_table_has_no_groups_unless_it_says_so():
    data = Dataset("x", torch.rand(8, 3), torch.rand(2, 3))
    assert (data.group_size, data.groups, data.source) == (1, 0, "")
    assert data.grouped.shape == (0, 1, 3)
    assert torch.equal(data.free, data.train)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("part", ["training", "test"])
def test_images_that_are_not_finite_are_counted_and_named(value, part):
    good, bad = torch.zeros(9000, 1, 2, 2), torch.zeros(9000, 1, 2, 2)
    bad[8500, 0, 1, 1] = bad[8700, 0, 0, 0] = value
    with pytest.raises(UserError, match=rf"{part} data .* 2 of 9000 rows .* row 8500"):
        Dataset("x", *((bad, good) if part == "training" else (good, bad)))


X = torch.zeros(7, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": torch.zeros(7)}, r"training data must be points .* got shape \(7,\)"),
        ({"test": torch.zeros(0, 2)}, r"test data must be points .* got shape \(0, 2\)"),
        ({"test": torch.zeros(7, 3)}, r"must have one shape, got \(2,\) and \(3,\)"),
        ({"train_labels": torch.zeros(6)}, r"training labels must be one for each of the 7 points, got shape \(6,\)"),
        ({"test_labels": torch.zeros(7, 1)}, r"test labels must be one for each of the 7"),
        ({"group_size": 0}, "group_size must be >= 1"),
        ({"groups": -1}, "groups >= 0, got group_size 1 and groups -1"),
        ({"groups": 3, "group_size": 3}, "3 groups of 3 need 9 training points, got 7; use at most 2 groups"),
    ],
)
def test_what_does_not_fit_together_is_refused(change, message):
    with pytest.raises(UserError, match=message):
        Dataset(**{"name": "x", "train": X, "test": X, **change})


def test_groups_may_take_every_point():
    assert len(Dataset("x", torch.zeros(6, 2), X, group_size=3, groups=2).free) == 0


def test_images_must_be_images():
    with pytest.raises(UserError, match=r"test images must be \(n, channels, height, width\), got \(2, 8, 8\)"):
        ImageSet("x", torch.zeros(2, 1, 8, 8), torch.zeros(2), torch.zeros(2, 8, 8), torch.zeros(2), True, "")
