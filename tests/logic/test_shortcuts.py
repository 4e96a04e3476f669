"""Symbol maps against brute force over all of them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gedi.errors import UserError
from gedi.logic import Constraint, Shortcuts, all_different, compiled, shortcut_search, sorted_, sums_to
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
        patch.setattr(shortcut_search, "_LISTED", 0)
        patch.setattr(shortcut_search, "_SAMPLED", 3)  # so few that the walk through the diagram must decide
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
    monkeypatch.setattr(shortcut_search, "_WORK", 0)
    found = c.shortcuts()
    assert not found.exact
    assert not found.names_symbols
    assert found.maps[0] == tuple(range(6))
    assert found.count < math.comb(11, 6)
    assert str(found).startswith("at least ")
    assert str(found).endswith("the search was cut short: whether a swap satisfies it is not known")


def test_a_search_cut_short_still_finds_swaps_first(monkeypatch):
    monkeypatch.setattr(shortcut_search, "_WORK", 0)
    c = all_different(7, range(7))
    found = c.shortcuts()
    assert not found.exact
    assert found.maps[0] == tuple(range(7))
    assert 100 < len(found.swaps) < 5039
    assert c.is_satisfied(found.maps).all()  # a map is a permutation, and so a solution


def test_what_was_cut_short_never_names_symbols():
    assert not Shortcuts((0, 1), ((0, 1),), 1, exact=False).names_symbols
    assert Shortcuts((0, 1), ((0, 1),), 1, exact=True).names_symbols


def every_map_of_two(rows, sizes, fits):
    """All pairs of maps, one for each of two variables, by trying each."""
    both = itertools.product(
        itertools.product(range(sizes[0]), repeat=sizes[0]), itertools.product(range(sizes[1]), repeat=sizes[1])
    )
    return {(*f, *g) for f, g in both if all(fits((a, b), (f[a], g[b])) for a, b in rows)}


@settings(max_examples=60, deadline=None)
@given(bits=st.integers(1, 2**6 - 2))
def test_every_domain_has_a_map_of_its_own(bits):
    rows = [row for i, row in enumerate(itertools.product(range(2), range(3))) if bits >> i & 1]
    c = Constraint.from_solutions(rows, [range(2), range(3)])
    expected = every_map_of_two(rows, (2, 3), lambda row, image: image in rows)
    found = c.shortcuts()
    assert set(found.maps) == expected
    assert set(found.swaps) == {
        m for m in expected if len(set(m[:2])) == 2 and len(set(m[2:])) == 3 and m != (0, 1, 0, 1, 2)
    }


def test_networks_tell_apart_what_a_domain_does_not():
    c = Constraint.from_predicate(lambda a, b: a <= b, [range(2)] * 2)
    rows = c.solutions()
    assert c.shortcuts().count == len(every_map(2, rows))
    two = c.shortcuts(networks=["left", "right"])
    assert set(two.maps) == every_map_of_two(rows, (2, 2), lambda row, image: image in rows)
    assert Constraint.from_predicate(lambda a, b: a != b, ["ab", "ba"]).shortcuts().kinds == (0, 0, 1, 1)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), occur=st.integers(1, 5))
def test_answers_that_occur_are_kept_and_no_others(seed, occur):
    g = np.random.default_rng(seed)
    table = g.integers(0, 4, (3, 3))
    if len(np.unique(table)) < 2:
        return
    c = Constraint.from_function(lambda a, b: int(table[a, b]), [range(3)] * 2)
    pairs = list(itertools.product(range(3), repeat=2))
    chosen = [pairs[i] for i in g.choice(9, occur, replace=False)]
    maps = list(itertools.product(range(3), repeat=3))

    def keeps(image, rows):
        return all(table[image[a], image[b]] == table[a, b] for a, b in rows)

    assert set(c.shortcuts().maps) == {m for m in maps if keeps(m, pairs)}
    assert set(c.shortcuts(data=chosen).maps) == {m for m in maps if keeps(m, chosen)}
    seen = {table[a, b] for a, b in chosen}
    rows = [(a, b) for a, b in pairs if table[a, b] in seen]
    found = c.shortcuts(answers=[int(x) for x in seen])
    assert set(found.maps) == {m for m in maps if keeps(m, rows)}
    assert found.count == len(found.maps)


def test_half_of_the_sums_leave_shortcuts_and_labels_remove_them():
    total = Constraint.from_function(lambda a, b: a + b, [range(5)] * 2)
    half = [(0, 0), (0, 1), (2, 3), (2, 4)]  # the groups of MNAdd-Half
    found = total.shortcuts(data=half)
    maps = itertools.product(range(5), repeat=5)
    expected = {m for m in maps if all(m[a] + m[b] == a + b for a, b in half)}
    assert set(found.maps) == expected
    assert found.count == 3  # 2 + 3 and 2 + 4 may be 1 + 4 ... and so on, while 0 and 1 are certain
    advice = found.label_these(1)
    assert advice.symbols[0] in (2, 3, 4)
    assert advice.maps == 1


def test_labels_leave_what_their_symbols_leave():
    found = Constraint.from_predicate(lambda a, b: a != b, [range(4)] * 2).shortcuts()
    for k in (1, 2, 3, 9):
        advice = found.label_these(k)
        kept = [m for m in found.maps if all(m[found.symbols.index(s)] == s for s in advice.symbols)]
        assert advice.maps == len(kept)
        assert advice.swaps == len([m for m in kept if m in found.swaps])
    with pytest.raises(UserError, match="k must be a whole number"):
        found.label_these(0)


def test_what_cannot_be_asked_is_refused(monkeypatch):
    total = Constraint.from_function(lambda a, b: a + b, [range(5)] * 2)
    less = Constraint.from_predicate(lambda a, b: a < b, [range(3)] * 2)
    wider = Constraint.from_predicate(lambda a, b: a < b, [range(3), range(4)])
    for ask, said in (
        (lambda: less.shortcuts(answers=[1]), "this constraint has one"),
        (lambda: less.shortcuts(data=[(2, 1)]), "does not"),
        (lambda: less.shortcuts(data=[]), "got none"),
        (lambda: less.shortcuts(data=[(1,)]), "rows of 2"),
        (lambda: less.shortcuts(networks=["a"]), "one for each of 2 variables"),
        (lambda: total.shortcuts(answers=[99]), "must be one of"),
        (lambda: total.shortcuts(answers=[None]), "no group has any"),
        (lambda: wider.shortcuts(networks=[0, 0]), "one domain"),
    ):
        with pytest.raises(UserError, match=said):
            ask()
    monkeypatch.setattr(shortcut_search, "_TABLE", 3)
    with pytest.raises(UserError, match="at most 3"):
        total.shortcuts()
    program = "nn(n,[X],Y,[0,1]) :: d(X,Y).\na :- d(x,1).\nb :- d(x,1), d(y,1).\n"
    monkeypatch.undo()
    with pytest.raises(UserError, match="exclude one another"):
        Constraint.from_problog(program, ["a", "b"]).shortcuts()


def test_a_constraint_without_a_diagram_and_with_many_solutions_is_refused(monkeypatch):
    c = all_different(3, range(3))
    bare = Constraint(c.circuit, c.domains)
    monkeypatch.setattr(compiled, "DIAGRAM_FROM", -1)
    with pytest.raises(UserError, match="decision diagram"):
        bare.shortcuts()
    monkeypatch.setattr(shortcut_search, "_LISTED", 0)
    with pytest.raises(UserError, match="make it by from_predicate or from_automaton"):
        Constraint(c.circuit, c.domains).shortcuts()
