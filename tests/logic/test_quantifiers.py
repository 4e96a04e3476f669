"""If-then-else and quantifiers: the same in every way a rule is read."""

import itertools

import numpy as np
import pytest

from gedi.errors import UserError
from gedi.logic import Constraint, count, exists, for_all, if_then_else, predicate

DOMAINS = [range(3)] * 4
RULES = {
    "numbers": (
        lambda a, b, c, d: if_then_else(a > b, c + d, c - d) == 1,
        lambda a, b, c, d: (c + d if a > b else c - d) == 1,
    ),
    "conditions": (
        lambda a, b, c, d: if_then_else(a == b, c < d, c == 2) & (d != 1),
        lambda a, b, c, d: (c < d if a == b else c == 2) and d != 1,
    ),
    "negated": (
        lambda a, b, c, d: ~if_then_else(a == b, c < d, c == 2),
        lambda a, b, c, d: not (c < d if a == b else c == 2),
    ),
    "nested": (
        lambda a, b, c, d: if_then_else(if_then_else(a == 0, b == 1, b == 2), c, d) == 2,
        lambda a, b, c, d: (c if (b == 1 if a == 0 else b == 2) else d) == 2,
    ),
    "for all": (
        lambda *g: for_all(itertools.pairwise(g), lambda x, y: x <= y),
        lambda *g: all(x <= y for x, y in itertools.pairwise(g)),
    ),
    "exists": (lambda *g: exists(g, lambda x: x == 2), lambda *g: 2 in g),
    "count": (lambda *g: count(g, lambda x: x != 1) >= 3, lambda *g: sum(x != 1 for x in g) >= 3),
    "all of them": (
        lambda *g: for_all(g, lambda x: exists(g, lambda y: x + y == 2)) | (count(g, lambda x: x == 0) == 4),
        lambda *g: all(any(x + y == 2 for y in g) for x in g) or g.count(0) == 4,
    ),
    "divided": (
        lambda a, b, c, d: if_then_else(c > 0, a // c == b, d == 1),  # both are computed: a division by zero is false
        lambda a, b, c, d: c > 0 and a // c == b,
    ),
}


def truth(plain):
    return [row for row in itertools.product(*DOMAINS) if plain(*row)]


@pytest.mark.parametrize("name", RULES)
def test_a_rule_means_the_same_listed_and_read(name, monkeypatch, agrees):
    rule, plain = RULES[name]
    agrees(Constraint.from_predicate(rule, DOMAINS), truth(plain))
    monkeypatch.setattr(predicate, "ENUMERATED", 1)  # as if there were too many to ask
    agrees(Constraint.from_predicate(rule, DOMAINS), truth(plain))


def test_texts_may_be_chosen():
    c = Constraint.from_predicate(lambda a, b: if_then_else(a == 1, "red", "blue") == b, [range(2), ["red", "blue"]])
    assert sorted(c.solutions()) == [(0, "blue"), (1, "red")]


def test_a_large_group_is_counted_without_listing_it():
    c = Constraint.from_predicate(lambda *g: count(g, lambda x: x == 9) == 2, [range(10)] * 20)
    assert c.n_solutions == 190 * 9**18


def test_columns_choose_like_single_values():
    c = np.array([True, False])
    assert if_then_else(c, 3, 10**30).tolist() == [3, 10**30]
    assert if_then_else(c, np.array([True, True]), False).dtype == np.bool_
    assert for_all([], lambda x: x) is True
    assert exists([], lambda x: x) is False
    assert count([], lambda x: x) == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: for_all(3, bool), "members of a group"),
        (lambda: count([1], 3), "function of a member"),
        (lambda: if_then_else(2, 1, 0), "True or False"),
        (lambda: Constraint.from_predicate(lambda *g: for_all(g[0], bool), [range(100)] * 5), "members of a group"),
    ],
)
def test_mistakes_are_named(wrong, said):
    with pytest.raises(UserError, match=said):
        wrong()
