"""Constraints against brute force: every assignment, every path, both evaluators."""

import importlib.util
import itertools
import math
import tempfile
from functools import reduce

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gedi.errors import UserError
from gedi.logic import Constraint, all_different, at_most_k, compiled, exactly_k, sorted_, sums_to
from gedi.logic.circuit import Circuit, from_table
from gedi.logic.diagram import from_solutions
from gedi.logic.limits import Budget, Limits
from gedi.logic.sdd import Space

BACKENDS = [
    "layered",
    pytest.param(
        "klay",
        marks=pytest.mark.skipif(importlib.util.find_spec("klay") is None, reason="klaycircuits is not installed"),
    ),
]
ADDITION = Constraint.from_predicate(lambda a, b, c: a + b == c, [range(10)] * 3)


@st.composite
def sizes_of(draw, variables=4, values=4):
    sizes = draw(st.lists(st.integers(1, values), min_size=1, max_size=variables))
    assume(math.prod(sizes) > 1)
    return sizes


def picked(draw, sizes):
    """Some assignments, not none and not all."""
    every = list(itertools.product(*map(range, sizes)))
    bits = draw(st.integers(1, 2 ** len(every) - 2))
    return [row for i, row in enumerate(every) if bits >> i & 1]


@st.composite
def tables(draw, variables=4, values=4):
    sizes = draw(sizes_of(variables, values))
    return sizes, picked(draw, sizes)


def domains_of(sizes):
    """Values that are not their own numbers."""
    return [[f"v{k}" if i % 2 else 10 * k + 3 for k in range(size)] for i, size in enumerate(sizes)]


def by_rule(sizes, rows):
    domains = domains_of(sizes)
    allowed = {tuple(d[k] for d, k in zip(domains, row, strict=True)) for row in rows}
    return Constraint.from_predicate(lambda *values: values in allowed, domains)


def by_diagram(sizes, rows):
    diagram = from_solutions(np.array(rows), sizes)
    return Constraint(diagram.circuit(), domains_of(sizes), diagram=diagram)


def by_sdd(sizes, rows):
    space = Space(sizes, Budget(Limits(), ""))
    formula = space.any(space.all(space.value(i, k) for i, k in enumerate(row)) for row in rows)
    return Constraint(space.circuit([space.compiled(formula)]), domains_of(sizes))


PATHS = {"table": by_rule, "diagram": by_diagram, "sdd": by_sdd}


# --- against brute force


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=80)
@given(case=tables())
def test_any_truth_table_is_computed_exactly(case, path, backend, agrees):
    agrees(PATHS[path](*case).with_backend(backend), case[1])


@st.composite
def automata(draw):
    sizes = draw(sizes_of())
    states = draw(st.integers(1, 4))
    target = st.one_of(st.none(), st.integers(0, states - 1))
    table = {(s, k): draw(target) for s in range(states) for k in range(max(sizes))}
    good = draw(st.sets(st.integers(0, states - 1)))
    return sizes, table, good


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=100)
@given(case=automata(), named=st.booleans())
def test_any_automaton_is_computed_exactly(case, named, backend, agrees):
    sizes, table, good = case

    def end(row):
        state = 0
        for k in row:
            state = None if state is None else table[state, k]
        return state in good

    every = list(itertools.product(*map(range, sizes)))
    rows = [row for row in every if end(row)]
    accept = good if named else (lambda s: s in good)
    make = lambda: Constraint.from_automaton(len(sizes), 0, lambda s, k: table[s, k], accept, [range(n) for n in sizes])  # noqa: E731
    if not rows or len(rows) == len(every):
        with pytest.raises(UserError, match="every assignment" if rows else "no assignment"):
            make()
        return
    agrees(make().with_backend(backend), rows)


