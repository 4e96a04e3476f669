"""Rules read variable by variable against the same rules computed value by value."""

import itertools
import operator
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gedi.errors import UserError
from gedi.logic import Constraint, maximum, minimum
from gedi.logic.limits import Budget, Limits
from gedi.logic.predicate import diagram_of, satisfying

ARITHMETIC = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": minimum,
    "max": maximum,
}
COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
PLAIN = {**ARITHMETIC, **COMPARISONS, "min": min, "max": max}


def with_variables(numbers):
    """An operation with a variable on one side at least."""
    constants = st.tuples(st.just("constant"), st.integers(-3, 4))
    other = st.one_of(constants, numbers)
    names = st.sampled_from(sorted(ARITHMETIC))
    return st.one_of(
        st.tuples(names, numbers, other),
        st.tuples(names, other, numbers),
        st.tuples(st.sampled_from(["neg", "abs"]), numbers),
    )


VARIABLES = st.tuples(st.just("variable"), st.integers(0, 2))
NUMBERS = st.recursive(VARIABLES, with_variables, max_leaves=4)
CONSTANTS = st.tuples(st.just("constant"), st.integers(-3, 9))
COMPARED = st.one_of(
    st.tuples(st.sampled_from(sorted(COMPARISONS)), NUMBERS, st.one_of(CONSTANTS, NUMBERS)),
    st.tuples(st.sampled_from(sorted(COMPARISONS)), CONSTANTS, NUMBERS),
)
CONDITIONS = st.recursive(
    COMPARED,
    lambda c: st.one_of(st.tuples(st.sampled_from("&|"), c, c), st.tuples(st.just("~"), c)),
    max_leaves=4,
)


def written(tree, values):
    """The rule as a user writes it, with operators."""
    kind, *below = tree
    if kind == "variable":
        return values[below[0]]
    if kind == "constant":
        return below[0]
    parts = [written(part, values) for part in below]
    unary = {"neg": operator.neg, "abs": abs, "~": operator.invert}
    if kind in unary:
        return unary[kind](parts[0])
    return {**ARITHMETIC, **COMPARISONS, "&": operator.and_, "|": operator.or_}[kind](*parts)


def meant(tree, values):
    """What the rule says of plain numbers, by truth values alone."""
    kind, *below = tree
    if kind == "variable":
        return values[below[0]]
    if kind == "constant":
        return below[0]
    parts = [meant(part, values) for part in below]
    if kind == "&":
        return parts[0] and parts[1]
    if kind == "|":
        return parts[0] or parts[1]
    if kind in ("~", "neg", "abs"):
        return {"~": operator.not_, "neg": operator.neg, "abs": abs}[kind](parts[0])
    return PLAIN[kind](*parts)


def holds(tree, values):
    try:
        return meant(tree, values)
    except ZeroDivisionError:
        return False


DOMAINS = [[-2, 0, 1, 3], range(3), [1, 2, 5]]


@settings(max_examples=300)
@given(tree=CONDITIONS)
def test_reading_a_rule_and_asking_it_one_by_one_say_the_same(tree):
    rule = lambda *values: written(tree, values)  # noqa: E731
    every = list(itertools.product(*map(range, [4, 3, 3])))
    truth = [holds(tree, [d[k] for d, k in zip(DOMAINS, row, strict=True)]) for row in every]
    diagram = diagram_of(rule, DOMAINS, Budget(Limits(), ""))
    assert diagram.accepts(np.array(every)).tolist() == truth
    listed = {tuple(row) for row in satisfying(rule, DOMAINS).tolist()}
    assert listed == {row for row, good in zip(every, truth, strict=True) if good}


