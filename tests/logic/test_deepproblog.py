"""DeepProbLog as an oracle: the same programs, the same probabilities and gradients."""

import warnings

import pytest
import torch

from gedi.logic import Constraint

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it says that PySwip is missing, which its exact engine does not use
    pytest.importorskip(
        "deepproblog", reason="the oracle is not installed: pip install -c constraints.txt deepproblog==2.1.0"
    )
    from deepproblog.engines import ExactEngine
    from deepproblog.model import Model
    from deepproblog.network import Network
    from deepproblog.query import Query
    from problog.logic import Constant, Term

# it turns tensors with a gradient into floats on the way
pytestmark = pytest.mark.filterwarnings("ignore")

DIGITS = "nn(net,[X],Y,[0,1,2,3,4,5,6,7,8,9]) :: digit(X,Y).\n"
ADDITION = DIGITS + "total(X,Y,Z) :- digit(X,A), digit(Y,B), Z is A + B.\n"
TRIPLE = DIGITS + "triple(X,Y,Z) :- digit(X,A), digit(Y,B), digit(Z,C), C is A + B.\n"
TWO_DIGITS = DIGITS + "total2(A,B,C,D,Z) :- digit(A,W), digit(B,X), digit(C,Y), digit(D,V), Z is 10*W + X + 10*Y + V.\n"


class Softmax(torch.nn.Module):
    def forward(self, x):
        return x.softmax(-1)


def oracle(program, functor, logits, rest=()):
    """P(query) of each group by DeepProbLog, with a graph back to the logits, (groups, variables, values)."""
    model = Model(program, [Network(Softmax(), "net", batching=True)], load=False)
    model.set_engine(ExactEngine(model), cache=True)
    n, variables, _ = logits.shape
    model.add_tensor_source("x", {(Constant(i),): row for i, row in enumerate(logits.flatten(0, 1))})
    names = [Term(f"i{j}") for j in range(variables)]
    tensors = [Term("tensor", Term("x", Constant(i))) for i in range(n * variables)]
    query = Term(functor, *names, *map(Constant, rest))
    batch = [Query(query, dict(zip(names, tensors[variables * i :], strict=False))) for i in range(n)]
    return torch.stack([next(iter(result.result.values())) for result in model.solve(batch)])


def compare(constraints, program, functor, variables, rest=(), groups=4):
    logits = (2 * torch.randn(groups, variables, 10, dtype=torch.float64)).requires_grad_()
    theirs = oracle(program, functor, logits, rest)
    (expected,) = torch.autograd.grad(theirs.log().sum(), logits)
    for constraint in constraints:
        ours = constraint.log_prob(logits.log_softmax(-1))
        torch.testing.assert_close(ours.exp(), theirs, rtol=1e-10, atol=1e-12)
        (gradient,) = torch.autograd.grad(ours.sum(), logits)
        torch.testing.assert_close(gradient, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("total", [0, 7, 18])
def test_a_sum_of_two_digits_is_as_likely_as_deepproblog_says(total):
    written = Constraint.from_problog(ADDITION, f"total(a,b,{total})")
    listed = Constraint.from_predicate(lambda a, b: a + b == total, [range(10)] * 2)
    compare([written, listed], ADDITION, "total", 2, [total])


def test_three_digits_of_an_addition_are_as_likely_as_deepproblog_says():
    written = Constraint.from_problog(TRIPLE, "triple(a,b,c)")
    listed = Constraint.from_predicate(lambda a, b, c: a + b == c, [range(10)] * 3)
    compare([written, listed], TRIPLE, "triple", 3)


def test_a_sum_of_two_numbers_of_two_digits_is_as_likely_as_deepproblog_says():
    written = Constraint.from_problog(TWO_DIGITS, "total2(a,b,c,d,42)")
    listed = Constraint.from_predicate(lambda a, b, c, d: 10 * a + b + 10 * c + d == 42, [range(10)] * 4)
    compare([written, listed], TWO_DIGITS, "total2", 4, [42], groups=2)
