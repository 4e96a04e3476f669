"""What every way to make a constraint must give; the class and ``gedi.logic.ready`` are the registry."""

import importlib.util
import inspect
import itertools

import pytest
import torch

from gedi import logic
from gedi.logic import Constraint, ready

PROGRAM = "nn(net,[X],Y,[0,1,2,3]) :: digit(X,Y).\nadd2(X,Y,Z) :- digit(X,A), digit(Y,B), Z is A + B.\n"
D = range(4)

#: A constraint as made, and the same rule in plain Python.
CASES = {
    "from_predicate": (
        lambda: Constraint.from_predicate(lambda a, b, c: a + b == c, [D] * 3),
        lambda a, b, c: a + b == c,
    ),
    "from_predicate (different domains)": (
        lambda: Constraint.from_predicate(lambda a, b: a != len(b), [range(3), ["", "x", "yy", "zzz"]]),
        lambda a, b: a != len(b),
    ),
    "from_automaton": (
        lambda: Constraint.from_automaton(4, 0, lambda s, v: (s + v) % 3, {1}, D),
        lambda *v: sum(v) % 3 == 1,
    ),
    "from_cnf": (lambda: Constraint.from_cnf([[1, 2], [-1, -3]]), lambda a, b, c: (a or b) and not (a and c)),
    "from_cnf (values)": (
        lambda: Constraint.from_cnf([[1, 4], [-3]], variables=[3, 2]),
        lambda a, b: (a == 0 or b == 0) and a != 2,
    ),
    "from_solutions": (
        lambda: Constraint.from_solutions([(0, "a"), (1, "b")], [range(3), "ab"]),
        lambda a, b: (a, b) in ((0, "a"), (1, "b")),
    ),
    "from_function": (
        lambda: Constraint.from_function(lambda a, b: a + b, [D] * 2)["4"],
        lambda a, b: a + b == 4,
    ),
    "from_nnf": (
        lambda: Constraint.from_nnf("nnf 7 6 2\nL 1\nL -2\nA 2 0 1\nL -1\nL 2\nA 2 3 4\nO 1 2 2 5"),
        lambda a, b: a != b,
    ),
    "from_sdd": (
        lambda: Constraint.from_sdd("sdd 5\nL 0 0 1\nL 1 2 -2\nL 2 0 -1\nL 3 2 2\nD 4 1 2 0 1 2 3"),
        lambda a, b: a != b,
    ),
    "from_problog": (lambda: Constraint.from_problog(PROGRAM, "add2(a,b,4)"), lambda a, b: a + b == 4),
    "all_different": (lambda: logic.all_different(3, D), lambda *v: len(set(v)) == 3),
    "sorted_": (lambda: logic.sorted_(3, D), lambda *v: list(v) == sorted(v)),
    "sums_to": (lambda: logic.sums_to(3, D, total=5), lambda *v: sum(v) == 5),
    "exactly_k": (lambda: logic.exactly_k(3, 1, D, value=2), lambda *v: v.count(2) == 1),
    "at_most_k": (lambda: logic.at_most_k(3, 1, D, value=2), lambda *v: v.count(2) <= 1),
    "and": (lambda: logic.all_different(3, D) & logic.sorted_(3, D), lambda a, b, c: a < b < c),
    "or": (
        lambda: logic.sums_to(2, D, total=3) | logic.sums_to(2, D, total=4),
        lambda a, b: a + b in (3, 4),
    ),
    "not": (lambda: ~logic.sorted_(3, D), lambda *v: list(v) != sorted(v)),
    "on": (lambda: logic.sorted_(2, D, strictly=True).on([2, 0], [D, "ab", D]), lambda a, b, c: c < a),
}
BACKENDS = ["layered"] + (["klay"] if importlib.util.find_spec("klay") else [])


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEDI_CACHE", str(tmp_path / "cache"))


@pytest.fixture(params=CASES)
def case(request):
    make, rule = CASES[request.param]
    return make(), rule


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


def inputs(c, groups=5, dtype=torch.float64):
    log_p = torch.randn(groups, len(c.sizes), max(c.sizes), dtype=dtype)
    for i, size in enumerate(c.sizes):  # the padding of different domains holds no mass
        log_p[:, i, :size] = log_p[:, i, :size].log_softmax(-1)
    return log_p


