"""Symbol maps against brute force over all of them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gedi.errors import UserError
from gedi.logic import Constraint, Shortcuts, all_different, compiled, shortcuts, sorted_, sums_to
from gedi.logic.circuit import from_table
from gedi.logic.diagram import from_solutions


@st.composite
def relations(draw):
    size = draw(st.integers(2, 4))
    n = draw(st.integers(1, 3))
    every = list(itertools.product(range(size), repeat=n))
    if draw(st.booleans()):  # few solutions: many maps
        rows = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    else:
        bits = draw(st.integers(1, 2 ** len(every) - 2))
        rows = [row for i, row in enumerate(every) if bits >> i & 1]
    return size, n, rows


def every_map(size, rows):
    """All maps that send solutions to solutions, by trying each."""
    allowed = set(rows)
    return {
        image
        for image in itertools.product(range(size), repeat=size)
        if all(tuple(image[k] for k in row) in allowed for row in rows)
    }


def made(size, n, rows, letters="pqrs"):
    return Constraint(from_table(np.array(rows), [size] * n), [letters[:size]] * n), letters[:size]


@settings(max_examples=200)
@given(case=relations())
def test_the_maps_are_exactly_those_that_trying_all_finds(case):
    size, n, rows = case
    c, letters = made(size, n, rows)
    found = c.shortcuts()
    expected = {tuple(letters[k] for k in image) for image in every_map(size, rows)}
    assert set(found.maps) == expected
    assert found.count == len(found.maps) == len(expected)
    assert found.exact
    assert found.maps[0] == found.symbols == tuple(letters)
    bijections = {m for m in expected if len(set(m)) == size} - {tuple(letters)}
    assert set(found.swaps) == bijections
    assert set(found.collapses) == {m for m in expected if len(set(m)) < size}
    assert found.names_symbols == (not bijections)


@settings(max_examples=100)
@given(case=relations())
def test_too_many_solutions_to_list_change_nothing(case):
    size, n, rows = case
    diagram = from_solutions(np.array(rows), [size] * n)
    c = Constraint(diagram.circuit(), [range(size)] * n, diagram=diagram)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shortcuts, "_LISTED", 0)
        patch.setattr(shortcuts, "_SAMPLED", 3)  # so few that the walk through the diagram must decide
        found = c.shortcuts()
    assert set(found.maps) == every_map(size, rows)
    assert found.exact


def test_addition_names_the_digits_but_for_all_of_them_nought():
    c = Constraint.from_predicate(lambda a, b, c: a + b == c, [range(10)] * 3)
    found = c.shortcuts()
    assert set(found.maps) == {tuple(range(10)), (0,) * 10}
    assert found.names_symbols
    assert found.swaps == []
    assert found.collapses == [(0,) * 10]
    text = str(found)
    assert text.startswith("2 symbol maps satisfy the constraint")
    assert "collapse: 1->0, 2->0" in text
    assert text.endswith("the constraint names the symbols, once clustering rules the collapses out")


def test_all_different_lets_every_permutation_through():
    found = all_different(4, range(4)).shortcuts()
    assert found.count == 24
    assert set(found.maps) == set(itertools.permutations(range(4)))
    assert not found.names_symbols
    assert "cannot name the symbols" in str(found)
    assert "swap: and 18 more listed" in str(found)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_strict_order_of_all_symbols_allows_only_the_identity(k):
    found = sorted_(k, range(k), strictly=True).shortcuts()
    assert found.maps == (tuple(range(k)),)
    assert found.names_symbols
    assert str(found).endswith("the constraint names the symbols")


def test_a_weak_order_allows_every_map_that_keeps_it():
    found = sorted_(2, range(4)).shortcuts()
    assert found.count == math.comb(7, 4)  # the monotone maps of four into four
    assert found.names_symbols  # the only one of them that is one to one is the identity


@pytest.mark.parametrize(("total", "others"), [(40, 0), (54, 1)])
def test_a_sum_of_twelve_digits_is_judged_from_a_sample_and_its_diagram(total, others):
    found = sums_to(12, range(10), total=total).shortcuts()
    assert found.exact
    assert tuple(range(10)) == found.maps[0]
    assert found.count == 1 + others
    if others:  # half of the largest sum: every digit d may be 9 - d
        assert found.swaps == [tuple(range(9, -1, -1))]
        assert not found.names_symbols


@pytest.mark.parametrize("limit", [0, 1, 2, 5])
def test_a_short_list_does_not_hide_a_swap(limit):
    found = all_different(4, range(4)).shortcuts(limit=limit)
    assert len(found.maps) <= max(limit, 2)
    assert found.count == 24
    assert found.swaps
    assert not found.names_symbols


def test_a_search_cut_short_says_so_and_claims_nothing(monkeypatch):
    c = sorted_(2, range(6))
    assert c.shortcuts().names_symbols
    monkeypatch.setattr(shortcuts, "_WORK", 0)
    found = c.shortcuts()
    assert not found.exact
    assert not found.names_symbols
    assert found.maps[0] == tuple(range(6))
    assert found.count < math.comb(11, 6)
    assert str(found).startswith("at least ")
    assert str(found).endswith("the search was cut short: whether a swap satisfies it is not known")


def test_a_search_cut_short_still_finds_swaps_first(monkeypatch):
    monkeypatch.setattr(shortcuts, "_WORK", 0)
    c = all_different(7, range(7))
    found = c.shortcuts()
    assert not found.exact
    assert found.maps[0] == tuple(range(7))
    assert 100 < len(found.swaps) < 5039
    assert c.is_satisfied(found.maps).all()  # a map is a permutation, and so a solution


def test_what_was_cut_short_never_names_symbols():
    assert not Shortcuts((0, 1), ((0, 1),), 1, exact=False).names_symbols
    assert Shortcuts((0, 1), ((0, 1),), 1, exact=True).names_symbols


def test_one_map_of_all_symbols_needs_one_domain():
    with pytest.raises(UserError, match="every variable must have the same domain"):
        Constraint.from_predicate(lambda a, b: a < b, [range(3), range(4)]).shortcuts()
    with pytest.raises(UserError, match="every variable must have the same domain"):
        Constraint.from_predicate(lambda a, b: a != b, ["ab", "ba"]).shortcuts()


def test_a_constraint_without_a_diagram_and_with_many_solutions_is_refused(monkeypatch):
    c = all_different(3, range(3))
    bare = Constraint(c.circuit, c.domains)
    monkeypatch.setattr(compiled, "DIAGRAM_FROM", -1)
    with pytest.raises(UserError, match="decision diagram"):
        bare.shortcuts()
    monkeypatch.setattr(shortcuts, "_LISTED", 0)
    with pytest.raises(UserError, match="make it by from_predicate or from_automaton"):
        Constraint(c.circuit, c.domains).shortcuts()
