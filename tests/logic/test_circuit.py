"""Circuits as data: building, counting, listing."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gedi.logic.circuit import AND, Builder, Circuit, from_table
from gedi.logic.evaluate import Layered, evaluator


@st.composite
def circuits(draw):
    """A random deterministic, decomposable, smooth circuit: split on a variable, or into two parts."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    first = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    builder = Builder(sum(sizes))

    def over(variables):
        """A node and the assignments below it."""
        if len(variables) == 1 or draw(st.booleans()):
            v, *rest = variables
            values = draw(st.lists(st.integers(0, sizes[v] - 1), min_size=1, unique=True))
            nodes, rows = [], []
            for k in values:
                if not rest:
                    nodes.append(first[v] + k)
                    rows.append({v: k})
                    continue
                node, below = over(rest)
                nodes.append(builder.all([first[v] + k, node]))
                rows += [{v: k} | row for row in below]
            return builder.any(nodes), rows
        half = len(variables) // 2
        (a, left), (b, right) = over(variables[:half]), over(variables[half:])
        return builder.all([a, b]), [x | y for x in left for y in right]

    roots, answers = [], []
    for _ in range(draw(st.integers(1, 3))):
        node, rows = over(list(range(len(sizes))))
        roots.append(node)
        answers.append(sorted(tuple(row[v] for v in range(len(sizes))) for row in rows))
    return sizes, builder.circuit(roots), answers


@settings(max_examples=150)
@given(case=circuits())
def test_every_root_counts_lists_and_adds_up_its_assignments(case, brute):
    sizes, circuit, answers = case
    log_p = torch.randn(3, len(sizes), max(sizes), dtype=torch.float64)
    leaves = torch.cat([log_p[:, i, :size] for i, size in enumerate(sizes)], dim=1)
    out = Layered(circuit)(leaves)
    assert out.shape == (3, len(answers))
    for root, rows in enumerate(answers):
        assert circuit.counts[int(circuit.roots[root])] == len(rows)
        assert sorted(map(tuple, circuit.solutions(sizes, root).tolist())) == rows
        torch.testing.assert_close(out[:, root], brute(rows, log_p)[0], rtol=0, atol=1e-12)


@settings(max_examples=60)
@given(case=circuits())
def test_gradients_of_several_roots_add_up(case, brute):
    sizes, circuit, answers = case
    log_p = torch.randn(2, len(sizes), max(sizes), dtype=torch.float64).requires_grad_()
    leaves = torch.cat([log_p[:, i, :size] for i, size in enumerate(sizes)], dim=1)
    weights = torch.randn(2, len(answers), dtype=torch.float64)
    (Layered(circuit)(leaves) * weights).sum().backward()
    expected = sum(weights[:, j, None, None] * brute(rows, log_p)[1] for j, rows in enumerate(answers))
    torch.testing.assert_close(log_p.grad, expected, rtol=0, atol=1e-12)


def test_equal_nodes_are_made_once_and_one_child_needs_no_node():
    b = Builder(4)
    assert b.all([0, 2]) == b.all([2, 0])
    assert b.any([0, 2]) != b.all([0, 2])
    assert b.any([3]) == b.all([3]) == 3


def test_what_no_root_needs_is_left_out():
    b = Builder(4)
    kept, _unused = b.all([0, 2]), b.all([1, 3])
    c = b.circuit([kept])
    assert (c.nodes, c.edges, c.roots.tolist()) == (5, 2, [4])
    assert c.children_of(4).tolist() == [0, 2]


@given(
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    bits=st.integers(1, 2**27 - 1),
)
def test_a_table_is_the_sum_of_its_rows(sizes, bits):
    every = list(itertools.product(*map(range, sizes)))
    rows = [row for i, row in enumerate(every) if bits >> i & 1] or every[:1]
    c = from_table(np.array(rows), sizes)
    assert sorted(map(tuple, c.solutions(sizes).tolist())) == rows
    assert c.counts[int(c.roots[0])] == len(rows)
    assert c.edges == len(rows) * len(sizes) + (len(rows) if len(rows) > 1 else 0)
    assert (c.kinds == AND).sum() == len(rows)


def test_a_root_may_be_a_leaf():
    leaf = Circuit(3, np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int64), np.array([1]))
    x = torch.randn(4, 3, requires_grad=True)
    out = evaluator(leaf)(x)
    assert torch.equal(out[:, 0], x[:, 1])
    out.sum().backward()
    assert torch.equal(x.grad, torch.tensor([0.0, 1.0, 0.0]).expand(4, 3))


def test_counts_do_not_overflow():
    b = Builder(400)
    node = b.any([0, 1])
    for i in range(1, 200):
        node = b.all([node, b.any([2 * i, 2 * i + 1])])
    c = b.circuit([node])
    assert c.counts[int(c.roots[0])] == 2**200


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_value_has_the_precision_of_its_input(dtype):
    c = from_table(np.array([[0, 0], [1, 1]]), [2, 2])
    assert evaluator(c)(torch.zeros(2, 4, dtype=dtype)).dtype == dtype
