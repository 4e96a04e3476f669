"""Decision diagrams against sets of assignments."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gedi.errors import UserError
from gedi.logic.diagram import Diagram, from_automaton, from_solutions
from gedi.logic.limits import Budget, Limits

FREE = Budget(Limits(seconds=math.inf), "")


@st.composite
def sets(draw, count=1):
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    every = list(itertools.product(*map(range, sizes)))
    chosen = [draw(st.integers(1, 2 ** len(every) - 1)) for _ in range(count)]
    return sizes, every, [{row for i, row in enumerate(every) if bits >> i & 1} for bits in chosen]


def accepted(diagram, every):
    return {row for row, good in zip(every, diagram.accepts(np.array(every)), strict=True) if good}


def is_reduced(diagram):
    """No two nodes of a level alike, every node reached, and a way to the end from each."""
    below = {0}
    for i, level in enumerate(diagram.levels):
        assert set(range(len(level))) == below
        assert len({tuple(row) for row in level.tolist()}) == len(level)
        assert (level >= 0).any(axis=1).all()
        below = set(level[level >= 0].tolist())
        last = i == len(diagram.levels) - 1
        assert not last or below == {0}
    return True


@settings(max_examples=150)
@given(case=sets())
def test_a_diagram_accepts_the_rows_it_was_made_of_and_is_reduced(case):
    sizes, every, (rows,) = case
    diagram = from_solutions(np.array(sorted(rows)), sizes)
    assert diagram.sizes == sizes
    assert accepted(diagram, every) == rows
    assert is_reduced(diagram)
    assert diagram.is_true == (len(rows) == len(every))
    assert not diagram.is_false
    circuit = diagram.circuit()
    assert sorted(map(tuple, circuit.solutions(sizes).tolist())) == sorted(rows)


@settings(max_examples=150)
@given(case=sets(2))
def test_products_and_complements_are_those_of_sets(case):
    sizes, every, (a, b) = case
    x, y = (from_solutions(np.array(sorted(rows)), sizes) for rows in (a, b))
    both, either = x.product(y, True, FREE), x.product(y, False, FREE)
    assert accepted(both, every) == a & b
    assert both.is_false == (not a & b)
    assert accepted(either, every) == a | b
    assert either.is_true == (len(a | b) == len(every))
    other = x.complement()
    assert accepted(other, every) == set(every) - a
    assert other.is_false == (len(a) == len(every))
    for made in (both, either, other):
        assert made.is_false or is_reduced(made)


@settings(max_examples=60)
@given(case=sets())
def test_the_complement_of_the_complement_is_the_diagram_itself(case):
    sizes, every, (rows,) = case
    assume(len(rows) < len(every))
    diagram = from_solutions(np.array(sorted(rows)), sizes)
    again = diagram.complement().complement()
    assert all(len(a) == len(b) for a, b in zip(diagram.levels, again.levels, strict=True))
    assert accepted(again, every) == rows


def test_states_that_accept_the_same_are_merged():
    slow = from_automaton((), lambda s, v: (*s, v), lambda s: sum(s) % 3 == 0, [range(4)] * 5, FREE)
    fast = from_automaton(0, lambda s, v: (s + v) % 3, lambda s: s == 0, [range(4)] * 5, FREE)
    assert [len(level) for level in slow.levels] == [len(level) for level in fast.levels] == [1, 3, 3, 3, 3]


def test_a_dead_automaton_is_false():
    for step in (lambda s, v: None, lambda s, v: s + v if s < 2 else None):
        diagram = from_automaton(0, step, lambda s: s > 90, [range(2)] * 4, FREE)
        assert diagram.is_false
        assert not diagram.accepts(np.zeros((1, 4), dtype=int)).any()


def test_what_cannot_hold_cannot_be_combined():
    never = from_automaton(0, lambda s, v: None, bool, [range(2)] * 2, FREE)
    some = from_solutions(np.array([[0, 1]]), [2, 2])
    with pytest.raises(UserError, match="unsatisfiable"):
        some.product(never, True, FREE)


def test_a_budget_names_what_ran_out():
    with pytest.raises(UserError, match=r"more than 1,000 nodes; do less, or raise size_limit"):
        Budget(Limits(size=1000), "do less").check(1001)
    Budget(Limits(size=1000), "do less").check(1000)
    late = Budget(Limits(seconds=0.5), "do less")
    late.check(0)
    late.began -= 1
    with pytest.raises(UserError, match=r"did not compile within 0\.5 s; do less, or raise time_limit"):
        late.check(0)


def test_a_level_holds_the_node_each_value_leads_to():
    diagram = from_solutions(np.array([[0, 1], [1, 0], [1, 1]]), [2, 2])
    assert isinstance(diagram, Diagram)
    first, second = diagram.levels
    assert first.shape == (1, 2)
    assert second[first[0, 0]].tolist() == [-1, 0]
    assert second[first[0, 1]].tolist() == [0, 0]
