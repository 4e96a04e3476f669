"""Best assignments, random ones, posteriors and derivatives, against everything listed."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gedi.errors import UserError
from gedi.logic import Constraint, all_different

ADDITION = Constraint.from_predicate(lambda a, b, c: a + b == c, [range(5)] * 3)
PARITY = Constraint.from_automaton(8, 0, lambda s, v: (s + v) % 3, {1}, [0, 1, 2])
MIXED = Constraint.from_predicate(lambda a, b, c: a * b >= c, [range(2), range(4), range(3)])
PROGRAM = Constraint.from_problog(
    r"""
    nn(net,[X],Y,[0,1,2]) :: digit(X,Y).
    0.3 :: broken.
    total(A,B,N) :- digit(A,X), digit(B,Y), \+broken, N is X + Y.
    total(A,B,N) :- broken, digit(A,N), digit(B,_).
    """,
    "total(a,b,2)",
)
RULES = {"table": ADDITION, "diagram": PARITY, "mixed": MIXED}


@st.composite
def weighted_rules(draw):
    """Some of the assignments of a few variables, by a table, a diagram or an SDD, and weights with impossible ones."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    every = list(itertools.product(*map(range, sizes)))
    rows = draw(st.lists(st.sampled_from(every), min_size=1, max_size=len(every) - 1, unique=True)) if every[1:] else []
    numbers = draw(st.integers(0, 2**31))
    return sizes, sorted(rows), numbers


def listed(c, log_p):
    """Every satisfying assignment of each group with its log-probability, best first."""
    rows = torch.from_numpy(c.circuit.solutions(c.sizes)).long()
    values = sum(log_p[:, i, rows[:, i]] for i in range(len(c.sizes)))  # (groups, solutions)
    order = values.argsort(dim=1, descending=True)
    return rows, order, values


def inputs(c, groups=3, seed=0, impossible=0.0):
    g = torch.Generator().manual_seed(seed)
    log_p = torch.randn(groups, len(c.sizes), max(c.sizes), generator=g, dtype=torch.float64).log_softmax(-1)
    return log_p.masked_fill(torch.rand(log_p.shape, generator=g) < impossible, -torch.inf)


def check_best(c, log_p, k):
    rows, order, values = listed(c, log_p)
    found = c.k_best(log_p, k)
    assert found.values.shape == (len(log_p), k, len(c.sizes))
    for group in range(len(log_p)):
        possible = [i for i in order[group].tolist() if values[group, i] > -torch.inf][:k]
        n = len(possible)
        torch.testing.assert_close(found.log_prob[group, :n], values[group, possible])
        assert torch.isneginf(found.log_prob[group, n:]).all()
        assert (found.values[group, n:] == -1).all()
        ours = [tuple(row) for row in found.values[group, :n].tolist()]
        assert len(set(ours)) == n  # no two alike, each as probable as it says, all satisfying
        assert set(ours) <= {tuple(row) for row in rows.tolist()}
        for row, value in zip(ours, found.log_prob[group].tolist(), strict=False):
            assert sum(float(log_p[group, i, v]) for i, v in enumerate(row)) == pytest.approx(value)


@settings(max_examples=100, deadline=None)
@given(case=weighted_rules(), k=st.integers(1, 6))
def test_k_best_are_the_best_of_all(case, k):
    sizes, rows, seed = case
    if not rows:
        return
    c = Constraint.from_predicate(lambda *values: values in set(rows), [range(size) for size in sizes])
    check_best(c, inputs(c, seed=seed, impossible=0.2), k)


@pytest.mark.parametrize("k", [1, 4, 70])
@pytest.mark.parametrize("rule", RULES)
def test_k_best_of_every_form(rule, k):
    check_best(RULES[rule], inputs(RULES[rule]), k)


def test_k_best_of_clauses():
    c = Constraint.from_cnf([[1, 2, -3], [-1, 4], [3, 5, 6], [-5, -6], [2, -6]])
    check_best(c, inputs(c), 9)


