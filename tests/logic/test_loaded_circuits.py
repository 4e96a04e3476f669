"""Circuits that others compiled, lists of solutions, and clauses in any order."""

import itertools
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pysdd.sdd import SddManager, Vtree

from gedi.errors import UserError
from gedi.logic import Constraint, smooth
from gedi.logic.order import arranged


def clauses_over(n, seed, k=3):
    r = random.Random(seed)
    return [[r.choice([-1, 1]) * v for v in r.sample(range(1, n + 1), min(k, n))] for _ in range(n + 2)]


def models(clauses, n):
    holds = [dict(enumerate(row, start=1)) for row in itertools.product([False, True], repeat=n)]
    return [
        tuple(map(int, row.values())) for row in holds if all(any(row[abs(x)] == (x > 0) for x in c) for c in clauses)
    ]


def expanded(clauses, n):
    """A d-DNNF by Shannon's expansion, variable after variable, as c2d would write it."""
    lines, known = [], {}

    def node(line):
        if line not in known:
            known[line] = len(lines)
            lines.append(line)
        return known[line]

    def of(clauses, v):
        if any(not c for c in clauses):
            return node("O 0 0")
        if not clauses or v > n:
            return node("A 0")
        parts = []
        for literal in (v, -v):
            rest = [[x for x in c if x != -literal] for c in clauses if literal not in c]
            parts.append(node(f"A 2 {node(f'L {literal}')} {of(rest, v + 1)}"))
        return node(f"O {v} 2 {parts[0]} {parts[1]}")

    of([list(c) for c in clauses], 1)
    return f"nnf {len(lines)} 0 {n}\n" + "\n".join(lines)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 6), seed=st.integers(0, 10**6))
def test_a_d_dnnf_is_what_it_was_compiled_from(n, seed):
    clauses = clauses_over(n, seed)
    rows = models(clauses, n)
    if len(rows) in (0, 2**n):
        with pytest.raises(UserError, match="assignment satisfies the constraint"):
            Constraint.from_nnf(expanded(clauses, n))
        return
    c = Constraint.from_nnf(expanded(clauses, n))
    assert sorted(tuple(map(int, row)) for row in c.solutions()) == rows
    log_p = torch.randn(3, n, 2, dtype=torch.float64).log_softmax(-1)
    torch.testing.assert_close(c.log_prob(log_p), Constraint.from_cnf(clauses, n).log_prob(log_p))


@pytest.mark.parametrize("kind", ["balanced", "right", "left"])
@pytest.mark.parametrize("seed", range(3))
def test_an_sdd_is_what_it_was_compiled_from(seed, kind, tmp_path):
    n = 6
    clauses = clauses_over(n, seed)
    manager = SddManager.from_vtree(Vtree(var_count=n, vtree_type=kind))
    formula = manager.true()
    for clause in clauses:
        part = manager.false()
        for x in clause:
            part = part | manager.literal(x)
        formula = formula & part
    path = tmp_path / "circuit.sdd"
    formula.save(str(path).encode())
    c = Constraint.from_sdd(path, n)
    assert sorted(tuple(map(int, row)) for row in c.solutions()) == models(clauses, n)


def test_what_counts_twice_is_compiled_anew_and_what_does_not_is_taken_as_it_is(monkeypatch, agrees):
    overlapping = "nnf 5 4 3\nL 1\nL 2\nO 0 2 0 1\nL 3\nA 2 2 3"  # (x1 or x2) and x3: both may hold
    agrees(Constraint.from_nnf(overlapping), [(0, 1, 1), (1, 0, 1), (1, 1, 1)])
    shared = "nnf 5 4 2\nL 1\nL 2\nL -2\nA 2 0 1\nA 2 3 0"  # x1 stands twice in a product
    agrees(Constraint.from_nnf(shared), [(1, 1)])
    monkeypatch.setattr(smooth, "_compiled", lambda *_: pytest.fail("compiled anew"))
    agrees(Constraint.from_nnf("nnf 5 4 3\nL 1\nL -1\nL 3\nA 2 1 2\nO 1 2 0 3"), [(0, 0, 1), (0, 1, 1), *_with_first()])


