"""Columns that stand for words beside columns of numbers."""

import pytest
import torch

from gedi.data import Scaling


@pytest.mark.parametrize("columns", ["together", "apart", "auto"])
def test_words_are_as_far_apart_as_they_should_whatever_the_numbers(g, columns):
    numbers = torch.randn(200, 2, generator=g) * torch.tensor([1.0, 50.0])
    kind = torch.nn.functional.one_hot(torch.arange(200) % 3, 3).float()
    told = (torch.arange(200) % 2).float()[:, None]  # true or false
    apart = torch.tensor([0, 0, 2**0.5, 2**0.5, 2**0.5, 1])
    rows = torch.cat([numbers, kind, told], dim=1)
    scaling = Scaling.mixed(rows, apart, columns)
    x = scaling(rows)
    torch.testing.assert_close(x[:, :2], Scaling.of(numbers, columns)(numbers))  # as without words
    torch.testing.assert_close(torch.cdist(x[:3, 2:5], x[:3, 2:5]).max(), torch.tensor(0.5**0.5))
    torch.testing.assert_close((x[0, 5] - x[1, 5]).abs(), torch.tensor(0.5**0.5))
    torch.testing.assert_close(scaling.back(x), rows, atol=1e-4, rtol=1e-4)


def test_words_alone_and_numbers_alone_are_scaled_as_ever(g):
    rows = torch.randn(50, 3, generator=g)
    for apart in (torch.zeros(3), torch.ones(3)):
        torch.testing.assert_close(Scaling.mixed(rows, apart, "apart")(rows), Scaling.of(rows, "apart")(rows))
    some = torch.tensor([0.0, 1.0, 0.0])
    torch.testing.assert_close(Scaling.mixed(rows, some, "cosine")(rows), Scaling.of(rows, "cosine")(rows))