def tree_of(draw, leaves):
    """A random combination: how to build it, and which assignments it allows."""
    kind = draw(st.sampled_from(["leaf", "leaf", "not", "and", "or"])) if leaves > 1 else "leaf"
    if kind == "leaf":
        return kind, ()
    if kind == "not":
        return kind, (tree_of(draw, leaves - 1),)
    return kind, (tree_of(draw, leaves // 2), tree_of(draw, leaves - leaves // 2))


def combined(tree, draw_leaf):
    """The constraint and its assignments; None where it became trivial."""
    kind, below = tree
    if kind == "leaf":
        return draw_leaf()
    parts = [combined(child, draw_leaf) for child in below]
    if any(part is None for part in parts):
        return None
    made = [part[0] for part in parts]
    sets = [part[1] for part in parts]
    every = set(itertools.product(*map(range, made[0].sizes)))
    rows = {"not": lambda: every - sets[0], "and": lambda: sets[0] & sets[1], "or": lambda: sets[0] | sets[1]}[kind]()
    make = {"not": lambda: ~made[0], "and": lambda: made[0] & made[1], "or": lambda: made[0] | made[1]}[kind]
    if not rows or rows == every:
        with pytest.raises(UserError, match="every assignment" if rows else "no assignment"):
            make()
        return None
    return make(), rows


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("path", ["diagram", "sdd"])
@settings(max_examples=80)
@given(data=st.data())
def test_any_combination_is_computed_exactly(data, path, backend, agrees):
    sizes = data.draw(sizes_of(3, 3))
    tree = tree_of(data.draw, 4)

    def leaf():
        rows = picked(data.draw, sizes)
        return Constraint(from_table(np.array(rows), sizes), domains_of(sizes)), set(rows)

    with pytest.MonkeyPatch.context() as patch:
        if path == "sdd":  # nothing is small enough to be listed
            patch.setattr(compiled, "DIAGRAM_FROM", -1)
        result = combined(tree, leaf)
        if result is not None:
            if path == "sdd":
                assert result[0]._diagram is None
            agrees(result[0].with_backend(backend), result[1])


@settings(max_examples=100)
@given(data=st.data())
def test_a_constraint_laid_on_more_variables_speaks_of_those_and_no_others(data, agrees):
    sizes, rows = data.draw(tables(3, 3))
    wide = data.draw(st.integers(len(sizes), len(sizes) + 2))
    places = data.draw(st.permutations(range(wide)))[: len(sizes)]
    domains = [data.draw(st.sampled_from([["x"], ["x", "y"], "abc"])) for _ in range(wide)]
    for place, domain in zip(places, domains_of(sizes), strict=True):
        domains[place] = domain
    make = PATHS[data.draw(st.sampled_from(sorted(PATHS)))]
    laid = make(sizes, rows).on(places, domains)
    every = itertools.product(*(range(len(domain)) for domain in domains))
    agrees(laid, [row for row in every if tuple(row[place] for place in places) in set(rows)])


@settings(max_examples=40)
@given(case=tables(3, 3), other=st.data())
def test_laid_constraints_combine(case, other, agrees):
    sizes, rows = case
    domains = domains_of(sizes)
    wide = [*domains, domains[0]]
    first = by_rule(sizes, rows).on(range(len(sizes)), wide)
    second = by_diagram(sizes[:1], ends).on([len(sizes)], wide) if (ends := _some(other, sizes[:1])) else None
    if second is None:
        return
    every = list(itertools.product(*(range(len(domain)) for domain in wide)))
    agrees(first & second, [row for row in every if row[:-1] in set(rows) and row[-1:] in set(ends)])
    agrees(first | second, [row for row in every if row[:-1] in set(rows) or row[-1:] in set(ends)])


def _some(data, sizes):
    return picked(data.draw, sizes) if math.prod(sizes) > 1 else None


@pytest.mark.parametrize("backend", BACKENDS)
def test_its_gradient_is_right_by_finite_differences(backend):
    log_p = torch.randn(2, 3, 10, dtype=torch.float64).log_softmax(-1).requires_grad_()
    assert torch.autograd.gradcheck(ADDITION.with_backend(backend).log_prob, log_p)
    chain = sums_to(5, range(4), total=7).with_backend(backend)
    log_p = torch.randn(2, 5, 4, dtype=torch.float64).log_softmax(-1).requires_grad_()
    assert torch.autograd.gradcheck(chain.log_prob, log_p)


def test_different_constraints_have_different_gradients_on_the_same_input():
    log_p = torch.zeros(1, 3, 10, dtype=torch.float64)
    shifted = Constraint.from_predicate(lambda a, b, c: a + b == c + 1, [range(10)] * 3)
    assert not torch.allclose(ADDITION.posterior(log_p), shifted.posterior(log_p))


# --- far from one


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 2e-2)])
@pytest.mark.parametrize("path", PATHS)
def test_nothing_underflows_at_minus_a_hundred_thousand(path, dtype, tolerance, backend, brute):
    sizes = [3, 4, 2]
    rows = [row for row in itertools.product(*map(range, sizes)) if sum(row) % 3 != 1]
    log_p = (torch.randn(5, 3, 4).double() * 64).round() / 64 - 33_333.0  # exact in float32 too
    leaf = log_p.to(dtype).requires_grad_()
    ours = PATHS[path](sizes, rows).with_backend(backend).log_prob(leaf, normalised=False)
    ours.sum().backward()
    value, posterior = brute(rows, log_p)
    assert (value < -99_000).all()
    torch.testing.assert_close(ours.double(), value, rtol=1e-7 if dtype == torch.float32 else 1e-14, atol=0)
    torch.testing.assert_close(leaf.grad.double(), posterior, rtol=0, atol=tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_certain_symbols_give_exactly_one_or_zero_and_finite_gradients(dtype, path, backend):
    sizes = [3, 2, 3]
    every = list(itertools.product(*map(range, sizes)))
    rows = [row for row in every if row[0] + row[1] != row[2]]
    c = PATHS[path](sizes, rows).with_backend(backend)
    log_p = torch.full((len(every), 3, 3), -torch.inf, dtype=dtype)
    log_p.scatter_(2, torch.tensor(every)[..., None], 0.0)
    leaf = log_p.clone().requires_grad_()
    out = c.log_prob(leaf)
    out.sum().backward()
    holds = torch.tensor([row in rows for row in every])
    assert (out[holds] == 0).all()
    assert torch.isneginf(out[~holds]).all()
    assert torch.equal(leaf.grad[holds], log_p[holds].exp())  # the posterior is the input
    assert (leaf.grad[~holds] == 0).all()


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=60)
@given(case=tables(), data=st.data())
def test_impossible_values_among_possible_ones_give_the_right_value_and_gradient(case, data, backend, brute):
    sizes, rows = case
    path = data.draw(st.sampled_from(sorted(PATHS)))
    shape = (4, len(sizes), max(sizes))
    g = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    log_p = torch.randn(shape, generator=g, dtype=torch.float64)
    log_p[torch.rand(shape, generator=g) < 0.3] = -torch.inf
    leaf = log_p.clone().requires_grad_()
    ours = PATHS[path](sizes, rows).with_backend(backend).log_prob(leaf, normalised=False)
    ours.sum().backward()
    value, posterior = brute(rows, log_p)
    torch.testing.assert_close(ours, value, rtol=0, atol=1e-10)
    torch.testing.assert_close(leaf.grad, posterior, rtol=0, atol=1e-10)
    assert (leaf.grad[torch.isneginf(log_p)] == 0).all()


