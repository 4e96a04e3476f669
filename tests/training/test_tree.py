"""Trees of tensors: copied, moved and shared out without knowing what is in them."""

import io

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gedi.processes import Processes
from gedi.training.tree import copied, joined_form, joined_tree, mapped, own_tree, placed
from gedi.types import Spread

LEAVES = st.one_of(
    st.none(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.integers(0, 5).map(lambda n: torch.randn(n, 2)),
    st.integers(1, 9).map(lambda n: Spread(torch.randn(n, 2), n)),
)
TREES = st.recursive(
    LEAVES,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(st.text(max_size=3), below, max_size=3)),
    max_leaves=8,
)


def same(a, b):
    """The same structure with the same bits."""
    if isinstance(a, Spread):
        return isinstance(b, Spread) and a.total == b.total and same(a.rows, b.rows)
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@given(TREES)
def test_a_copy_is_the_same_and_shares_no_tensor(tree):
    for copy in (copied(tree), placed(tree, "cpu")):
        assert same(copy, tree)
        addresses = []
        for one in (tree, copy):
            found = []
            mapped(one, lambda leaf, found=found: found.append(leaf))
            rows = [leaf.rows if isinstance(leaf, Spread) else leaf for leaf in found]
            addresses.append({x.data_ptr() for x in rows if isinstance(x, torch.Tensor) and x.numel()})
        assert not addresses[0] & addresses[1]


@given(TREES)
def test_what_is_saved_alone_is_what_is_loaded_alone(tree):
    alone = Processes()
    assert same(own_tree(joined_tree(tree, alone), alone), tree)


@given(TREES)
def test_the_form_of_what_is_saved_is_known_without_joining_it(tree):
    forms = []
    for saved in (joined_form(tree), joined_tree(tree, Processes())):
        mapped(saved, lambda leaf: forms.append((leaf.shape, leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf))
    half = len(forms) // 2
    assert forms[:half] == forms[half:]


@given(TREES)
def test_what_is_saved_holds_nothing_but_plain_data(tree):
    saved, file = joined_tree(tree, Processes()), io.BytesIO()
    torch.save(saved, file)
    file.seek(0)
    assert same(torch.load(file, weights_only=True), saved)


@pytest.mark.parametrize("size", [2, 3])
def test_each_process_takes_its_share_of_what_is_spread_and_all_of_the_rest(size):
    whole = {"own": [torch.arange(3), Spread(torch.arange(7), 7)], "n": 4}
    saved = joined_tree(whole, Processes())
    shares = [own_tree(saved, Processes(rank, size)) for rank in range(size)]
    for rank, share in enumerate(shares):
        assert torch.equal(share["own"][1].rows, torch.arange(7)[rank::size])
        assert share["own"][1].total == 7
        assert torch.equal(share["own"][0], torch.arange(3))
        assert share["n"] == 4


def test_a_copy_has_no_gradient_and_leaves_the_graph():
    x = torch.ones(2, requires_grad=True)
    copy = copied({"x": x * 2})
    assert not copy["x"].requires_grad
