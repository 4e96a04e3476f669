"""Probabilities by sampling: the interval holds the truth as often as it says."""

import pytest
import torch

from gedi.errors import UserError
from gedi.logic import Constraint, estimate


def inputs(groups, sizes, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(groups, len(sizes), max(sizes), generator=g, dtype=torch.float64).log_softmax(-1)


@pytest.mark.parametrize("rule", [lambda a, b, c: a + b == c, lambda a, b, c: a in (b, c)], ids=["columns", "single"])
def test_the_interval_misses_no_more_often_than_it_says(rule):
    domains = [range(4)] * 3
    log_p = inputs(60, [4, 4, 4])
    exact = Constraint.from_predicate(rule, domains).log_prob(log_p).exp()
    found = estimate(rule, domains, log_p, 400, delta=0.1, generator=torch.Generator().manual_seed(1))
    missed = (exact < found.low) | (exact > found.high)
    assert missed.sum() <= 12  # 6 are expected at most; 13 or more have a chance below 1 %
    assert ((found.low <= found.value) & (found.value <= found.high)).all()
    sharper = estimate(rule, domains, log_p[:5], 20_000, delta=0.1, generator=torch.Generator().manual_seed(2))
    assert (sharper.high - sharper.low < 0.02).all()
    torch.testing.assert_close(sharper.value, exact[:5], atol=0.02, rtol=0)


def test_what_always_or_never_happens_keeps_an_open_side():
    log_p = inputs(2, [3, 3])
    never = estimate(lambda a, b: a > 5, [range(3)] * 2, log_p, 100)
    assert never.low.tolist() == [0, 0]
    assert 0 < float(never.high[0]) < 0.1
    always = estimate(lambda a, b: a >= 0, [range(3)] * 2, log_p, 100)
    assert always.high.tolist() == [1, 1]
    assert 0.9 < float(always.low[0]) < 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rule": 3}, "must be a function"),
        ({"n": 0}, "n must be"),
        ({"delta": 2.0}, "delta must be"),
        ({"log_p": torch.zeros(1, 2, 3)}, "add up to"),
        ({"log_p": torch.zeros(1, 3, 3)}, "must be"),
        ({"rule": lambda a: True}, "but failed"),
    ],
)
def test_mistakes_are_named(changes, said):
    usual = {"rule": lambda a, b: a == b, "domains": [range(3)] * 2, "log_p": inputs(1, [3, 3]), "n": 10}
    with pytest.raises(UserError, match=said):
        estimate(**(usual | changes))