def test_an_impossible_group_does_not_disturb_its_neighbours():
    log_p = torch.randn(3, 3, 10, dtype=torch.float64)
    alone = ADDITION.posterior(log_p[[0, 2]])
    log_p[1] = -torch.inf
    together = ADDITION.posterior(log_p)
    assert torch.equal(together[[0, 2]], alone)
    assert (together[1] == 0).all()


# --- what it says


def test_addition_has_the_marginals_of_the_formula():
    d = torch.arange(10, dtype=torch.float64)
    expected = torch.stack([(10 - d) / 55, (10 - d) / 55, (d + 1) / 55])
    marginals = ADDITION.marginals()
    torch.testing.assert_close(marginals, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(marginals.mean(dim=0), (21 - d) / 165, rtol=0, atol=1e-12)
    assert ADDITION.n_solutions == 55


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_posterior_is_the_gradient_and_adds_up_to_one(backend):
    log_p = torch.randn(4, 3, 10, dtype=torch.float64).log_softmax(-1)
    posterior = ADDITION.with_backend(backend).posterior(log_p)
    torch.testing.assert_close(posterior.sum(-1), torch.ones(4, 3, dtype=torch.float64), rtol=0, atol=1e-12)
    with torch.no_grad():  # asked inside an evaluation too
        assert torch.equal(ADDITION.with_backend(backend).posterior(log_p), posterior)


def test_probability_is_log_prob_of_the_logs():
    p = torch.rand(4, 3, 10, dtype=torch.float64).softmax(-1)
    torch.testing.assert_close(ADDITION.probability(p), ADDITION.log_prob(p.log()).exp())
    torch.testing.assert_close(ADDITION.probability(list(p.unbind(1))), ADDITION.probability(p))


WORDS = Constraint.from_predicate(lambda a, b: a + b in ("ab", "ba"), ["ab", ("a", "b", "c")])


@pytest.mark.parametrize(
    "values",
    [
        [["a", "b"], ["a", "a"], ["b", "a"], ["b", "c"]],
        [("a", "b"), ("a", "a"), ("b", "a"), ("b", "c")],
        ["ab", "aa", "ba", "bc"],
        np.array([["a", "b"], ["a", "a"], ["b", "a"], ["b", "c"]]),
    ],
    ids=["lists", "tuples", "strings", "numpy"],
)
def test_words_can_be_asked_for(values):
    assert WORDS.is_satisfied(values).tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    "convert",
    [list, np.array, torch.tensor, lambda x: torch.tensor(x).float(), lambda x: [torch.tensor(row) for row in x]],
    ids=["lists", "numpy", "tensor", "floats", "tensors"],
)
def test_numbers_can_be_asked_for_in_any_container(convert):
    assert ADDITION.is_satisfied(convert([[2, 3, 5], [2, 3, 6], [0, 0, 0]])).tolist() == [True, False, True]


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_groups_give_no_answers(backend):
    c = ADDITION.with_backend(backend)
    assert c.is_satisfied([]).shape == (0,)
    assert c.log_prob(torch.zeros(0, 3, 10)).shape == (0,)
    assert c.posterior(torch.zeros(0, 3, 10)).shape == (0, 3, 10)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[2, 3, 11]], "variable x3 must have a value of its domain, got 11"),
        ([["2", 3, 5]], "variable x1 must have a value of its domain, got '2'"),
        ([[2, 3]], "rows of 3"),
        ([2, 3, 5], "rows of 3"),
        (np.array([2, 3, 5]), "rows of 3"),
        ([[[2], [3], [5]]], "variable x1"),
    ],
)
def test_values_that_do_not_fit_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        ADDITION.is_satisfied(values)