def _with_first():
    return [(1, a, b) for a in (0, 1) for b in (0, 1)]


def test_literals_may_number_the_values_of_variables(agrees):
    # literals 1 to 3 are the values of one variable, 4 and 5 those of another
    agrees(Constraint.from_nnf("nnf 3 2 5\nL -2\nL 4\nA 2 0 1", variables=[3, 2]), [(0, 0), (2, 0)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nfn 1 1 1\nL 1", "must begin with"),
        ("nnf 1 0 1\nL x", "line 2 must hold whole numbers"),
        ("nnf 1 0 1\nL 2", "declares 1 variables"),
        ("nnf 2 1 1\nL 1\nA 2 0", "line 3 must read"),
        ("nnf 2 1 1\nL 1\nA 1 1", "nodes of earlier lines"),
        ("nnf 3 1 1\nL 1\nL -1", "3 nodes"),
        ("nnf 1 0 1\nX 1", "line 2 must read"),
        ("nnf 1 0 99999999\nL 99999999", "too large"),
        (f"nnf 1 0 1\nL {'9' * 5000}", "whole numbers"),
    ],
)
def test_mistakes_in_a_file_are_named(text, said):
    with pytest.raises(UserError, match=said):
        Constraint.from_nnf(text)


def test_mistakes_in_an_sdd_are_named(tmp_path):
    for text, said in (("sdd 1\nD 0 1 1 5 6", "line 2 must read"), ("sdd 0\n", "at least one node")):
        with pytest.raises(UserError, match=said):
            Constraint.from_sdd(text)
    with pytest.raises(UserError, match="not there"):
        Constraint.from_sdd(tmp_path / "nothing.sdd")


def test_listed_solutions(agrees):
    rows = [("a", 1), ("b", 2), ("a", 1)]
    c = Constraint.from_solutions(rows, [["a", "b"], [1, 2, 3]])
    agrees(c, [(0, 0), (1, 1)])
    many = list(itertools.permutations(range(7)))
    assert Constraint.from_solutions(torch.tensor(many), [range(7)] * 7).n_solutions == 5040
    for wrong, said in (
        ([("a", 9)], "value of its domain"),
        ([("a",)], "rows of 2"),
        ([], "no assignment"),
        (3, "list"),
    ):
        with pytest.raises(UserError, match=said):
            Constraint.from_solutions(wrong, [["a", "b"], [1, 2, 3]])


def chain(n, seed):
    r = random.Random(seed)
    return [[r.choice([-1, 1]) * (i + 1 + o) for o in r.sample(range(4), 3)] for i in range(n - 3) for _ in range(2)]


def test_a_shuffled_chain_compiles_like_the_ordered_one():
    n = 200
    clauses = chain(n, 0)
    ordered = Constraint.from_cnf(clauses, n)
    r = random.Random(1)
    names = r.sample(range(1, n + 1), n)
    shuffled = [
        [(1 if x > 0 else -1) * names[abs(x) - 1] for x in clause] for clause in r.sample(clauses, len(clauses))
    ]
    c = Constraint.from_cnf(shuffled, n, time_limit=30)
    assert c.n_solutions == ordered.n_solutions
    assert c.size < 2 * ordered.size
    log_p = torch.randn(2, n, 2, dtype=torch.float64).log_softmax(-1)
    mixed = log_p[:, torch.tensor(names).argsort()]
    torch.testing.assert_close(c.log_prob(mixed), ordered.log_prob(log_p))


def test_an_order_is_of_all_variables_and_a_good_one_stays():
    assert arranged([], 3) == [0, 1, 2]
    assert arranged([(0, 1), (1, 2), (2, 3)], 5) == [0, 1, 2, 3, 4]
    assert sorted(arranged([(0, 9), (9, 3), (3, 7), tuple(range(10))], 10)) == list(range(10))
