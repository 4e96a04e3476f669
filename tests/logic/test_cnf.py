"""Clauses against brute force, and the DIMACS reader against bad files."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gedi.errors import UserError
from gedi.logic import Constraint
from gedi.logic.cnf import read_clauses


@st.composite
def boolean(draw):
    n = draw(st.integers(1, 5))
    literal = st.integers(1, n).flatmap(lambda v: st.sampled_from([v, -v]))
    return n, draw(st.lists(st.lists(literal, min_size=1, max_size=3), min_size=1, max_size=6))


@st.composite
def multivalued(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    literal = st.integers(1, sum(sizes)).flatmap(lambda v: st.sampled_from([v, -v]))
    return sizes, draw(st.lists(st.lists(literal, min_size=1, max_size=4), min_size=1, max_size=5))


def satisfied(clauses, true):
    """Whether clauses hold when exactly these literals' numbers are true."""
    return all(any((abs(x) in true) == (x > 0) for x in clause) for clause in clauses)


def compare(make, rows, total, agrees):
    if len(rows) in (0, total):
        with pytest.raises(UserError, match="every assignment" if rows else "no assignment"):
            make()
    else:
        agrees(make(), rows)
        agrees(make(), rows)  # from the cache


def dimacs(n, clauses, *, header="p cnf {} {}\n", end=" 0\n"):
    return header.format(n, len(clauses)) + "".join(" ".join(map(str, clause)) + end for clause in clauses)


@settings(max_examples=150)
@given(case=boolean(), form=st.sampled_from(["list", "text", "file", "path"]))
def test_boolean_clauses_are_computed_exactly(case, form, agrees, tmp_path_factory):
    n, clauses = case
    rows = [
        row
        for row in itertools.product([0, 1], repeat=n)
        if satisfied(clauses, {i + 1 for i, value in enumerate(row) if value})
    ]
    source = clauses if form == "list" else dimacs(n, clauses)
    if form in ("file", "path"):
        file = tmp_path_factory.mktemp("clauses") / "some.cnf"
        file.write_text(source)
        source = file if form == "path" else str(file)
    variables = n if form == "list" else None
    compare(lambda: Constraint.from_cnf(source, variables), rows, 2**n, agrees)


@settings(max_examples=150)
@given(case=multivalued(), text=st.booleans())
def test_clauses_over_values_are_computed_exactly(case, text, agrees):
    sizes, clauses = case
    first = [sum(sizes[:i]) for i in range(len(sizes))]
    every = list(itertools.product(*map(range, sizes)))
    rows = [row for row in every if satisfied(clauses, {f + k + 1 for f, k in zip(first, row, strict=True)})]
    source = dimacs(sum(sizes), clauses) if text else clauses
    compare(lambda: Constraint.from_cnf(source, sizes), rows, len(every), agrees)


def test_values_are_false_then_true_and_domains_keep_their_names():
    c = Constraint.from_cnf([[1], [-2]])
    assert c.domains == ((False, True),) * 2
    assert c.solutions() == [(True, False)]
    named = Constraint.from_cnf([[1, 4], [-3]], variables=["abc", 2])
    assert sorted(named.solutions()) == [("a", 0), ("a", 1), ("b", 0)]


def test_a_variable_that_no_clause_mentions_is_free():
    assert Constraint.from_cnf([[1]], variables=4).n_solutions == 8
    assert Constraint.from_cnf("p cnf 4 1\n1 0\n").n_solutions == 8


@pytest.mark.parametrize(
    "text",
    [
        "c a comment\np cnf 3 2\n1 -2 0\n2 3 0\n",
        "p cnf 3 2\n1 -2 0 2 3 0\n",  # two clauses on one line
        "p cnf 3 2\n1\n-2 0\n2 3\n0\n",  # one clause on two
        "p cnf 3 2\n1 -2 0\n2 3",  # the last 0 forgotten
        "\n  p   cnf 3   2\n\n\t1 -2 0\nc another\n2 3 0\n%\n0\n",  # as some collections end a file
    ],
)
def test_every_layout_of_dimacs_is_read(text):
    assert read_clauses(text) == ([(1, -2), (2, 3)], 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p cnf 2 1\n1 x 0\n", "line 2 column 3 must be a whole number, got 'x'"),
        ("p cnf 2 1\n-2 - 0\n", "line 2 column 4 must be a whole number, got '-'"),
        ("p cnf 2 1\n 2  -2 1.5 0\n", "line 2 column 8 must be a whole number, got '1.5'"),
        ("c note\np cnf 2 1\n1 -13 0\n", "line 3 column 3: literal -13, but line 'p' declares 2 variables"),
        ("p cnf 2 1\n1 0\np cnf 2 1\n", "line 3: a second 'p' line"),
        ("p cnf two 1\n1 0\n", "line 1 must read 'p cnf VARIABLES CLAUSES', got 'p cnf two 1'"),
        ("p cnf ² 1\n1 0\n", "line 1 must read"),
        ("p dnf 2 1\n1 0\n", "line 1 must read"),
        ("1 2 0\n", "line 1: clauses must follow a line 'p cnf"),
        ("c nothing\n", "must hold a line 'p cnf"),
        ("p cnf 2 2\n1 0\n", "must hold 2 clauses as line 'p' says, got 1"),
        ("p cnf 2 1\n1 0\n2 0\n", "must hold 1 clauses as line 'p' says, got 2"),
        ("nowhere.cnf", "'nowhere.cnf' is not there"),
        ("1 2 0 " * 200, r"'1 2 0.*\.\.\.' is not there"),
    ],
)
def test_a_mistake_in_dimacs_is_named_with_its_place(text, message):
    with pytest.raises(UserError, match=message) as error:
        Constraint.from_cnf(text)
    assert "\n" not in str(error.value)