def test_padding_is_ignored_and_receives_no_gradient(brute):
    c = Constraint.from_predicate(lambda a, b, c: a != b + c, [range(4), range(2), range(3)])
    rows = [row for row in itertools.product(range(4), range(2), range(3)) if row[0] != row[1] + row[2]]
    padded = torch.randn(5, 3, 4, dtype=torch.float64)
    value, posterior = brute(rows, padded)
    for rubbish in (0.0, 1e9, -torch.inf, torch.nan):
        leaf = padded.clone()
        leaf[:, 1, 2:] = rubbish
        leaf[:, 2, 3:] = rubbish
        leaf.requires_grad_()
        out = c.log_prob(leaf, normalised=False)
        out.sum().backward()
        torch.testing.assert_close(out, value, rtol=0, atol=1e-12)
        torch.testing.assert_close(leaf.grad, posterior, rtol=0, atol=1e-12)
        assert (leaf.grad[:, 1, 2:] == 0).all()
    tensors = [padded[:, 0], padded[:, 1, :2], padded[:, 2, :3]]
    torch.testing.assert_close(c.log_prob(tensors, normalised=False), value, rtol=0, atol=1e-12)
    assert (c.marginals()[1, 2:] == 0).all()


def test_leading_dimensions_are_kept():
    log_p = torch.randn(2, 5, 3, 10).log_softmax(-1)
    out = ADDITION.log_prob(log_p)
    assert out.shape == (2, 5)
    torch.testing.assert_close(out.view(-1), ADDITION.log_prob(log_p.view(10, 3, 10)))
    assert ADDITION.log_prob(log_p[0, 0]).shape == ()
    assert ADDITION.log_prob([log_p[:, :, i] for i in range(3)]).shape == (2, 5)
    assert ADDITION.posterior(log_p).shape == log_p.shape


def two_queries(conditional=False, fixed=()):
    """a == b and a != b over two bits; under evidence a = 1 if conditional."""
    if not conditional:
        return Constraint(
            Circuit(
                4,
                np.array([1, 1, 2, 1, 1, 2], dtype=np.uint8),
                np.array([0, 2, 4, 6, 8, 10, 12]),
                np.array([0, 2, 1, 3, 4, 5, 0, 3, 1, 2, 7, 8]),
                np.array([6, 9]),
            ),
            [[0, 1]] * 2,
            queries=["same", "other"],
        )
    return Constraint(
        Circuit(
            4,
            np.array([1, 1, 2, 1], dtype=np.uint8),
            np.array([0, 2, 4, 6, 8]),
            np.array([1, 3, 1, 2, 2, 3, 1, 6]),
            np.array([4, 5, 7]),  # a = 1 and b = 1; a = 1 and b = 0; a = 1
        ),
        [[0, 1]] * 2,
        queries=["same", "other"],
        conditional=True,
    )


@pytest.mark.parametrize("conditional", [False, True])
def test_one_of_several_queries_is_a_constraint_of_its_own(conditional):
    both = two_queries(conditional)
    log_p = torch.randn(4, 2, 2, dtype=torch.float64).log_softmax(-1)
    out = both.log_prob(log_p)
    assert out.shape == (4, 2)
    p = log_p.exp()
    same = p[:, 1, 1] if conditional else (p[:, 0] * p[:, 1]).sum(-1)
    torch.testing.assert_close(out.exp(), torch.stack([same, 1 - same], dim=1))
    for name, column in (("same", 0), ("other", 1), (0, 0), (1, 1), (-1, 1), (-2, 0)):
        assert both[name].queries is None
        torch.testing.assert_close(both[name].log_prob(log_p), out[:, column])
    assert both.log_prob(log_p.expand(3, 4, 2, 2)).shape == (3, 4, 2)


def test_a_conditional_gradient_is_that_of_the_quotient():
    both = two_queries(conditional=True)
    log_p = torch.randn(3, 2, 2, dtype=torch.float64).log_softmax(-1).requires_grad_()
    assert torch.autograd.gradcheck(both.log_prob, log_p)


@pytest.mark.parametrize("what", ["n_solutions", "posterior", "marginals", "solutions", "~", "&", "on"])
def test_a_question_about_one_query_asks_to_choose(what):
    both = two_queries()
    ask = {
        "n_solutions": lambda: both.n_solutions,
        "posterior": lambda: both.posterior(torch.zeros(1, 2, 2)),
        "marginals": both.marginals,
        "solutions": both.solutions,
        "~": lambda: ~both,
        "&": lambda: both["same"] & both,
        "on": lambda: both.on([0, 1], [[0, 1]] * 3),
    }[what]
    with pytest.raises(UserError, match=r"choose one as constraint\['same'\]"):
        ask()


def test_its_text_names_variables_and_size():
    assert repr(ADDITION) == "Constraint(x1: 10, x2: 10, x3: 10; 220 edges)"
    assert ADDITION.size == 220  # 55 products of three, and their sum
    assert repr(sums_to(12, range(10), total=40)).startswith("Constraint(x1: 10, x2: 10, x3: 10,")
    assert "x8: 10, ...;" in repr(sums_to(12, range(10), total=40))


def test_names_of_variables_survive_every_combination():
    rows = np.array([[0, 1], [1, 0]])
    c = Constraint(from_table(rows, [2, 2]), [[0, 1]] * 2, variables=["left", "right"])
    for made in (c & ~by_pairs([(0, 1)]), c | by_pairs([(0, 0)]), ~c, c.with_backend("layered")):
        assert made.variables == ("left", "right")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "DIAGRAM_FROM", -1)
        again = Constraint(c.circuit, c.domains, variables=c.variables)
        assert (~again).variables == ("left", "right")