@pytest.mark.parametrize(
    ("rule", "plain"),
    [
        (lambda a, b, c: 2 - a == c, None),
        (lambda a, b, c: a < 3, None),
        (lambda a, b, c: a == 2 + b, None),
        (lambda a, b, c: 10 // (a + 1) == b, None),
        (lambda a, b, c: 10 % (a + 1) == b, None),
        (lambda a, b, c: sum([a, b, c]) == 5, None),
        (lambda a, b, c: a + b + c - a == 4, None),
        (lambda a, b, c: (a - b - c) * 2 == 0, None),
        (lambda a, b, c: abs(a - b) <= 1, None),
        (lambda a, b, c: ~(a == b) & ~(b == c), lambda a, b, c: a != b and b != c),
        (lambda a, b, c: ~((a < b) | (b < c)), lambda a, b, c: not (a < b or b < c)),
        (lambda a, b, c: (a == 1) & (b == 2) | (c == 0), None),
        (lambda a, b, c: minimum(a, b) == c, lambda a, b, c: min(a, b) == c),
        (lambda a, b, c: maximum(a, 2) > minimum(b, c), lambda a, b, c: max(a, 2) > min(b, c)),
        (lambda a, b, c: (a > 2) == (b > 2), None),
        (lambda a, b, c: (a == b) | (a // b == 2), lambda a, b, c: b != 0 and (a == b or a // b == 2)),
        (lambda a, b, c: (c == 1) | (a % b == 2), lambda a, b, c: b != 0 and (c == 1 or a % b == 2)),
    ],
)
def test_a_rule_means_the_same_on_small_and_on_large_domains(rule, plain):
    domains = [range(5)] * 3
    expected = [row for row in itertools.product(range(5), repeat=3) if holds_plainly(plain or rule, row)]
    assert sorted(map(tuple, satisfying(rule, domains).tolist())) == expected
    every = np.array(list(itertools.product(range(5), repeat=3)))
    accepted = every[diagram_of(rule, domains, Budget(Limits(), "")).accepts(every)]
    assert list(map(tuple, accepted.tolist())) == expected


def holds_plainly(rule, row):
    try:
        return bool(rule(*row))
    except ZeroDivisionError:
        return False


def ways(n, total):
    counts = {0: 1}
    for _ in range(n):
        following = {}
        for s, ways in counts.items():
            for v in range(10):
                following[s + v] = following.get(s + v, 0) + ways
        counts = following
    return counts[total]


@pytest.mark.parametrize("n", [12, 16])
def test_a_long_sum_is_compiled_in_no_time(n):
    began = time.perf_counter()
    c = Constraint.from_predicate(lambda *digits: sum(digits) == 40, [range(10)] * n)
    assert time.perf_counter() - began < 5  # about 0.1 s; listing would take for ever
    assert c.n_solutions == ways(n, 40)
    assert c.size < 20_000


def test_one_sum_on_either_side_is_one_state():
    left = Constraint.from_predicate(lambda *d: d[0] + d[1] + d[2] + d[3] == d[4] + d[5] + d[6] + d[7], [range(6)] * 8)
    counts = np.convolve(np.convolve(np.ones(6), np.ones(6)), np.convolve(np.ones(6), np.ones(6)))
    assert left.n_solutions == int((counts**2).sum())


def test_truth_values_add_up_as_in_python():
    everyone = Constraint.from_predicate(
        lambda a, b, c, d, e, f, g, h, i, j: a + b + c + d + e + f + g + h + i + j == 10, [[False, True]] * 10
    )
    assert everyone.solutions() == [(True,) * 10]
    many = Constraint.from_predicate(lambda *x: sum(x[1:], x[0]) == 24, [[False, True]] * 24)
    assert many.solutions() == [(True,) * 24]


def test_conditions_can_be_counted():
    rule = lambda a, b, c, d, e: (a == 1) + (b == 1) + (c == 1) + (d == 1) + (e == 1) == 5  # noqa: E731
    for size in (4, 10, 20):  # asked, still asked but too often to check each answer, read
        assert Constraint.from_predicate(rule, [range(size)] * 5).solutions() == [(1,) * 5]


def test_truth_values_are_negated_as_one_means_it():
    rule = lambda a, b, *rest: ~a | b  # noqa: E731
    assert Constraint.from_predicate(rule, [[False, True]] * 2).n_solutions == 3
    assert Constraint.from_predicate(rule, [[False, True]] * 24).n_solutions == 3 * 2**22


LARGE = [range(60)] * 4


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda a, b, c, d: a == b and c == d, "write & | ~ instead of and"),
        (lambda a, b, c, d: a < b < c, "write & | ~ instead of and"),
        (lambda a, b, c, d: c == d if a == b else False, "instead of and, or, not, if"),
        (lambda a, b, c, d: a in [b, c], "instead of and, or, not, if"),
        (lambda a, b, c, d: not (a < b), "instead of and, or, not"),
        (lambda a, b, c, d: a in {1, 2}, "expressions, which know"),
        (lambda a, b, c, d: a / 2 == b, "expressions, which know.*unsupported operand"),
        (lambda a, b, c, d: a.bit_length() == b, "expressions, which know.*bit_length"),
        (lambda a, b: a == b, "with 4 expressions.*takes 2 positional arguments but 4 were given"),
        (lambda a, b, c, d, e: a == b, "with 4 expressions.*missing 1 required positional argument"),
        (lambda a, b, c, d: (a & 1) == (b & 1), r"& \| ~ join conditions, which are True or False, got 2"),
        (lambda a, b, c, d: ~(a - b) & (c == d), r"& \| ~ join conditions"),
        (lambda a, b, c, d: (a == b) | (c | d), r"& \| ~ join conditions"),
        (lambda a, b, c, d: True, "must be an expression of them, got True"),
        (lambda a, b, c, d: a == 1 // 0, "division"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(rule, message):
    with pytest.raises(UserError, match=message):
        Constraint.from_predicate(rule, LARGE)


def test_words_cannot_be_added_where_a_rule_is_read():
    with pytest.raises(UserError, match="arithmetic of the values"):
        Constraint.from_predicate(lambda a, b, c, d: a + b == "xy", [[f"w{k}" for k in range(60)]] * 4)


def test_words_can_be_compared_where_a_rule_is_read():
    words = [f"w{k}" for k in range(60)]
    c = Constraint.from_predicate(lambda a, b, c, d: (a == b) & (c != "w3"), [words] * 4)
    assert c.n_solutions == 60 * 59 * 60
    assert c.is_satisfied([["w1", "w1", "w2", "w3"], ["w1", "w1", "w3", "w3"]]).tolist() == [True, False]