def test_the_most_probable_is_the_first_and_its_gradient_is_one_hot():
    log_p = inputs(PARITY).requires_grad_()
    best = PARITY.most_probable(log_p)
    torch.testing.assert_close(best.values, PARITY.k_best(log_p, 3).values[:, 0])
    (grad,) = torch.autograd.grad(best.log_prob.sum(), log_p)
    torch.testing.assert_close(grad, torch.nn.functional.one_hot(best.values, 3).double())
    assert (PARITY.most_probable(log_p[0]).values == best.values[0]).all()  # groups of any shape


@pytest.mark.parametrize("rule", RULES)
def test_samples_are_as_frequent_as_they_are_probable(rule):
    c = RULES[rule] if rule != "diagram" else Constraint.from_automaton(5, 0, lambda s, v: (s + v) % 3, {1}, [0, 1, 2])
    log_p = inputs(c, groups=2)
    n = 20_000
    drawn = c.samples(log_p, n, generator=torch.Generator().manual_seed(1))
    assert drawn.shape == (2, n, len(c.sizes))
    rows, _, values = listed(c, log_p)
    number = {tuple(row): i for i, row in enumerate(rows.tolist())}
    for group in range(2):
        counts = np.bincount([number[tuple(row)] for row in drawn[group].tolist()], minlength=len(rows))
        expected = values[group].softmax(0).numpy() * n
        often = expected > 5
        assert counts[~often].sum() < 10 * max(expected[~often].sum(), 1)
        scale = counts[often].sum() / expected[often].sum()
        assert stats.chisquare(counts[often], expected[often] * scale).pvalue > 1e-4


def test_samples_of_a_program_know_its_plain_probabilities_and_follow_the_posterior():
    log_p = inputs(PROGRAM, groups=2)
    drawn = PROGRAM.samples(log_p, 20_000, generator=torch.Generator().manual_seed(0))
    shares = torch.nn.functional.one_hot(drawn, 3).double().mean(dim=1)
    torch.testing.assert_close(shares, PROGRAM.posterior(log_p), atol=0.02, rtol=0)


def test_evidence_is_what_conditioning_on_it_gives(brute):
    log_p = inputs(ADDITION)
    given_three = [row for row in ADDITION.solutions() if row[2] == 3]
    _, expected = brute(given_three, log_p)
    torch.testing.assert_close(ADDITION.posterior(log_p, given={"x3": 3}), expected)
    torch.testing.assert_close(ADDITION.posterior(log_p, given={2: 3}), expected)
    assert ADDITION.marginals(given={"x3": 3})[0].tolist() == pytest.approx([0.25, 0.25, 0.25, 0.25, 0])
    assert (ADDITION.k_best(log_p, 4, given={"x3": 3}).values.sort(dim=1).values[..., 2] == 3).all()
    assert (ADDITION.samples(log_p, 50, given={"x3": 3})[..., 2] == 3).all()
    one = ADDITION.most_probable(log_p, given={"x1": 1, "x3": 3})
    assert ADDITION.named(one.values) == [(1, 2, 3)] * 3


def test_posteriors_of_a_program_with_evidence_are_given_its_evidence():
    program = "nn(n,[X],Y,[0,1,2]) :: d(X,Y).\nsum(A,B,N) :- d(A,X), d(B,Y), N is X + Y.\nsmall :- d(a,X), X < 2.\n"
    c = Constraint.from_problog(program + "evidence(small).\n", "sum(a,b,2)")
    direct = Constraint.from_predicate(lambda a, b: (a + b == 2) & (a < 2), [range(3)] * 2)
    log_p = inputs(c)
    torch.testing.assert_close(c.posterior(log_p), direct.posterior(log_p))


@pytest.mark.parametrize("rule", RULES)
def test_pairs_and_second_derivatives(rule):
    c = RULES[rule] if rule != "diagram" else Constraint.from_automaton(4, 0, lambda s, v: (s + v) % 3, {1}, [0, 1, 2])
    log_p = inputs(c, groups=2)
    rows, _, values = listed(c, log_p)
    share = values.softmax(dim=1)
    widest, n = max(c.sizes), len(c.sizes)
    chosen = torch.nn.functional.one_hot(rows, widest).double().flatten(1)  # (solutions, variables * values)
    expected = torch.einsum("gs,sa,sb->gab", share, chosen, chosen).view(2, n, widest, n, widest)
    torch.testing.assert_close(c.pair_posterior(log_p), expected)
    own = log_p.clone().requires_grad_()
    torch.autograd.gradgradcheck(lambda x: c.log_prob(x, normalised=False), own)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own, in forward mode