def test_a_mistake_in_a_file_names_the_file(tmp_path):
    file = tmp_path / "some.cnf"
    file.write_text("p cnf 1 1\n2 0\n")
    with pytest.raises(UserError, match=r"some\.cnf line 2 column 1"):
        Constraint.from_cnf(file)
    with pytest.raises(UserError, match="is not there"):
        Constraint.from_cnf(tmp_path)


@pytest.mark.parametrize(
    ("clauses", "variables", "message"),
    [
        ([[1, 0]], None, "clause 1 must be whole numbers other than 0"),
        ([[1], [True]], None, "clause 2 must be"),
        ([[1], ["2"]], None, "clause 2 must be"),
        ([[1], 2], None, "clause 2 must be whole numbers other than 0, got 2"),
        ([[1, 5]], 4, "literals go up to 5, but variables declares 4"),
        ([[1, 6]], [3, 2], "literals go up to 6, but variables declares 5"),
        ([[1]], [3, []], "domain 1 must hold different values"),
        ([[1]], [3, 0], "domain 1 must hold different values"),
        ([[1]], [], "at least one variable"),
        ([], 0, "at least one variable"),
    ],
)
def test_clauses_that_do_not_fit_are_refused(clauses, variables, message):
    with pytest.raises(UserError, match=message):
        Constraint.from_cnf(clauses, variables)


def values(sizes):
    """The literal that variable i has value k, as a function of both."""
    first = [sum(sizes[:i]) for i in range(len(sizes))]
    return lambda variable, k: first[variable] + k + 1


def differ(pairs, size, literal):
    return [[-literal(a, k), -literal(b, k)] for a, b in pairs for k in range(size)]


def test_a_small_sudoku_has_its_288_grids():
    cells = list(itertools.product(range(4), repeat=2))
    houses = [lambda r, c: r, lambda r, c: c, lambda r, c: (r // 2, c // 2)]
    together = [
        (4 * a[0] + a[1], 4 * b[0] + b[1])
        for house in houses
        for a, b in itertools.combinations(cells, 2)
        if house(*a) == house(*b)
    ]
    began = time.perf_counter()
    c = Constraint.from_cnf(differ(together, 4, values([4] * 16)), [4] * 16)
    assert time.perf_counter() - began < 2
    assert c.n_solutions == 288
    assert c.size < 5000
    for grid in c.solutions():
        assert all(grid[a] != grid[b] for a, b in together)


@pytest.mark.parametrize(("n", "colours", "count"), [(3, 3, 246), (4, 3, 7812), (5, 3, 580986), (4, 4, 6_000_732)])
def test_colourings_of_a_grid_are_counted(n, colours, count):
    """Against the known numbers of proper colourings of an n x n grid, and a count by rows."""
    neighbours = [(n * r + c, n * r + c + 1) for r in range(n) for c in range(n - 1)]
    neighbours += [(n * r + c, n * r + n + c) for r in range(n - 1) for c in range(n)]
    rows = [
        row for row in itertools.product(range(colours), repeat=n) if all(a != b for a, b in itertools.pairwise(row))
    ]
    fits = np.array([[all(a != b for a, b in zip(x, y, strict=True)) for y in rows] for x in rows], dtype=np.int64)
    assert np.linalg.matrix_power(fits, n - 1).sum() == count
    began = time.perf_counter()
    c = Constraint.from_cnf(differ(neighbours, colours, values([colours] * n**2)), [colours] * n**2)
    assert time.perf_counter() - began < 2
    assert c.n_solutions == count


def test_variables_of_many_values_compile_at_once():
    began = time.perf_counter()
    c = Constraint.from_cnf([[-1, -1001], [1000, 2000]], [1000, 1000])
    assert time.perf_counter() - began < 2
    assert c.n_solutions == 2 * 1000 - 1  # the last of either; never the first of both, which holds then
