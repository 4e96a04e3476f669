"""What the classes of self-supervised losses have to do with one another, in numbers."""

import math

import pytest
import torch
import torch.nn.functional as F

from gedi import losses


def centred_units(n, d):
    """Unit rows of mean zero: some, and their opposites, in an order of their own."""
    half = F.normalize(torch.randn(n // 2, d, dtype=torch.float64), dim=1)
    return torch.cat([half, -half])[torch.randperm(n)]


def spread_of(w, ridge):
    """The part of the negative-free term that does not look at the views."""
    still = torch.zeros(len(w), 1, dtype=torch.float64)
    return losses.negative_free(w, still, still, ridge)


@pytest.mark.parametrize(("n", "d"), [(10, 3), (8, 5), (6, 9)])
def test_cor_info_max_is_the_negative_free_term_of_unit_vectors(n, d):
    """Mean zero and length one leave the trace a constant; the rest is the same, with weight d / 2."""
    w, other, ridge = centred_units(n, d), centred_units(n, d), 0.3
    paper = (losses.negative_free(w, w, other, ridge) + losses.negative_free(other, w, other, ridge)) / 2
    constant = (n + ridge * d) / 2 - d / 2 * math.log(n)
    found = losses.cor_info_max(w, other, ridge=ridge / n, invariance=n / d)
    torch.testing.assert_close(paper, d / 2 * found + constant, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("n", "d"), [(10, 3), (8, 5), (6, 9)])
def test_mec_is_the_determinant_of_the_negative_free_term(n, d):
    """At equal views, all terms of the series: log det S = log det (I + Z^T Z / beta) + d log beta."""
    w, rate = centred_units(n, d), 0.4
    ridge = n / rate
    code = -losses.mec(w, w, rate=rate, order=80) * 2 * n / (n + d)
    trace = n + ridge * d
    torch.testing.assert_close(spread_of(w, ridge), (trace - code - d * math.log(ridge)) / 2, rtol=1e-10, atol=1e-10)


def test_mec_s_first_terms_are_closeness_and_spread():
    z, other = (F.normalize(torch.randn(9, 4, dtype=torch.float64), dim=1) for _ in range(2))
    rate, n, d = 0.5, 9, 4
    close, cross = rate * (z * other).sum(1).mean(), rate / n * z.t() @ other
    torch.testing.assert_close(
        losses.mec(z, other, rate, order=2), -(n + d) / (2 * n) * (close - (cross * cross.t()).sum() / 2)
    )


@pytest.mark.parametrize("size", [1e-3, 1e-4])
def test_near_the_identity_barlow_vicreg_and_the_negative_free_term_are_one_square(size):
    """tr S - log det S = d + |S - I|^2 / 2 + ..., and the other two are the same square beside the diagonal."""
    n, d = 64, 4
    x = torch.randn(n, d, dtype=torch.float64)
    x = x - x.mean(0)
    white = torch.linalg.solve_triangular(torch.linalg.cholesky(x.t() @ x), x.t(), upper=False).t()  # scatter I
    turn = torch.randn(d, d, dtype=torch.float64)
    turn = (turn + turn.t()) * (1 - torch.eye(d).double())  # only beside the diagonal
    w = white @ torch.linalg.cholesky(torch.eye(d).double() + size * turn).t()
    square = (size * turn).square().sum()
    paper = spread_of(w, 1e-12) - d / 2
    torch.testing.assert_close(paper, square / 4, rtol=20 * size, atol=0)
    scaled = w * math.sqrt(n - 1)
    vicreg = losses.vicreg(scaled, scaled, invariance=0, variance=0, covariance=1) * d / 2
    torch.testing.assert_close(vicreg, square, rtol=1e-6, atol=0)
    barlow = losses.barlow_twins(1e4 * w, 1e4 * w, off_diagonal=1.0)  # large: its epsilon then counts for nothing
    torch.testing.assert_close(barlow, square, rtol=20 * size, atol=0)


def test_whitening_is_the_least_that_the_spread_can_cost():
    """W-MSE asks for what the negative-free term is least at, and then only for closeness."""
    x, view = (torch.randn(20, 3, dtype=torch.float64) for _ in range(2))
    whites = []
    for rows in (x, view):
        rows = rows - rows.mean(0)
        whites.append(torch.linalg.solve_triangular(torch.linalg.cholesky(rows.t() @ rows), rows.t(), upper=False).t())
        assert spread_of(whites[-1], 1e-12).item() == pytest.approx(3 / 2)
        assert spread_of(rows, 1e-12) > 3 / 2
    close = sum((F.normalize(a, dim=0) - F.normalize(b, dim=0)).square().sum() for a, b in zip(*whites, strict=True))
    assert losses.w_mse(x, view, ridge=1e-12).item() == pytest.approx(close.item() / 20, rel=1e-8)


def test_nt_xent_without_one_s_own_view_is_info_nce():
    """Points of one view far from each other leave only those of the other view as negatives."""
    z, other = (torch.randn(5, 3, dtype=torch.float64) for _ in range(2))
    info, both = losses.contrastive(z, other, 0.5), losses.nt_xent(z, other, 0.5)
    assert both > info  # more negatives
    first = torch.cat([F.normalize(z, dim=1), torch.zeros(5, 3).double()], 1)
    second = torch.cat([torch.zeros(5, 3).double(), F.normalize(other, dim=1)], 1)
    apart = losses.nt_xent(first, second, 1.0).exp().item()  # every other view at right angles: 1 of 5 + the own 4
    same = torch.exp(F.normalize(z, dim=1) @ F.normalize(z, dim=1).t()).fill_diagonal_(0).sum(1) + 5
    other_same = torch.exp(F.normalize(other, dim=1) @ F.normalize(other, dim=1).t()).fill_diagonal_(0).sum(1) + 5
    assert apart == pytest.approx(torch.cat([same, other_same]).log().mean().exp().item())


def test_cpc_both_ways_on_the_unit_sphere_is_info_nce():
    z, other = (F.normalize(torch.randn(6, 4, dtype=torch.float64), dim=1) for _ in range(2))
    both = (losses.cpc(z, other, 0.1) + losses.cpc(other, z, 0.1)) / 2
    torch.testing.assert_close(both, losses.contrastive(z, other, 0.1))


def test_one_shot_is_info_nce_of_the_size_of_the_cosine():
    z, other = (torch.randn(6, 4, dtype=torch.float64).abs() for _ in range(2))  # cosines above 0
    s = F.normalize(z, dim=1) @ F.normalize(other, dim=1).t() / 0.2
    torch.testing.assert_close(
        losses.k_shot(z, other, temperature=0.2, ridge=1e-9), F.cross_entropy(s, torch.arange(6)), rtol=1e-6, atol=1e-6
    )


def test_a_shot_that_says_the_same_again_changes_little_and_one_that_holds_the_query_is_found():
    z, view, more = (torch.randn(6, 5, dtype=torch.float64) for _ in range(3))
    once, twice = losses.k_shot(z, view, ridge=1e-6), losses.k_shot(z, view, view, ridge=1e-6)
    torch.testing.assert_close(once, twice, rtol=1e-4, atol=1e-4)
    mixed = 0.3 * view + 0.7 * more
    assert losses.k_shot(mixed, view, more, ridge=1e-6) < losses.k_shot(mixed, view, ridge=1e-6)


def test_proto_cpc_bounds_info_nce_of_its_critic_from_above():
    for n, c in ((2, 3), (7, 4), (40, 5)):
        s, other = (3 * torch.randn(n, c, dtype=torch.float64) for _ in range(2))
        bound = torch.zeros((), dtype=torch.float64)
        for given, seen in ((s, other), (other, s)):
            critic = given @ (2 * seen).softmax(dim=1).t()  # q_j^T s_i
            bound = bound + (F.cross_entropy(critic, torch.arange(n)) - math.log(n)) / 2
        assert losses.proto_cpc(s, other) >= bound


def test_proto_cpc_pays_for_collapse():
    one = torch.tensor([[40.0, 0.0, 0.0]]).repeat(6, 1)
    assert losses.proto_cpc(one, one).item() == pytest.approx(0, abs=1e-6)
    flat = torch.zeros(6, 3)
    assert losses.proto_cpc(flat, flat).item() == pytest.approx(0, abs=1e-6)
    shared = 40 * torch.eye(3).repeat(2, 1)
    assert losses.proto_cpc(shared, shared).item() == pytest.approx(-math.log(3), abs=1e-5)


def test_the_later_gedi_s_uniformity_is_the_balance_times_the_clusters():
    logits = torch.randn(9, 4, dtype=torch.float64)
    later = -logits.softmax(dim=1).mean(dim=0).log().sum()
    torch.testing.assert_close(4 * losses.balance(logits), later, rtol=1e-12, atol=1e-12)