def test_every_way_to_make_a_constraint_is_under_contract():
    made = {name for name, value in inspect.getmembers(Constraint) if name.startswith("from_") and callable(value)}
    functions = {
        name
        for name, value in inspect.getmembers(ready, inspect.isfunction)
        if value.__module__ == ready.__name__ and not name.startswith("_")
    }
    covered = {name.split(" ")[0] for name in CASES}
    assert made | functions | {"and", "or", "not", "on"} == covered, "give each new one a line in CASES"
    assert functions <= set(logic.__all__)


def test_it_allows_what_its_rule_allows_and_nothing_else(case):
    c, rule = case
    every = list(itertools.product(*c.domains))
    truth = [bool(rule(*values)) for values in every]
    assert c.is_satisfied(every).tolist() == truth
    assert sorted(c.solutions(), key=str) == sorted((v for v, t in zip(every, truth, strict=True) if t), key=str)
    assert c.n_solutions == sum(truth)


def test_its_probability_is_the_sum_over_what_it_allows(case, backend):
    c, rule = case
    log_p = inputs(c)
    total = torch.zeros(len(log_p), dtype=torch.float64)
    for values in itertools.product(*(list(enumerate(domain)) for domain in c.domains)):
        if rule(*(value for _, value in values)):
            total += sum(log_p[:, i, k] for i, (k, _) in enumerate(values)).exp()
    torch.testing.assert_close(c.with_backend(backend).log_prob(log_p), total.log(), rtol=0, atol=1e-12)


def test_its_gradient_is_right(case, backend):
    c, _ = case
    assert torch.autograd.gradcheck(c.with_backend(backend).log_prob, inputs(c, 2).requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_keeps_the_precision_and_the_shape_of_its_groups(case, backend, dtype):
    c, _ = case
    out = c.with_backend(backend).log_prob(inputs(c, dtype=dtype))
    assert out.shape == (5,)
    assert out.dtype == dtype
    assert (out < 0).all()  # a constraint that is neither always nor never true
    assert out.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_in_half_precision_it_is_what_double_precision_says(case, backend, dtype):
    c = case[0].with_backend(backend)
    log_p = inputs(c).to(dtype).requires_grad_()
    exact = log_p.detach().double().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        out = c.log_prob(log_p)
    assert out.dtype == torch.float32
    expected = c.log_prob(exact, normalised=False)  # rounded to half precision they hardly add up to 1
    torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-5)
    (posterior,), (true,) = torch.autograd.grad(out.sum(), log_p), torch.autograd.grad(expected.sum(), exact)
    torch.testing.assert_close(posterior.double(), true, rtol=0, atol=1e-5 if dtype == torch.float32 else 5e-3)


def test_groups_do_not_know_of_one_another(case, backend):
    c, _ = case
    log_p = inputs(c)
    order = torch.randperm(5)
    out = c.with_backend(backend).log_prob(log_p)
    torch.testing.assert_close(c.with_backend(backend).log_prob(log_p[order]), out[order], rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(c.with_backend(backend).log_prob(log_p[:1]), out[:1], rtol=1e-14, atol=1e-14)


def test_its_posterior_is_a_distribution_of_each_variable(case):
    c, _ = case
    posterior = c.posterior(inputs(c))
    assert (posterior >= 0).all()
    torch.testing.assert_close(posterior.sum(-1), torch.ones(5, len(c.sizes), dtype=torch.float64))


def test_it_leaves_its_argument_as_it_was(case, backend):
    c, _ = case
    log_p = inputs(c)
    before = log_p.clone()
    c.with_backend(backend).log_prob(log_p)
    c.posterior(log_p)
    assert torch.equal(log_p, before)


def test_it_and_its_negation_share_out_everything(case):
    c, _ = case
    log_p = inputs(c)
    total = c.log_prob(log_p).exp() + (~c).log_prob(log_p).exp()
    torch.testing.assert_close(total, torch.ones(5, dtype=torch.float64))


def test_its_text_says_what_it_is_over(case):
    c, _ = case
    assert repr(c).startswith(f"Constraint({c.variables[0]}: {c.sizes[0]}")
    assert repr(c).endswith(f"{c.size} edges)")