def by_pairs(rows):
    return Constraint(from_table(np.array(rows), [2, 2]), [[0, 1]] * 2)


def test_a_sudoku_of_four_by_four_has_288_solutions():
    cells = [range(4)] * 16
    blocks = [[r + i + 4 * (c + j) for i in (0, 1) for j in (0, 1)] for r in (0, 2) for c in (0, 2)]
    lines = [[4 * r + c for c in range(4)] for r in range(4)] + [[4 * r + c for r in range(4)] for c in range(4)]
    parts = [all_different(4, range(4)).on(places, cells) for places in lines + blocks]
    sudoku = reduce(lambda a, b: a & b, parts)
    assert sudoku.n_solutions == 288
    torch.testing.assert_close(sudoku.marginals(), torch.full((16, 4), 0.25, dtype=torch.float64))


# --- what it refuses


B = [False, True]
PAIR = Constraint.from_predicate(lambda a, b: a < b, [range(3)] * 2)
WIDE = [range(50)] * 5  # too many assignments to ask one by one

TRIVIAL = {
    "predicate, never": (lambda: Constraint.from_predicate(lambda a, b: a + b == 9, [range(3)] * 2), False),
    "predicate, always": (lambda: Constraint.from_predicate(lambda a, b: a + b < 9, [range(3)] * 2), True),
    "large predicate, never": (lambda: Constraint.from_predicate(lambda a, b, c, d, e: a + b + c + d + e < 0, WIDE), 0),
    "large predicate, always": (
        lambda: Constraint.from_predicate(lambda a, b, c, d, e: a + b + c + d + e >= 0, WIDE),
        1,
    ),
    "one value": (lambda: Constraint.from_predicate(lambda a: a == 1, [[1]]), True),
    "automaton, never": (lambda: Constraint.from_automaton(3, 0, lambda s, v: s + v, {9}, B), False),
    "automaton, nothing accepted": (lambda: Constraint.from_automaton(3, 0, lambda s, v: s, [], B), False),
    "automaton, all rejected": (lambda: Constraint.from_automaton(3, 0, lambda s, v: None, {0}, B), False),
    "automaton, always": (lambda: Constraint.from_automaton(3, 0, lambda s, v: s + v, lambda s: True, B), True),
    "cnf, never": (lambda: Constraint.from_cnf([[1], [-1]]), False),
    "cnf, empty clause": (lambda: Constraint.from_cnf([[1, 2], []]), False),
    "cnf, always": (lambda: Constraint.from_cnf([[1, -1]]), True),
    "cnf, no clauses": (lambda: Constraint.from_cnf([], variables=3), True),
    "cnf, one value taken away": (lambda: Constraint.from_cnf([[-1]], variables=[1, 2]), False),
    "dimacs, never": (lambda: Constraint.from_cnf("p cnf 1 2\n1 0\n-1 0\n"), False),
    "problog, never": (lambda: Constraint.from_problog(ADD, "add2(a,b,9)"), False),
    "sum out of reach": (lambda: sums_to(3, range(3), total=7), False),
    "one number is different from itself": (lambda: all_different(1, range(3)), True),
    "one number is sorted": (lambda: sorted_(1, range(3)), True),
    "strictly sorted beyond the domain": (lambda: sorted_(4, range(3), strictly=True), False),
    "more than there are": (lambda: exactly_k(3, 4, B), False),
    "at most all": (lambda: at_most_k(3, 3, B), True),
    "and, never": (lambda: PAIR & ~PAIR, False),
    "or, always": (lambda: PAIR | ~PAIR, True),
    "sdd and, never": (lambda: _without_diagrams(lambda c: c & ~c), False),
    "sdd or, always": (lambda: _without_diagrams(lambda c: c | ~c), True),
}
ADD = "nn(net,[X],Y,[0,1,2]) :: digit(X,Y).\nadd2(X,Y,Z) :- digit(X,A), digit(Y,B), Z is A + B.\n"


def _without_diagrams(make):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "DIAGRAM_FROM", -1)
        return make(Constraint(PAIR.circuit, PAIR.domains))


@pytest.mark.parametrize("name", TRIVIAL)
def test_what_always_or_never_holds_is_refused_at_construction(name):
    make, everything = TRIVIAL[name]
    message = "every assignment satisfies" if everything else "no assignment satisfies|can never|no solution|never"
    with pytest.raises(UserError, match=message):
        make()


