"""Counts of shortcuts within a stated share, against exact ones."""

import math

import numpy as np
import pytest

from gedi.errors import UserError
from gedi.logic import Constraint, all_different, count_shortcuts, sorted_, sums_to

EPSILON, DELTA = 0.4, 0.05


def random_rule(seed):
    """A rule of a few random solutions: from one shortcut to hundreds."""
    rng = np.random.default_rng(seed)
    symbols, variables = int(rng.integers(4, 6)), int(rng.integers(2, 4))
    every = np.stack(np.unravel_index(np.arange(symbols**variables), [symbols] * variables), axis=1)
    few = int(rng.integers(2, 7))
    rows = every[rng.permutation(len(every))[:few]]
    return Constraint.from_solutions([tuple(map(int, row)) for row in rows], [range(symbols)] * variables)


def test_fifty_rules_are_counted_within_epsilon_as_often_as_delta_says():
    missed, walked = [], 0
    for seed in range(50):
        rule = random_rule(seed)
        exact = rule.shortcuts()
        assert exact.exact
        found = count_shortcuts(
            rule, EPSILON, DELTA, listed=1, seed=seed, seconds=600
        )  # nothing may be listed: all are walks
        walked += not found.exact
        if not (1 - EPSILON) * exact.count <= found.maps <= (1 + EPSILON) * exact.count:
            missed.append(seed)
        assert found.low <= found.maps <= found.high
    assert walked == 50
    assert len(missed) <= 5  # 2.5 of 50 are allowed on average


@pytest.mark.parametrize(
    ("rule", "count"),
    [
        (all_different(6, range(6)), math.factorial(6)),
        (Constraint.from_predicate(lambda a, b: a == b, [range(7)] * 2), 7**7),  # every map keeps it
        (sorted_(2, range(7)), math.comb(13, 6)),  # rising maps
    ],
)
def test_known_counts_too_many_to_list(rule, count):
    found = count_shortcuts(rule, 0.3, listed=300, seconds=600)
    assert not found.exact
    assert found.low <= count <= found.high


def test_few_are_counted_exactly():
    found = count_shortcuts(sums_to(2, range(10)))
    assert (found.maps, found.exact, found.walks) == (2, True, 0)
    total = Constraint.from_function(lambda a, b: a + b, [range(3)] * 2)
    assert count_shortcuts(total, answers=[2]).maps == total.shortcuts(answers=[2]).count == 3
    pairs = [(0, 0), (0, 1), (1, 1)]
    small = Constraint.from_function(lambda a, b: a + b, [range(4)] * 2)
    assert count_shortcuts(small, data=pairs).maps == small.shortcuts(data=pairs).count


def test_two_kinds_of_symbols_have_a_map_each():
    rule = Constraint.from_predicate(lambda a, b: a < 3, [range(4), range(5)])
    exact = rule.shortcuts(limit=10**6)
    found = count_shortcuts(rule, 0.2, listed=1, seconds=600)
    assert exact.exact
    assert not found.exact
    assert found.low <= exact.count <= found.high


def test_the_same_seed_gives_the_same_count():
    rule = sorted_(2, range(5))
    first, again, other = (count_shortcuts(rule, listed=10, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first.walks != other.walks


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: count_shortcuts(None), "needs a Constraint, got NoneType"),
        (lambda: count_shortcuts(sums_to(2, range(4)), 1.5), "epsilon must be between 0 and 1, got 1.5"),
        (lambda: count_shortcuts(sums_to(2, range(4)), 0.2, 0), "delta must be between 0 and 1, got 0"),
        (lambda: count_shortcuts(sums_to(2, range(4)), seconds=0), "seconds must be a number above 0, got 0"),
        (lambda: count_shortcuts(sorted_(2, range(9)), 0.01, listed=1, seconds=0.001), "out of reach"),
    ],
)
def test_what_cannot_be_counted_is_refused(ask, message):
    with pytest.raises(UserError, match=message):
        ask()
