import math

import numpy as np
import ot
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from gedi.losses import log_sinkhorn, swapped_prediction

PRIOR = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)


def scores(n=12, c=3, scale=1.0):
    return scale * torch.randn(n, c, dtype=torch.float64)


@given(st.integers(1, 12), st.integers(1, 6), st.floats(0.01, 2), st.integers(1, 4), st.integers(0, 100))
def test_every_row_is_a_distribution_whatever_the_number_of_sweeps(n, c, epsilon, iterations, seed):
    s = torch.randn(n, c, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    log_q = log_sinkhorn(s, epsilon, iterations)
    torch.testing.assert_close(log_q.exp().sum(1), torch.ones(n, dtype=torch.float64), rtol=1e-12, atol=0)


def test_columns_come_to_equal_shares_with_many_sweeps():
    s = scores()
    few, many = (log_sinkhorn(s, 0.3, k).exp().sum(0) for k in (1, 500))
    torch.testing.assert_close(many, torch.full((3,), 4.0, dtype=torch.float64), rtol=1e-8, atol=0)
    assert (few - 4).abs().max() > 1e-3  # so the many were needed


def test_columns_come_to_the_prior_with_many_sweeps():
    share = log_sinkhorn(scores(), 0.3, 500, log_prior=PRIOR.log()).exp().mean(0)
    torch.testing.assert_close(share, PRIOR, rtol=1e-8, atol=0)


def test_a_uniform_prior_is_no_prior():
    s = scores()
    uniform = torch.full((3,), 1 / 3, dtype=torch.float64).log()
    torch.testing.assert_close(log_sinkhorn(s, log_prior=uniform), log_sinkhorn(s))


def test_each_sweep_is_columns_then_rows():
    q = np.exp(scores().numpy() / 0.5)
    s = torch.from_numpy(0.5 * np.log(q))
    for sweep in range(1, 5):
        q = q / q.sum(0) * PRIOR.numpy()
        q = q / q.sum(1, keepdims=True)
        np.testing.assert_allclose(log_sinkhorn(s, 0.5, sweep, PRIOR.log()).exp().numpy(), q, rtol=1e-10)


@pytest.mark.parametrize("prior", [None, PRIOR])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_it_solves_the_same_transport_problem_as_pot(epsilon, prior):
    s = scores()
    b = np.full(3, 1 / 3) if prior is None else prior.numpy()
    plan = ot.sinkhorn(np.full(12, 1 / 12), b, -s.numpy(), reg=epsilon, numItermax=10_000, stopThr=1e-14)
    ours = log_sinkhorn(s, epsilon, 2000, None if prior is None else prior.log()).exp() / 12
    np.testing.assert_allclose(ours.numpy(), plan, atol=1e-10)


def test_it_maximises_similarity_plus_entropy_among_balanced_assignments():
    s, epsilon = scores(6, 3), 0.4
    q = log_sinkhorn(s, epsilon, 2000).exp()

    def objective(q):
        return (q * s).sum() - epsilon * (q * q.log()).sum()

    best = objective(q)
    for _ in range(20):  # a move that keeps the row sums and the column sums
        move = torch.randn(6, 3, dtype=torch.float64)
        move = move - move.mean(0) - move.mean(1, keepdim=True) + move.mean()
        move *= 0.3 * q.min() / move.abs().max()
        assert objective(q + move) < best
        assert objective(q - move) < best


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_temperature_overflows(dtype):
    s = scores(40, 4).to(dtype)
    for epsilon in (1e-4, 1e-8):
        log_q = log_sinkhorn(s, epsilon)
        assert not log_q.isnan().any()
        assert (log_q <= 1e-3).all()
        torch.testing.assert_close(log_q.exp().sum(1), torch.ones(40, dtype=dtype), rtol=1e-3, atol=0)


def test_a_small_epsilon_gives_the_optimal_hard_assignment():
    s = scores(6, 3) + torch.tensor([2.0, 0, 0])  # the first cluster is the nearest too often
    _, places = linear_sum_assignment(s.repeat(1, 2).numpy(), maximize=True)  # each cluster has two places
    q = log_sinkhorn(s, 1e-3, 5000).exp()
    assert q.argmax(1).tolist() == (places % 3).tolist()
    assert q.argmax(1).tolist() != s.argmax(1).tolist()
    assert q.max(1).values.min() > 0.99


def test_a_constant_added_to_a_row_or_to_a_column_changes_nothing():
    s = scores()
    rows, columns = 50 * torch.randn(12, 1).double(), 50 * torch.randn(1, 3).double()
    # a column's constant is what the first sweep removes, a row's is removed only in the limit...
    torch.testing.assert_close(log_sinkhorn(s + columns, 0.5), log_sinkhorn(s, 0.5))
    torch.testing.assert_close(log_sinkhorn(s + 3.0, 0.5), log_sinkhorn(s, 0.5))
    # ...where both are
    limit = log_sinkhorn(s, 1.0, 3000)
    torch.testing.assert_close(log_sinkhorn(s + rows / 50 + columns, 1.0, 3000), limit)


def test_scores_and_epsilon_count_only_by_their_ratio():
    s = scores()
    torch.testing.assert_close(log_sinkhorn(7 * s, 0.7), log_sinkhorn(s, 0.1))


def test_stacked_tables_are_balanced_each_on_its_own():
    tables = torch.stack([scores(), 5 * scores() + 2])
    together = log_sinkhorn(tables, 0.3, 3, PRIOR.log())
    apart = torch.stack([log_sinkhorn(table, 0.3, 3, PRIOR.log()) for table in tables])
    torch.testing.assert_close(together, apart)


def test_scores_without_information_give_the_prior():
    log_q = log_sinkhorn(torch.zeros(5, 3, dtype=torch.float64), log_prior=PRIOR.log())
    torch.testing.assert_close(log_q.exp(), PRIOR.expand(5, 3))


def by_loop(logits, other, temperature, epsilon, iterations, prior):
    """The loss written with scalars, in the order of the definition."""
    n, c = len(logits), len(logits[0])

    def assign(s):
        q = [[math.exp(temperature * s[i][k] / epsilon) for k in range(c)] for i in range(n)]
        for _ in range(iterations):
            for k in range(c):
                total = sum(q[i][k] for i in range(n))
                for i in range(n):
                    q[i][k] *= prior[k] / total
            for i in range(n):
                total = sum(q[i])
                q[i] = [v / total for v in q[i]]
        return q

    def cross_entropy(q, s):
        total = 0.0
        for i in range(n):
            log_z = math.log(sum(math.exp(v) for v in s[i]))
            total -= sum(q[i][k] * (s[i][k] - log_z) for k in range(c))
        return total / n

    return (cross_entropy(assign(other), logits) + cross_entropy(assign(logits), other)) / 2


@pytest.mark.parametrize(("temperature", "epsilon", "iterations"), [(0.1, 0.05, 3), (0.5, 0.3, 1), (1.0, 1.0, 10)])
@pytest.mark.parametrize("prior", [None, PRIOR])
def test_the_loss_is_its_definition_written_as_a_loop(temperature, epsilon, iterations, prior):
    a, b = scores(5), scores(5)
    ours = swapped_prediction(
        a,
        b,
        temperature=temperature,
        epsilon=epsilon,
        iterations=iterations,
        log_prior=None if prior is None else prior.log(),
    )
    shares = [1.0] * 3 if prior is None else prior.tolist()
    expected = by_loop(a.tolist(), b.tolist(), temperature, epsilon, iterations, shares)
    assert math.isclose(ours.item(), expected, rel_tol=1e-10)


def test_logits_without_information_cost_the_log_of_the_number_of_clusters():
    for c in (2, 5):
        zero = torch.zeros(10, c, dtype=torch.float64)
        assert math.isclose(swapped_prediction(zero, zero).item(), math.log(c))


def test_all_points_in_one_cluster_cost_more_than_balanced_clusters():
    collapsed = torch.tensor([[10.0, -10.0]]).repeat(8, 1)
    balanced = torch.tensor([[10.0, -10.0], [-10.0, 10.0]]).repeat(4, 1)
    assert swapped_prediction(balanced, balanced) < 1e-3
    assert swapped_prediction(collapsed, collapsed) > 5


def test_views_that_disagree_cost_more_than_views_that_agree():
    a = 5 * torch.eye(4).repeat(3, 1)
    assert swapped_prediction(a, a.roll(1, 0)) > swapped_prediction(a, a) + 1


def test_the_two_views_have_the_same_part():
    a, b = scores(), scores()
    torch.testing.assert_close(swapped_prediction(a, b), swapped_prediction(b, a), rtol=1e-12, atol=0)


def test_renaming_the_clusters_changes_nothing():
    a, b = scores(), scores()
    names = torch.tensor([2, 0, 1])
    torch.testing.assert_close(swapped_prediction(a[:, names], b[:, names]), swapped_prediction(a, b))
    renamed = swapped_prediction(a[:, names], b[:, names], log_prior=PRIOR.log()[names])
    torch.testing.assert_close(renamed, swapped_prediction(a, b, log_prior=PRIOR.log()))


def test_no_gradient_flows_through_the_assignments():
    a, b = scores().requires_grad_(True), scores().requires_grad_(True)
    ours = torch.autograd.grad(swapped_prediction(a, b, temperature=0.5, epsilon=0.5), (a, b))
    q_a, q_b = (log_sinkhorn(0.5 * s.detach(), 0.5).exp() for s in (a, b))
    # with q given, the gradient of CE(q, softmax(s)) in s is softmax(s) - q
    torch.testing.assert_close(ours[0], (a.softmax(1) - q_b).detach() / (2 * 12))
    torch.testing.assert_close(ours[1], (b.softmax(1) - q_a).detach() / (2 * 12))


def test_descent_on_free_logits_finds_clusters_that_agree_and_are_balanced():
    n, c = 60, 3
    a, b = (torch.randn(n, c, requires_grad=True) for _ in range(2))
    agreed = (a.argmax(1) == b.argmax(1)).float().mean()
    optimiser = torch.optim.Adam([a, b], lr=0.05)
    for _ in range(400):
        optimiser.zero_grad()
        loss = swapped_prediction(a, b, temperature=0.1, epsilon=0.05, iterations=10)
        loss.backward()
        optimiser.step()
    assert agreed < 0.6
    assert (a.argmax(1) == b.argmax(1)).float().mean() > 0.95
    counts = torch.bincount(a.argmax(1), minlength=c)
    assert (counts - n / c).abs().max() <= 3
    assert loss < 0.2 * math.log(c)


@pytest.mark.parametrize("clusters", [2, 5])
@pytest.mark.parametrize(("epsilon", "grows"), [(0.05, True), (0.19, True), (0.21, False), (0.5, False)])
def test_clusters_grow_out_of_the_uniform_state_only_below_the_temperature(clusters, epsilon, grows):
    """Near uniform, q is scores/epsilon and p is scores/tau to first order: targets lead only if epsilon < tau."""
    tau = 0.2
    torch.manual_seed(0)
    seedling = torch.randn(60, clusters, dtype=torch.float64)
    seedling = seedling - seedling.mean(0)  # balanced, so Sinkhorn's first sweep changes nothing
    seedling = seedling - seedling.mean(1, keepdim=True)
    logits = (1e-4 * seedling).requires_grad_()
    loss = swapped_prediction(logits, logits, temperature=tau, epsilon=epsilon, iterations=10)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert ((-gradient * seedling).sum() > 0) == grows