DOMAINS = {
    "a number": ([3, 3], r"domain 0 must be the values of a variable, got 3; use range\(3\)"),
    "no domains": ([], "at least one variable"),
    "an empty domain": ([range(3), []], r"domain 1 must hold different values, at least one, got \[\]"),
    "a repeated value": ([range(3), [1, 2, 1]], r"domain 1 must hold different values, at least one, got \[1, 2, 1\]"),
    "values that are lists": ([range(3), [[1], [2]]], "domain 1 must hold values that can be told apart"),
    "not a list": (3, "domains must be a list"),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_domains_that_are_none_are_refused(name):
    domains, message = DOMAINS[name]
    with pytest.raises(UserError, match=message):
        Constraint.from_predicate(lambda a, b: a == b, domains)
    with pytest.raises(UserError, match=message):
        PAIR.on([0, 1], domains)


@pytest.mark.parametrize(
    "make",
    [
        lambda d: Constraint.from_automaton(3, 0, lambda s, v: s, {0}, d),
        lambda d: all_different(3, d),
        lambda d: sorted_(3, d),
        lambda d: sums_to(3, d, total=4),
        lambda d: sums_to(3, d),
        lambda d: exactly_k(3, 1, d),
        lambda d: at_most_k(3, 1, d),
    ],
)
@pytest.mark.parametrize(("domain", "message"), [(4, r"use range\(4\)"), ([1, 2, 1], "different values")])
def test_one_domain_for_all_is_checked_too(make, domain, message):
    with pytest.raises(UserError, match=message):
        make(domain)


REFUSED = {
    "n of an automaton": (lambda: Constraint.from_automaton(0, 0, lambda s, v: s, {0}, B), "at least one variable"),
    "domains of an automaton": (lambda: Constraint.from_automaton(3, 0, max, {0}, [B, B]), "needs one domain or 3"),
    "no Booleans": (lambda: Constraint.from_cnf([]), "at least one variable"),
    "more values than variables": (lambda: all_different(4, range(3)), "4 variables cannot all differ with 3 values"),
    "shape": (lambda: ADDITION.log_prob(torch.zeros(4, 3, 9)), r"\(groups, 3 variables, 10 values\), got \(4, 3, 9\)"),
    "variables": (lambda: ADDITION.log_prob(torch.zeros(4, 2, 10)), r"got \(4, 2, 10\)"),
    "dimensions": (lambda: ADDITION.log_prob(torch.zeros(10)), r"got \(10,\)"),
    "too few tensors": (lambda: ADDITION.log_prob([torch.zeros(4, 10)] * 2), "a tensor .groups, values. for each of"),
    "sizes of tensors": (lambda: ADDITION.log_prob([torch.zeros(4, 10)] * 2 + [torch.zeros(4, 9)]), r"\(4, 9\)"),
    "groups of tensors": (lambda: ADDITION.log_prob([torch.zeros(4, 10)] * 2 + [torch.zeros(3, 10)]), r"\(3, 10\)"),
    "tensors without dimensions": (lambda: ADDITION.log_prob([torch.tensor(0.0)] * 3), r"got \[\(\), \(\), \(\)\]"),
    "other domains": (lambda: PAIR & ADDITION, r"over the same variables.*on\(places, domains\)"),
    "other values": (lambda: PAIR | sorted_(2, "abc"), "over the same variables"),
    "too few places": (lambda: PAIR.on([0], [range(3)] * 3), "2 different places"),
    "the same place twice": (lambda: PAIR.on([1, 1], [range(3)] * 3), "2 different places"),
    "a place that is not there": (lambda: PAIR.on([0, 3], [range(3)] * 3), "between 0 and 2"),
    "another domain": (lambda: PAIR.on([0, 1], [range(3), range(4)]), "variable 1 must keep its domain at place 1"),
    "unknown query": (lambda: two_queries()["both"], "no query 'both'; there are: same, other"),
    "query number": (lambda: two_queries()[2], "no query 2"),
    "query of one": (lambda: ADDITION["x"], "there are: none"),
    "listing too many": (lambda: ADDITION.solutions(limit=54), "55 solutions, more than limit=54"),
    "backend": (lambda: ADDITION.with_backend("kaly").posterior(torch.zeros(1, 3, 10)), "did you mean 'klay'"),
    "fewer than none": (lambda: at_most_k(3, -1, B), "k must be a whole number, at least 0, got -1"),
    "evidence": (lambda: two_queries(conditional=True)[0].solutions(), "without plain probabilities or evidence"),
    "combined evidence": (lambda: ~two_queries(conditional=True)[0], "combined in their program"),
    "laid evidence": (lambda: two_queries(conditional=True)[0].on([0, 1], [[0, 1]] * 3), "decision diagram"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_refused_in_one_line(name):
    make, message = REFUSED[name]
    with pytest.raises(UserError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


LIMITED = {
    "automaton": lambda **k: Constraint.from_automaton(8, 0, lambda s, v: s * 10 + v, {8, 9}, range(10), **k),
    "expression": lambda **k: Constraint.from_predicate(
        lambda *x: sum(v * 10**i for i, v in enumerate(x)) % 7 == 3, [range(10)] * 8, **k
    ),
    "cnf": lambda **k: Constraint.from_cnf([[1 + i, 40 - i, -(1 + (7 * i) % 40)] for i in range(40)], **k),
    "problog": lambda **k: Constraint.from_problog(
        ADD + "many(X,Y,U,V) :- add2(X,Y,S), add2(U,V,S).", "many(a,b,c,d)", **k
    ),
}


@pytest.mark.parametrize("name", LIMITED)
def test_a_compilation_stops_at_its_limits(name):
    with pytest.raises(UserError, match=r"more than 5 nodes.*raise size_limit"):
        LIMITED[name](size_limit=5)
    with pytest.raises(UserError, match=r"within 0 s.*raise time_limit"):
        LIMITED[name](time_limit=0)


@pytest.mark.parametrize("listed", [True, False])
def test_a_combination_stops_at_its_limits_and_its_advice_can_be_followed(listed, monkeypatch):
    a, b = sorted_(4, range(4)), all_different(4, range(4))
    strict = sorted_(4, range(4), strictly=True)
    if not listed:
        monkeypatch.setattr(compiled, "DIAGRAM_FROM", -1)
        a, b = Constraint(a.circuit, a.domains), Constraint(b.circuit, b.domains)
    for combine, method in ((a.conjoin, r"a\.conjoin\(b\) is a & b"), (a.disjoin, r"a\.disjoin\(b\) is a \| b")):
        with pytest.raises(UserError, match=rf"more than 3 nodes; .*{method} and takes limits\), or raise size_limit"):
            combine(b, size_limit=3)
        with pytest.raises(UserError, match=r"within 0 s; .*or raise time_limit"):
            combine(b, time_limit=0)
    assert a.conjoin(b, size_limit=10_000, time_limit=30).solutions() == (a & b).solutions() == strict.solutions()
    assert a.disjoin(b, size_limit=10_000).n_solutions == (a | b).n_solutions == a.n_solutions + b.n_solutions - 1
    assert a.negate(size_limit=10_000).n_solutions == (~a).n_solutions == 4**4 - a.n_solutions


def test_a_negation_without_a_diagram_stops_at_its_limits(monkeypatch):
    monkeypatch.setattr(compiled, "DIAGRAM_FROM", -1)
    c = Constraint(ADDITION.circuit, ADDITION.domains)
    with pytest.raises(
        UserError, match=r"more than 3 nodes; .*c\.negate\(\) is ~c and takes limits\), or raise size_limit"
    ):
        c.negate(size_limit=3)


def test_no_temporary_files_are_left(tmp_path, monkeypatch):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert tempfile.gettempdir() == str(place)
    Constraint.from_cnf([[1, 2], [-1, -2]])
    _without_diagrams(lambda c: ~c)
    Constraint.from_problog(ADD, "add2(a,b,3)")
    for name in LIMITED:
        with pytest.raises(UserError):
            LIMITED[name](size_limit=5)
    for name in ("cnf, never", "sdd and, never", "problog, never"):
        with pytest.raises(UserError):
            TRIVIAL[name][0]()
    assert list(place.iterdir()) == []
    assert not list(tmp_path.rglob("*.tmp"))


# --- second derivatives


def _hessian(f, x):
    """The matrix of second derivatives by autograd, of brute force too."""
    return torch.autograd.functional.hessian(lambda flat: f(flat.view(x.shape)).sum(), x.reshape(-1))


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=15)
@given(case=tables(3, 3), seed=st.integers(0, 1000))
def test_second_derivatives_are_those_of_the_sum_over_assignments(case, path, seed):
    sizes, rows = case
    c = PATHS[path](sizes, rows)
    g = torch.Generator().manual_seed(seed)
    log_p = torch.randn(2, len(sizes), max(sizes), generator=g, dtype=torch.float64)

    def listed(x):
        index = torch.tensor(rows)
        weight = sum(x[:, i, index[:, i]] for i in range(len(sizes)))
        return weight.logsumexp(dim=1)

    ours = _hessian(lambda x: c.log_prob(x, normalised=False), log_p)
    torch.testing.assert_close(ours, _hessian(listed, log_p), rtol=0, atol=1e-10)


def test_second_derivatives_are_right_by_finite_differences():
    log_p = torch.randn(2, 3, 10, dtype=torch.float64).log_softmax(-1).requires_grad_()
    assert torch.autograd.gradgradcheck(ADDITION.log_prob, log_p)
    conditional = two_queries(conditional=True)
    log_p = torch.randn(3, 2, 2, dtype=torch.float64).log_softmax(-1).requires_grad_()
    assert torch.autograd.gradgradcheck(conditional.log_prob, log_p)


def test_second_derivatives_at_certain_symbols_are_finite():
    log_p = torch.full((2, 3, 10), -torch.inf, dtype=torch.float64)
    log_p.scatter_(2, torch.tensor([[2, 3, 5], [2, 3, 6]])[..., None], 0.0)  # one holds, one cannot
    log_p[0, 0, :] = math.log(0.1)
    log_p.requires_grad_()
    (grad,) = torch.autograd.grad(ADDITION.log_prob(log_p).exp().sum(), log_p, create_graph=True)
    (second,) = torch.autograd.grad(grad.sum(), log_p)
    assert second.isfinite().all()
    assert second[0, 0, 2] == pytest.approx(0.3)  # the sum of the gradient is 3 P, and dP / dlog p = P = 0.1
    assert (second[1] == 0).all()


def test_a_penalty_on_the_gradient_is_felt():
    x = torch.randn(4, 3, 10, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(ADDITION.log_prob(x.log_softmax(-1)).sum(), x, create_graph=True)
    (felt,) = torch.autograd.grad(grad.pow(2).sum(), x)
    step = 1e-5 * torch.randn(x.shape, dtype=torch.float64)

    def penalty(at):
        at = at.detach().requires_grad_()
        (slope,) = torch.autograd.grad(ADDITION.log_prob(at.log_softmax(-1)).sum(), at)
        return slope.pow(2).sum()

    difference = (penalty(x + step) - penalty(x - step)) / 2
    torch.testing.assert_close((felt * step).sum(), difference, rtol=1e-5, atol=0)


@pytest.mark.skipif(importlib.util.find_spec("klay") is None, reason="klaycircuits is not installed")
def test_klay_refuses_second_derivatives():
    x = torch.randn(4, 3, 10).log_softmax(-1).requires_grad_()
    out = ADDITION.with_backend("klay").log_prob(x).sum()
    with pytest.raises(UserError, match=r"no second derivatives.*with_backend\('layered'\)"):
        torch.autograd.grad(out, x, create_graph=True)


# --- what is a probability


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1000.0])
def test_what_a_softmax_gives_is_taken_in_every_precision(scale, dtype):
    p = (scale * torch.randn(50, 3, 10)).to(dtype).softmax(-1)
    for log_p in (p.log(), p.log().to(dtype), (scale * torch.randn(50, 3, 10)).to(dtype).log_softmax(-1)):
        ADDITION.log_prob(log_p)
    ADDITION.log_prob(p.clamp_min(1e-6).log())  # how many people avoid log 0
    ADDITION.probability(p)


UNEVEN = Constraint.from_predicate(lambda a, b: a < b, [range(2), range(3)])
NO_PROBABILITIES = {
    "logits": (lambda: torch.randn(4, 3, 10, generator=torch.Generator().manual_seed(0)), r"add up to \d"),
    "log-probabilities above 0": (lambda: torch.full((1, 3, 10), 0.5), "variable x1 of group 0 add up to 16.48"),
    "probabilities": (lambda: torch.full((1, 3, 10), 0.1), "add up to 11.05"),
    "one that is too large": (lambda: _with(2, 1, 0, math.log(0.3)), "variable x2 of group 2 add up to 1.2 instead"),
    "one per cent too much": (lambda: _uniform() + 0.01, "add up to 1.01005 instead of 1"),
    "NaN": (lambda: _with(3, 2, 4, torch.nan), "got NaN for variable x3 of group 3"),
    "infinity": (lambda: _with(0, 0, 0, torch.inf), "add up to inf"),
    "nothing possible": (lambda: torch.full((1, 3, 10), -torch.inf), "add up to 0 instead"),
}


def _uniform():
    return torch.full((4, 3, 10), 0.1).log()


def _with(group, variable, value, x):
    log_p = _uniform()
    log_p[group, variable, value] = x
    return log_p


@pytest.mark.parametrize("name", NO_PROBABILITIES)
def test_what_is_no_probability_is_refused_unless_told_otherwise(name):
    make, message = NO_PROBABILITIES[name]
    with pytest.raises(UserError, match=message):
        ADDITION.log_prob(make())
    with pytest.raises(UserError, match=message):
        ADDITION.log_prob(list(make().unbind(1)))
    assert ADDITION.log_prob(make(), normalised=False).shape == make().shape[:1]


def test_weights_are_summed_where_one_says_so(brute):
    weights = torch.randn(4, 2, 3, dtype=torch.float64)
    rows = [(0, 1), (0, 2), (1, 2)]
    torch.testing.assert_close(UNEVEN.log_prob(weights, normalised=False), brute(rows, weights)[0])
    counted = UNEVEN.probability([torch.ones(1, 2), torch.ones(1, 3)], normalised=False)
    assert counted.tolist() == [UNEVEN.n_solutions] == [3.0]


def test_padding_that_holds_probability_is_refused():
    with pytest.raises(UserError, match=r"variable x1 of group 0 add up to 0\.666667"):
        UNEVEN.log_prob(torch.zeros(1, 2, 3).log_softmax(-1))
    logits = torch.zeros(1, 2, 3)
    logits[:, 0, 2] = -torch.inf
    assert UNEVEN.log_prob(logits.log_softmax(-1)).exp().tolist() == pytest.approx([1 / 2])


@pytest.mark.parametrize("wrong", [torch.nan, -0.1, torch.inf])
def test_a_probability_is_a_number_from_zero(wrong):
    p = torch.full((2, 3, 10), 0.1)
    p[1, 0, 3] = wrong
    with pytest.raises(UserError, match="p must be finite and at least 0, got"):
        ADDITION.probability(p)
    with pytest.raises(UserError, match="p must be finite and at least 0, got"):
        ADDITION.probability(p, normalised=False)


def test_a_posterior_does_not_depend_on_the_scale_of_the_weights():
    logits = torch.randn(4, 3, 10, dtype=torch.float64)
    torch.testing.assert_close(ADDITION.posterior(logits), ADDITION.posterior(logits.log_softmax(-1)))
    for wrong in (torch.nan, torch.inf):
        logits[1, 0, 3] = wrong
        with pytest.raises(UserError, match="log_p must be below infinity, got"):
            ADDITION.posterior(logits)


# --- what is given in the wrong form


def test_a_program_may_be_a_file(tmp_path):
    path = tmp_path / "add.pl"
    path.write_text(ADD)
    assert (
        Constraint.from_problog(path, "add2(a,b,3)").solutions()
        == Constraint.from_problog(ADD, "add2(a,b,3)").solutions()
    )
