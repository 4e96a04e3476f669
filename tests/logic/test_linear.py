"""Circuits on probabilities say what circuits in logs say, or leave it to them."""

import pytest
import torch

from gedi.logic import Constraint, all_different, sorted_, sums_to
from gedi.logic.evaluate import Layered

FOUR = [range(3)] * 4
RULES = {
    "a table": Constraint.from_predicate(lambda a, b, c: a + b == c, [range(10)] * 3),
    "products alone": Constraint.from_solutions([(0, 1, 2)], [range(3)] * 3),
    "a diagram": sums_to(8, range(5), total=11),
    "clauses": Constraint.from_cnf([[1, 2, -3], [3, -4], [-1, 4, 5]], variables=5),
    "combined": all_different(3, range(3)).on([0, 1, 2], FOUR) & sorted_(2, range(3)).on([2, 3], FOUR),
    "answers": Constraint.from_function(lambda a, b: a + b, [range(4)] * 2),
}


def in_logs(layered, leaves):
    """The roots and their gradient without the shorter way."""
    x = leaves.clone().requires_grad_()
    values = layered._plain(x)[0]
    roots = values[layered.on(x.device)[1] + 2].t()
    total = torch.where(torch.isneginf(roots), 0.0, roots).sum()
    return roots.detach(), torch.autograd.grad(total, x)[0]


def shorter(layered, leaves):
    x = leaves.clone().requires_grad_()
    out = layered(x)
    out.sum().backward()
    return out.detach(), x.grad


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", RULES)
def test_values_and_gradients_are_those_of_logs(name, scale, g):
    rule = RULES[name]
    layered = Layered(rule.circuit)
    scores = [scale * torch.randn(7, size, generator=g, dtype=torch.float64) for size in rule.sizes]
    leaves = torch.cat([x.log_softmax(1) for x in scores], dim=1)
    assert layered.linear.suits(leaves)
    assert layered.linear.values(leaves) is not None
    for ours, logs in zip(shorter(layered, leaves), in_logs(layered, leaves), strict=True):
        torch.testing.assert_close(ours, logs, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("name", RULES)
def test_certain_symbols_and_single_precision(name, g):
    rule = RULES[name]
    layered = Layered(rule.circuit)
    leaves = torch.cat([torch.randn(5, size, generator=g).log_softmax(1) for size in rule.sizes], dim=1)
    leaves[:, 0] = -torch.inf  # an impossible value
    found, gradient = shorter(layered, leaves)
    exact, slope = in_logs(layered, leaves.double())
    torch.testing.assert_close(found.double(), exact, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(gradient.double().nan_to_num(9), slope.nan_to_num(0), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_too_small_for_a_number_is_left_to_logs(dtype):
    rule = RULES["a diagram"]
    layered = Layered(rule.circuit)
    leaves = torch.full((3, 40), -90.0, dtype=dtype)  # e^-720 for each assignment
    assert layered.linear.values(leaves) is None
    assert float(layered(leaves)[0, 0]) == pytest.approx(float(torch.tensor(rule.n_solutions).log()) - 720, rel=1e-6)


def test_sums_beyond_one_and_huge_counts_are_left_to_logs():
    layered = Layered(RULES["a table"].circuit)
    assert not layered.linear.suits(torch.full((2, 30), 0.5))
    assert not layered.linear.suits(torch.full((2, 30), torch.nan))
    assert not layered.linear.suits(torch.zeros(0, 30))
    assert not layered.linear.suits(torch.zeros(2, 30, dtype=torch.bfloat16))
    many = Constraint.from_automaton(400, 0, lambda s, v: (s + v) % 2, lambda s: s == 0, range(10))  # 10^400 / 2
    leaves = torch.full((2, 4000), 0.1).log()
    assert Layered(many.circuit).linear.values(leaves) is None
    assert many.log_prob(leaves.view(2, 400, 10)).tolist() == pytest.approx([-0.693147] * 2, abs=1e-3)


def test_the_bound_covers_what_small_products_lose():
    """Half of the sum is of products that are no numbers on the way: the result must be that of logs."""
    rule = Constraint.from_solutions([(0,) * 8, (1,) * 8], [range(2)] * 8)
    layered = Layered(rule.circuit)
    for exponent in range(-2, -16, -1):
        leaves = torch.full((1, 16), exponent * 2.302585)
        exact = float(torch.tensor(2.0).log()) + 8 * exponent * 2.302585
        assert float(layered(leaves)[0, 0]) == pytest.approx(exact, rel=2e-6)
