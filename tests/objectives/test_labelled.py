"""A few labels beside a rule."""

import pytest
import torch
import torch.nn.functional as F

from gedi.errors import UserError
from gedi.objectives.labelled import Labelled
from gedi.objectives.objective import Seen
from gedi.types import Clustered


def test_the_cross_entropy_is_of_the_last_rows_alone(context):
    data, view = (torch.randn(10, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    labels = torch.tensor([2, 0, 3])
    seen = Seen(Clustered(data, data, data), {"view": Clustered(view, view, view)}, 0.5, 6, few=labels)
    loss = Labelled(weight=1).bind(context())(seen)
    expected = (F.cross_entropy(data[-3:], labels) + F.cross_entropy(view[-3:], labels)) / 2
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert not data.grad[:-3].any()
    assert (data.grad[-3:].abs().sum(dim=1) > 0).all()


def test_without_labels_it_is_refused(context):
    with pytest.raises(UserError, match=r"see data\.label_these"):
        Labelled(weight=1).bind(context(few=None))
