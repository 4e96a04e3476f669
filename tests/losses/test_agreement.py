"""Agreement and balance: closed forms, what leaves them unchanged, where they are least."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from gedi.losses import agreement, balance

PRIOR = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64)


def logits_of(n, c, seed, scale=3.0):
    return scale * torch.randn(n, c, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def shares_of(logits):
    rows = [[math.exp(x) for x in row] for row in logits.tolist()]
    return [[x / sum(row) for x in row] for row in rows]


def entropy(p):
    return -sum(x * math.log(x) for x in p)


def test_agreement_is_the_mean_of_both_cross_entropies():
    a, b = logits_of(5, 3, 0), logits_of(5, 3, 1)
    total = 0.0
    for p, q in zip(shares_of(a), shares_of(b), strict=True):
        total -= sum(x * math.log(y) + y * math.log(x) for x, y in zip(p, q, strict=True)) / 2
    assert agreement(a, b).item() == pytest.approx(total / 5, rel=1e-12)


def test_a_view_agrees_with_itself_up_to_its_own_entropy():
    a = logits_of(6, 4, 2)
    assert agreement(a, a).item() == pytest.approx(sum(map(entropy, shares_of(a))) / 6, rel=1e-12)
    assert agreement(torch.zeros(3, 7), torch.zeros(3, 7)).item() == pytest.approx(math.log(7))


def test_sure_views_agree_at_zero_or_pay_the_whole_difference():
    sure = 40.0 * torch.eye(3, dtype=torch.float64)
    assert agreement(sure, sure).item() == pytest.approx(0, abs=1e-14)
    assert agreement(sure, sure.roll(1, 0)).item() == pytest.approx(40, rel=1e-12)


@given(st.integers(0, 10**6), st.permutations(range(4)), st.permutations(range(6)))
def test_agreement_ignores_names_views_order_and_shifts(seed, names, order):
    a, b = logits_of(6, 4, seed), logits_of(6, 4, seed + 1)
    value = agreement(a, b)
    torch.testing.assert_close(agreement(b, a), value)
    torch.testing.assert_close(agreement(a[:, names], b[:, names]), value)
    torch.testing.assert_close(agreement(a[order], b[order]), value)
    torch.testing.assert_close(agreement(a + a[:, :1], b), value)


def test_agreement_holds_rows_against_their_own_row():
    a = logits_of(6, 4, 0)
    assert agreement(a, a.roll(1, 0)) > agreement(a, a) + 0.5


def test_its_gradient_flows_through_both_views_alike():
    a, b = logits_of(5, 3, 0).requires_grad_(), logits_of(5, 3, 1).requires_grad_()
    to_a, to_b = torch.autograd.grad(agreement(a, b), (a, b))
    swapped_b, swapped_a = torch.autograd.grad(agreement(b, a), (b, a))
    torch.testing.assert_close((to_a, to_b), (swapped_a, swapped_b))
    one_sided = torch.autograd.grad(agreement(a, b.detach()), a)[0]
    torch.testing.assert_close(one_sided, to_a)
    # a target taken as given would leave only half of it
    given_target = torch.autograd.grad(F.cross_entropy(a, b.detach().softmax(dim=1)) / 2, a)[0]
    assert (to_a - given_target).norm() > 0.1 * to_a.norm()
    assert to_b.norm() > 0


def test_balance_is_the_cross_entropy_of_the_shares():
    a = logits_of(5, 4, 3)
    shares = [sum(column) / 5 for column in zip(*shares_of(a), strict=True)]
    assert balance(a).item() == pytest.approx(-sum(map(math.log, shares)) / 4, rel=1e-12)
    expected = -sum(p * math.log(s) for p, s in zip(PRIOR.tolist(), shares, strict=True))
    assert balance(a, PRIOR.log()).item() == pytest.approx(expected, rel=1e-12)


@given(st.integers(0, 10**6), st.floats(0.01, 20), st.permutations(range(4)), st.permutations(range(6)))
def test_balance_is_never_below_the_entropy_of_the_prior_and_ignores_names_and_order(seed, scale, names, order):
    a = logits_of(6, 4, seed, scale)
    value = balance(a, PRIOR.log())
    assert value.item() >= entropy(PRIOR.tolist()) - 1e-12
    assert balance(a).item() >= math.log(4) - 1e-12
    torch.testing.assert_close(balance(a[order][:, names], PRIOR[names].log()), value)
    torch.testing.assert_close(balance(a[:, names]), balance(a))


def test_balance_is_least_exactly_where_the_shares_are_the_priors():
    least = entropy(PRIOR.tolist())
    same = PRIOR.log().expand(8, -1)
    assert balance(same, PRIOR.log()).item() == pytest.approx(least, abs=1e-12)
    sure = 60.0 * F.one_hot(torch.tensor([0] * 10 + [1] * 6 + [2] * 3 + [3]), 4).double()  # 10 : 6 : 3 : 1
    assert balance(sure, PRIOR.log()).item() == pytest.approx(least, abs=1e-12)
    for logits in (same.clone().requires_grad_(), sure.clone().requires_grad_()):
        assert torch.autograd.grad(balance(logits, PRIOR.log()), logits)[0].abs().max() < 1e-12
    other = sure.clone()
    other[0] = sure[-1]  # 9 : 6 : 3 : 2
    assert balance(other, PRIOR.log()).item() > least + 1e-3
    assert balance(sure).item() > math.log(4) + 0.1  # and these shares are not the uniform ones


def test_one_symbol_for_everything_agrees_and_is_out_of_balance():
    collapsed = torch.tensor([[30.0, 0.0, 0.0]]).expand(9, -1)
    assert agreement(collapsed, collapsed) < 1e-9
    assert balance(collapsed) > 15


@pytest.mark.parametrize("size", [1e2, 1e4, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_logits_give_finite_values_and_gradients(size, dtype):
    a = (size * torch.tensor([[1.0, -1.0, 0.0], [-1.0, 0.0, 1.0]], dtype=dtype)).requires_grad_()
    b = (size * torch.tensor([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]], dtype=dtype)).requires_grad_()
    prior = torch.tensor([0.2, 0.3, 0.5], dtype=dtype).log()
    for loss in (agreement(a, b), balance(a), balance(a, prior)):
        assert loss.isfinite()
        gradients = torch.autograd.grad(loss, (a, b), allow_unused=True)
        assert all(g.isfinite().all() for g in gradients if g is not None)


def test_a_symbol_without_a_share_costs_nothing_and_stays_finite():
    prior = torch.tensor([0.6, 0.4, 0.0])
    logits = torch.tensor([[50.0, 0.0, -50.0], [0.0, 50.0, -50.0]], requires_grad=True)
    loss = balance(logits, prior.log())
    assert loss.item() == pytest.approx(-0.6 * math.log(0.5) - 0.4 * math.log(0.5), rel=1e-5)
    assert torch.autograd.grad(loss, logits)[0].isfinite().all()


@pytest.mark.parametrize("shape", [(3,), (5,), (1, 4)])
def test_a_prior_of_another_length_is_refused(shape):
    with pytest.raises(ValueError, match="one share for each of 4 clusters"):
        balance(torch.zeros(2, 4), torch.zeros(shape))


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e6, 1e8])
def test_balance_of_large_logits_is_right_to_their_rounding_and_its_gradient_to_that_of_one(scale):
    logits = logits_of(128, 10, 0, scale).float()
    exact, rounded = logits.double().requires_grad_(), logits.clone().requires_grad_()
    log_p = exact.log_softmax(dim=1)
    wanted, found = math.log(128) - log_p.logsumexp(dim=0).mean(), balance(rounded)
    wanted.backward()
    found.backward()
    eps = torch.finfo(torch.float32).eps
    assert abs(found.item() - wanted.item()) <= 2 * eps * (1 + log_p.abs().max().item())
    assert (rounded.grad - exact.grad).abs().max() <= 4 * eps * exact.detach().softmax(dim=1).max()
