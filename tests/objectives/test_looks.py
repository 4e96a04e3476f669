"""Terms that look at two views of the data: which views, and with which shares of the clusters."""

import pytest
import torch

from gedi import losses
from gedi.objectives.agreement import Agreement
from gedi.objectives.balance import Balance
from gedi.objectives.supervised import Supervised


def test_the_supervised_term_is_the_cross_entropy_of_both_views(seen, two_views, context):
    data, view = two_views(n=6)
    labels = torch.tensor([0, 3, 1, 1, 2, 0])
    value = Supervised(weight=1.0).bind(context())(seen(data, view, labels=labels))
    rows = [(view_, i) for view_ in (data, view) for i in range(6)]
    expected = -sum(logits.softmax(dim=1)[i, labels[i]].log().item() for logits, i in rows) / 12
    assert value.item() == pytest.approx(expected, rel=1e-10)


def test_balance_and_agreement_take_the_views_they_name(seen, two_views, context):
    data, view = two_views()
    prior = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    shown = seen(data, view)
    equal, by_prior = (Balance(weight=1.0).bind(context(log_shares=shares))(shown) for shares in (None, prior))
    torch.testing.assert_close(equal, losses.balance(torch.cat([data, view])))
    torch.testing.assert_close(by_prior, losses.balance(torch.cat([data, view]), prior.double()))
    assert (by_prior - equal).abs() > 1e-3
    of_view, of_walk = (Agreement(weight=1.0, look=look).bind(context())(shown) for look in ("view", "walk"))
    torch.testing.assert_close(of_view, losses.agreement(data, view))
    torch.testing.assert_close(of_walk, losses.agreement(data, view + 1))
