"""The ready-made constraints against their definitions."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gedi.errors import UserError
from gedi.logic import all_different, at_most_k, exactly_k, sorted_, sums_to

DOMAIN = [3, 0, 2, 7]  # not in order, and not its own numbers
RULES = {
    "all_different": (lambda n, k: all_different(n, DOMAIN), lambda v, k: len(set(v)) == len(v)),
    "sorted_": (
        lambda n, k: sorted_(n, DOMAIN),
        lambda v, k: all(DOMAIN.index(a) <= DOMAIN.index(b) for a, b in itertools.pairwise(v)),
    ),
    "strictly": (
        lambda n, k: sorted_(n, DOMAIN, strictly=True),
        lambda v, k: all(DOMAIN.index(a) < DOMAIN.index(b) for a, b in itertools.pairwise(v)),
    ),
    "sums_to": (lambda n, k: sums_to(n, DOMAIN, total=k), lambda v, k: sum(v) == k),
    "the last is the sum": (lambda n, k: sums_to(n - 1, DOMAIN), lambda v, k: sum(v[:-1]) == v[-1]),
    "exactly_k": (lambda n, k: exactly_k(n, k, DOMAIN, value=2), lambda v, k: v.count(2) == k),
    "at_most_k": (lambda n, k: at_most_k(n, k, DOMAIN, value=2), lambda v, k: v.count(2) <= k),
}


@pytest.mark.parametrize("name", RULES)
@given(n=st.integers(2, 4), k=st.integers(0, 9))
def test_a_ready_made_constraint_is_its_definition(name, n, k, agrees):
    make, rule = RULES[name]
    every = list(itertools.product(range(4), repeat=n))
    rows = [row for row in every if rule([DOMAIN[i] for i in row], k)]
    if len(rows) in (0, len(every)):
        with pytest.raises(UserError, match="every assignment" if rows else "no assignment"):
            make(n, k)
    else:
        agrees(make(n, k), rows)


def test_counts_beyond_listing_are_exact():
    assert all_different(10, range(10)).n_solutions == 3_628_800
    assert exactly_k(60, 30, [False, True]).n_solutions == 118_264_581_564_861_424
    assert sums_to(16, range(10)).n_solutions == sum(sums_to(16, range(10), total=t).n_solutions for t in range(10))


def test_words_are_sorted_in_the_order_of_their_domain():
    c = sorted_(2, ["small", "medium", "large"])
    assert c.is_satisfied([["small", "large"], ["large", "medium"]]).tolist() == [True, False]
