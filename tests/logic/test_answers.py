"""Given answers: which of several queries is observed, against ProbLog itself and against listing."""

import itertools
import random

import pytest
import torch

from gedi.errors import UserError
from gedi.logic import Constraint
from gedi.logic.answers import observed

SUM = Constraint.from_function(lambda a, b: a + b, [range(4)] * 2)


def inputs(c, groups=5, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(groups, len(c.sizes), max(c.sizes), generator=g, dtype=torch.float64).log_softmax(-1)


# Programs over two networks, one that tells numbers and one that tells colours, of different sizes.


def program_of(seed):
    """Clauses without their choices, the choices (name, atoms, values), the query, and how many answers it may have."""
    r = random.Random(seed)
    digits, colours = r.randint(2, 4), r.sample(["red", "green", "blue"], r.randint(2, 3))
    inputs = [("number", f"n{i}", list(range(digits))) for i in range(r.randint(1, 2))]
    inputs += [("colour", f"c{i}", colours) for i in range(r.randint(1, 2))]
    shapes = [
        "S is {a} + {b}",
        "S is {a} * {b}",
        "S is abs({a} - {b})",
        "S is ({a} + 2 * {b}) mod 3",
        "S is max({a}, {b})",
    ]
    names = [f"V{i}" for i in range(len(inputs))]
    body = [f"{kind}({name},{v})" for (kind, name, _), v in zip(inputs, names, strict=True)]
    body += [
        f"price({v},P{i})" for i, ((kind, _, _), v) in enumerate(zip(inputs, names, strict=True)) if kind == "colour"
    ]
    terms = [v if kind == "number" else f"P{i}" for i, ((kind, _, _), v) in enumerate(zip(inputs, names, strict=True))]
    total = terms[0]
    for i, term in enumerate(terms[1:]):
        body.append(r.choice(shapes).format(a=total, b=term).replace("S is", f"T{i} is"))
        total = f"T{i}"
    extra = r.choice(["", "0.3 :: broken.\n", "0.2 :: broken ; 0.5 :: slow.\n"])
    rules = "".join(f"price({colour},{r.randint(0, 2)}).\n" for colour in colours) + extra
    last = f"answer(N) :- {', '.join(body)}, {{}}N is {total}.\n"
    if extra:
        rules += last.format(r"\+broken, ") + f"answer(N) :- broken, {', '.join(body)}, N is {total} + 1.\n"
    else:
        rules += last.format("")
    return rules, inputs


def neural(inputs):
    lines = {
        kind: f"nn({kind}_net,[X],Y,[{','.join(map(str, values))}]) :: {kind}(X,Y).\n" for kind, _, values in inputs
    }
    return "".join(lines.values())


def by_problog(rules, inputs, p, answer):
    """P(answer) by ProbLog, from plain numbers."""
    from problog import get_evaluatable
    from problog.program import PrologString

    choices = ""
    for (kind, name, values), row in zip(inputs, p, strict=True):
        choices += " ; ".join(f"{x:.17f} :: {kind}({name},{v})" for v, x in zip(values, row, strict=True)) + ".\n"
    text = choices + rules + f"query(answer({answer})).\n"
    return next(iter(get_evaluatable().create_from(PrologString(text)).evaluate().values()))


def compare(seed):
    """How far the values of every answer, and the slopes of one, of a program are from ProbLog's, at most."""
    rules, listed = program_of(seed)
    c = Constraint.from_problog(neural(listed) + rules, "answer(N)", variables=[name for _, name, _ in listed])
    assert c.sizes == [len(values) for _, _, values in listed]
    g = torch.Generator().manual_seed(seed)
    p = [torch.rand(1, size, generator=g, dtype=torch.float64).add(0.05) for size in c.sizes]
    p = [(x / x.sum()).requires_grad_() for x in p]
    plain = [x[0].tolist() for x in p]
    assert c.answers is not None
    log_p = [x.log() for x in p]
    values, slopes = [], []
    for answer in c.answers:
        ours = c.log_prob(log_p, answers=c.numbered([answer])).exp().detach()
        values.append(abs(float(ours) - by_problog(rules, listed, plain, answer)))
    chosen = random.Random(seed).choice(c.answers)
    value = c.log_prob(log_p, normalised=False, answers=c.numbered([chosen])).exp()
    grads = torch.autograd.grad(value.sum(), p)
    for i, grad in enumerate(grads):  # P is linear in each choice: its slope is P given the value
        for k in range(c.sizes[i]):
            certain = [[float(j == k) for j in range(c.sizes[i])] if n == i else row for n, row in enumerate(plain)]
            slopes.append(abs(float(grad[0, k]) - by_problog(rules, listed, certain, chosen)))
    return max(values), max(slopes)


def agrees(seed):
    value, slope = compare(seed)
    return value < 1e-9 and slope < 1e-8


@pytest.mark.parametrize("seed", range(8))
def test_programs_of_two_networks_have_the_values_and_gradients_of_problog(seed):
    assert agrees(seed)


@pytest.mark.slow
def test_more_programs_agree_with_problog():  # and 300 more: benchmarks/programs.py
    assert all(agrees(seed) for seed in range(1000, 1015))


def test_a_function_is_all_its_answers(brute):
    for function, domains in (
        (lambda a, b: a + b, [range(4)] * 2),
        (lambda a, b, c: (a * b, c % 2), [range(3), range(2), range(4)]),
        (lambda a, b: a // b, [range(4)] * 2),  # nothing is divided by zero
        (lambda a, b, c: None if a == b else max(a, b, c), [range(3)] * 3),
    ):
        c = Constraint.from_function(function, domains)
        log_p = inputs(c)
        rows: dict = {}
        for row in itertools.product(*(range(len(d)) for d in domains)):
            try:
                answer = function(*(d[k] for d, k in zip(domains, row, strict=True)))
            except ZeroDivisionError:
                continue
            if answer is not None:
                rows.setdefault(answer, []).append(row)
        assert list(c.answers) == sorted(rows)
        out = c.log_prob(log_p, normalised=False)
        for k, answer in enumerate(c.answers):
            torch.testing.assert_close(out[:, k], brute(rows[answer], log_p)[0])
            torch.testing.assert_close(c[k].posterior(log_p), brute(rows[answer], log_p)[1])


def test_a_function_beyond_listing_is_read():
    def total(*digits):
        return sum(digit * 10 ** (3 - i % 4) for i, digit in enumerate(digits))

    c = Constraint.from_function(total, [range(10)] * 8)
    log_p = torch.full((2, 8, 10), 0.1, dtype=torch.float64).log()
    answers = c.numbered([0, 9999])
    ways = torch.tensor([1, 10_000], dtype=torch.float64)
    torch.testing.assert_close(c.log_prob(log_p, answers=answers).exp(), ways / 1e8)


def test_soft_and_missing_answers_are_sums_over_what_may_be():
    log_p = inputs(SUM, groups=3)
    each = SUM.log_prob(log_p).exp()
    weights = torch.tensor([[1.0, 0, 0, 0, 0, 0, 0], [0, 0.5, 0, 0.5, 0, 0, 0], [1.0] * 7], dtype=torch.float64)
    torch.testing.assert_close(SUM.log_prob(log_p, answers=weights).exp(), (weights * each).sum(dim=1))
    some = SUM.log_prob(log_p, answers=SUM.numbered([2, None, 6])).exp()
    torch.testing.assert_close(some, torch.stack([each[0, 2], torch.ones(()).double(), each[2, 6]]))
    few = Constraint.from_function(lambda a, b: a + b if a + b < 3 else None, [range(4)] * 2)  # it cannot be more
    missing = few.log_prob(log_p, answers=few.numbered([None] * 3)).exp()
    torch.testing.assert_close(missing, each[:, :3].sum(dim=1))


def test_gradients_of_answers():
    log_p = inputs(SUM, groups=3).requires_grad_()
    few = Constraint.from_function(lambda a, b: a + b if a + b < 5 else None, [range(4)] * 2)
    for c, answers in ((few, few.numbered([2, None, 4])), (SUM, torch.rand(3, 7, dtype=torch.float64))):
        torch.autograd.gradcheck(lambda x, c=c, a=answers: c.log_prob(x.log_softmax(-1), answers=a), log_p)
    impossible = torch.full((1, 2, 4), -torch.inf, dtype=torch.float64)
    impossible[..., 0] = 0
    impossible.requires_grad_()
    for answers in (SUM.numbered([5]), torch.tensor([[0, 0, 0, 0, 1.0, 1.0, 0]])):
        value = SUM.log_prob(impossible, answers=answers)
        assert value.tolist() == [-torch.inf]
        assert torch.equal(torch.autograd.grad(value.sum(), impossible)[0], torch.zeros(1, 2, 4).double())


def test_answers_go_with_groups_of_any_shape():
    log_p = inputs(SUM, groups=6).view(2, 3, 2, 4)
    answers = SUM.numbered([2, 5, None])
    together = SUM.log_prob(log_p, answers=answers)
    torch.testing.assert_close(together[1], SUM.log_prob(log_p[1], answers=answers))


def test_what_a_query_stands_for():
    program = (
        "nn(n,[X],Y,[0,1]) :: d(X,Y).\npair([A,B],[X,Y]) :- d(A,X), d(B,Y).\nsum(A,B,N) :- d(A,X), d(B,Y), N is X+Y.\n"
    )
    c = Constraint.from_problog(program, "sum(a,b,N)")
    assert c.answers == (0, 1, 2)
    assert c.numbered([2, "sum(a,b,0)", None]).tolist() == [2, 0, -1]
    lists = Constraint.from_problog(program, "pair([a,b],N)")
    assert lists.answers == lists.queries or all(str(x).startswith("[") for x in lists.answers)
    mixed = Constraint.from_problog(program, ["sum(a,b,1)", "d(a,1)"])
    assert mixed.answers == mixed.queries


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: SUM.numbered([9]), "answer 0 must be one of 0, 1, 2"),
        (lambda: SUM.numbered(3), "must be a list"),
        (lambda: SUM.numbered(torch.ones(2, 3)), "soft answers must be"),
        (lambda: SUM.numbered(-torch.ones(2, 7)), "soft answers must be"),
        (lambda: SUM["0"].numbered([0]), "this constraint has one"),
        (lambda: SUM["0"].log_prob(inputs(SUM), answers=torch.zeros(5)), "this constraint has one"),
        (lambda: observed(torch.zeros(2, 3), [0, 1]), "must be a tensor"),
        (lambda: observed(torch.zeros(2, 3), torch.tensor([0, 3])), "-1 to 2"),
        (lambda: observed(torch.zeros(2, 3), torch.ones(2, 2)), "soft answers must be"),
        (lambda: Constraint.from_function(3, [range(2)]), "function"),
        (lambda: Constraint.from_function(lambda a: 1, [range(2)]), "different answers"),
        (lambda: Constraint.from_function(lambda a: None, [range(2)]), "different answers"),
        (lambda: Constraint.from_function(lambda a: [a], [range(2)]), "told apart"),
        (lambda: Constraint.from_function(lambda a, b: a, [range(2)]), "one for each variable"),
    ],
)
def test_mistakes_are_named(wrong, said):
    with pytest.raises(UserError, match=said):
        wrong()
