"""Listing what a rule allows."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gedi.errors import UserError
from gedi.logic import Constraint, predicate
from gedi.logic.predicate import satisfying


def listed(rule, domains):
    return sorted(tuple(d[k] for d, k in zip(domains, row, strict=True)) for row in satisfying(rule, domains))


RULES = {
    "columns": lambda a, b: a + b == 3,
    "joined columns": lambda a, b: (a < b) & (a != 1) | (b == 0),
    "and": lambda a, b: a < b and a != 1,
    "chained": lambda a, b: 0 < a <= b,
    "in": lambda a, b: (a, b) in {(1, 2), (2, 1)},
    "if": lambda a, b: a == 0 if b == 0 else a > b,
    "bits": lambda a, b: (a & 1) == (b & 1),
    "shifted": lambda a, b: a ^ b == 3,
    "power": lambda a, b: (a + 7) ** (b + 30) % 5 == 1,  # beyond 64 bits
    "none": lambda a, b: None if a == b else True,
    "first": lambda a, b: [a, b] == sorted([a, b]),
    "divided": lambda a, b: a // b == 1,
    "remainder": lambda a, b: a % b == 0,
    "count": lambda a, b: (a == 1) + (b == 1) == 1,
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_in_plain_python_allows_what_python_says(name):
    domains = [range(5), range(4)]

    def holds(row):
        try:
            return bool(RULES[name](*row))
        except ZeroDivisionError:
            return False

    assert listed(RULES[name], domains) == [row for row in itertools.product(*domains) if holds(row)]


@given(values=st.lists(st.integers(-(10**12), 10**12), min_size=2, max_size=4, unique=True))
def test_numbers_do_not_overflow(values):
    assert listed(lambda a, b: a * b * a * b == b * b * a * a, [values] * 2) == sorted(
        itertools.product(values, values)
    )
    assert listed(lambda a, b: a * a * a > b * b * b, [values] * 2) == [
        (a, b) for a in sorted(values) for b in sorted(values) if a > b
    ]


def test_a_rare_division_by_zero_is_not_overlooked():
    domains = [range(300), range(300)]
    rule = lambda a, b: a // b == 0  # noqa: E731
    assert len(satisfying(rule, domains)) == sum(a < b for a, b in itertools.product(*domains))
    columns = [np.array(domains[0]), np.array([0] * 300)]
    with np.errstate(all="ignore"):
        assert rule(*columns).all()  # what NumPy's own integers would have said


def test_whole_columns_are_asked_in_one_call():
    calls = []

    def rule(a, b):
        calls.append(1)
        return a + b == 7

    assert len(satisfying(rule, [range(100)] * 2)) == 8
    assert len(calls) <= 70  # one reading, one for the columns, 64 to check them


def test_an_operator_that_means_something_else_on_columns_is_found_out():
    pairs = [(0, 1), (1, 0), (1, 1)]
    rule = lambda a, b: a[0] == b  # noqa: E731  # the first member, not the first row
    assert listed(rule, [pairs, [0, 1]]) == [((0, 1), 0), ((1, 0), 1), ((1, 1), 1)]


def test_values_may_be_tuples_or_words():
    pairs = [(0, 1), (1, 0), (1, 1)]
    assert listed(lambda a, b: a == b, [pairs] * 2) == [(p, p) for p in pairs]
    assert listed(lambda a, b: a + b == "xy", ["xyz", "xyz"]) == [("x", "y")]


def test_too_many_assignments_are_not_asked(monkeypatch):
    assert satisfying(lambda *x: sum(x) == 3, [range(10)] * 7) is None
    monkeypatch.setattr(predicate, "CALLED", 10)
    assert satisfying(lambda a, b: a == 1 and b == 1, [range(4)] * 2) is None
    assert len(satisfying(lambda a, b: a == b, [range(4)] * 2)) == 4


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda a: a == 1, "must take 2 values.*takes 1 positional argument but 2 were given"),
        (lambda a, b, c: a == 1, "must take 2 values.*missing 1 required"),
        (lambda a, b: a - b, r"must say True or False, got -?\d for"),
        (lambda a, b: a == 1 and ~(b == 1), "write not for ~"),
    ],
)
def test_a_rule_that_is_none_is_refused(rule, message):
    with pytest.raises(UserError, match=message):
        Constraint.from_predicate(rule, [range(4)] * 2)


def test_many_solutions_become_a_diagram_and_few_a_list():
    few = Constraint.from_predicate(lambda a, b, c: a + b == c, [range(10)] * 3)
    many = Constraint.from_predicate(lambda a, b, c, d, e: a + b + c + d != e, [range(8)] * 5)
    assert few.size == few.n_solutions * 4
    assert many.n_solutions > 30_000
    assert many.size < 1_000