@pytest.mark.parametrize("rule", ["table", "diagram"])
def test_transforms_of_torch(rule):
    c = RULES[rule]
    log_p = inputs(c, groups=4)

    def value(x):
        return c.log_prob(x, normalised=False)

    torch.testing.assert_close(torch.func.vmap(value)(log_p), value(log_p))
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(value))(log_p), c.posterior(log_p))
    nested = torch.func.vmap(torch.func.vmap(value))(log_p.view(2, 2, *log_p.shape[1:]))
    torch.testing.assert_close(nested.flatten(), value(log_p))
    hessian = torch.func.vmap(torch.func.hessian(value))(log_p[:2])
    mean = c.posterior(log_p[:2])
    covariance = c.pair_posterior(log_p[:2]) - mean[:, :, :, None, None] * mean[:, None, None]
    torch.testing.assert_close(hessian, covariance)
    tangent = torch.randn_like(log_p)
    _, pushed = torch.func.jvp(value, (log_p,), (tangent,))
    torch.testing.assert_close(pushed, (c.posterior(log_p) * tangent).sum(dim=(1, 2)))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_derivatives_where_nothing_is_possible_are_finite():
    log_p = torch.full((1, 3, 5), -torch.inf, dtype=torch.float64)
    log_p[0, :, 4] = 0.0  # 4 + 4 is not 4
    assert torch.equal(torch.func.vmap(torch.func.grad(ADDITION_VALUE))(log_p), torch.zeros_like(log_p))
    assert torch.isfinite(torch.func.hessian(ADDITION_VALUE)(log_p[0])).all()
    assert (ADDITION.samples(log_p, 2) == -1).all()
    none = ADDITION.most_probable(log_p)
    assert (none.values == -1).all()
    assert none.log_prob.tolist() == [-torch.inf]
    assert ADDITION.named(none.values) == [(None, None, None)]


def ADDITION_VALUE(x):
    return ADDITION.log_prob(x, normalised=False)


def test_large_circuits_are_searched_in_parts(monkeypatch):
    log_p = inputs(PARITY, groups=7)
    whole = PARITY.k_best(log_p, 3).values
    monkeypatch.setattr("gedi.logic.search._HELD", 1)
    assert torch.equal(PARITY.k_best(log_p, 3).values, whole)
    assert PARITY.is_satisfied(PARITY.samples(log_p, 5).flatten(0, 1)).all()
    assert PARITY.k_best(log_p[:0], 3).values.shape == (0, 3, 8)
    assert PARITY.samples(log_p[:0], 3).shape == (0, 3, 8)


def test_a_permutation_of_ten_is_found_among_millions():
    c = all_different(10, range(10))
    order = torch.randperm(10, generator=torch.Generator().manual_seed(0))
    log_p = (4 * torch.nn.functional.one_hot(order, 10).double() + 0.1 * torch.randn(10, 10)).log_softmax(-1)
    assert torch.equal(c.most_probable(log_p).values, order)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda x: ADDITION.k_best(x, 0), "k must be a whole number"),
        (lambda x: ADDITION.samples(x, 0), "n must be a whole number"),
        (lambda x: ADDITION.posterior(x, given={"x4": 1}), "x4"),
        (lambda x: ADDITION.posterior(x, given={"x3": 7}), "must have a value of its domain"),
        (lambda x: ADDITION.posterior(x, given={5: 1}), "number them from 0"),
        (lambda x: ADDITION.posterior(x, given=["x3"]), "which variable has which value"),
        (lambda x: ADDITION.most_probable(x * torch.nan), "must be below infinity"),
        (lambda x: PROGRAM.k_best(torch.zeros(1, 2, 3), 2), "symbols alone"),
        (lambda x: MIXED.posterior([torch.zeros(1, 2), torch.zeros(1, 4), torch.zeros(1, 3)]), "one tensor"),
    ],
)
def test_mistakes_are_named(ask, said):
    with pytest.raises(UserError, match=said):
        ask(inputs(ADDITION))
