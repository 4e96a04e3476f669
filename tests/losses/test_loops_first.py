"""The losses that were there before the family, number by number in plain Python; extremes that say nothing."""

import math
from functools import partial

import pytest
import torch

from gedi import losses


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def softmax(row):
    top = max(row)
    e = [math.exp(x - top) for x in row]
    return [x / sum(e) for x in e]


def agreement(s, other):
    rows = zip(map(softmax, s), map(softmax, other), strict=True)
    return -sum(dot(q, map(math.log, p)) + dot(p, map(math.log, q)) for p, q in rows) / (2 * len(s))


def balance(s):
    shares = [sum(column) / len(s) for column in zip(*map(softmax, s), strict=True)]
    return -sum(map(math.log, shares)) / len(shares)


def swapped_prediction(s, other, tau=0.1, epsilon=0.05, sweeps=3):
    """Sinkhorn by dividing columns and rows in turn."""

    def assigned(rows):
        q = [[math.exp(tau * x / epsilon) for x in row] for row in rows]
        for _ in range(sweeps):
            columns = [sum(column) for column in zip(*q, strict=True)]
            q = [[x / c for x, c in zip(row, columns, strict=True)] for row in q]
            q = [[x / sum(row) for x in row] for row in q]
        return q

    both = ((s, assigned(other)), (other, assigned(s)))
    return -sum(dot(q, map(math.log, softmax(row))) for rows, qs in both for row, q in zip(rows, qs, strict=True)) / (
        2 * len(s)
    )


def barlow_twins(z, other, off_diagonal=5e-3):
    def standardised(column):
        mean = sum(column) / len(column)
        root = math.sqrt(sum((x - mean) ** 2 for x in column) / len(column) + 1e-5)
        return [(x - mean) / root for x in column]

    first, second = ([standardised(c) for c in zip(*rows, strict=True)] for rows in (z, other))
    total = 0.0
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            c = dot(a, b) / len(z)
            total += (1 - c) ** 2 if i == j else off_diagonal * c**2
    return total


def contrastive(z, other, tau=0.1, distance=False):
    def like(a, b):
        if distance:
            return -sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
        return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))

    s = [[like(a, b) / tau for b in other] for a in z]
    rows = [*enumerate(s), *enumerate(zip(*s, strict=True))]
    return -sum(math.log(softmax(row)[i]) for i, row in rows) / (2 * len(z))


def negative_free(w, latent, latent_view, ridge=0.1):
    """The determinant by the recursion of Gram and Schmidt: the product of what is left of each row."""
    d, means = len(w[0]), [sum(c) / len(w) for c in zip(*w, strict=True)]
    rows = [[x - m for x, m in zip(row, means, strict=True)] for row in w]
    a = [[sum(r[j] * r[k] for r in rows) + ridge * (j == k) for k in range(d)] for j in range(d)]
    trace, log_det = sum(a[j][j] for j in range(d)), 0.0
    for i in range(d):  # positive definite: no pivots
        log_det += math.log(a[i][i])
        for r in range(i + 1, d):
            factor = a[r][i] / a[i][i]
            a[r] = [x - factor * y for x, y in zip(a[r], a[i], strict=True)]
    apart = sum((x - y) ** 2 for p, q in zip(latent, latent_view, strict=True) for x, y in zip(p, q, strict=True))
    return (trace - log_det) / 2 + apart / 2


def denoising(score, noise, sigma=0.3):
    return sum(
        (sigma * x + y) ** 2 for p, q in zip(score, noise, strict=True) for x, y in zip(p, q, strict=True)
    ) / len(score)


LOOPS = {
    "agreement": (losses.agreement, agreement, 2),
    "balance": (losses.balance, balance, 1),
    "swapped_prediction": (losses.swapped_prediction, swapped_prediction, 2),
    "barlow_twins": (losses.barlow_twins, barlow_twins, 2),
    "contrastive": (losses.contrastive, contrastive, 2),
    "contrastive, distances": (
        partial(losses.contrastive, temperature=1.0, similarity="distance"),
        partial(contrastive, tau=1.0, distance=True),
        2,
    ),
    "negative_free": (partial(losses.negative_free, ridge=0.1), negative_free, 3),
    "denoising": (partial(losses.denoising, sigma=0.3), denoising, 2),
}


@pytest.mark.parametrize(("n", "d"), [(2, 3), (7, 4), (5, 9)])
@pytest.mark.parametrize("name", LOOPS)
def test_a_loss_is_its_loop(name, n, d):
    loss, loop, views = LOOPS[name]
    given = [torch.randn(n, d, dtype=torch.float64) for _ in range(views)]
    assert loss(*given).item() == pytest.approx(loop(*(x.tolist() for x in given)), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("n", [2, 7])
def test_the_gap_of_energies_and_their_squares_are_sums(n):
    data, samples = (torch.randn(n, dtype=torch.float64) for _ in range(2))
    gap = sum(data.tolist()) / n - sum(samples.tolist()) / n
    squares = sum(x * x for x in (*data.tolist(), *samples.tolist())) / n
    assert losses.generative(data, samples).item() == pytest.approx(gap, rel=1e-10, abs=1e-10)
    assert losses.energy_penalty(data, samples).item() == pytest.approx(squares, rel=1e-10)


@pytest.mark.parametrize("epsilon", [1e-6, 1e6])
def test_no_entropy_of_assignments_is_too_extreme(epsilon):
    s, other = (torch.randn(6, 4, requires_grad=True) for _ in range(2))
    value = losses.swapped_prediction(s, other, epsilon=epsilon)
    assert value.isfinite()
    assert all(g.isfinite().all() for g in torch.autograd.grad(value, [s, other]))


SHARES = {  # the least share of the batch that a symbol has, in nats
    "common": 5.0,
    "rare": 69.0,
    "too small for a float": 300.0,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", SHARES)
def test_the_balance_is_right_in_value_and_slope_however_rare_a_symbol_is(name, dtype):
    """Seen from double precision."""
    rare = torch.tensor([[2.0, 1.0, -SHARES[name]], [0.0, 1.5, 1 - SHARES[name]]])
    s = rare.to(dtype).requires_grad_()
    exact = rare.double().requires_grad_()
    log_shares = torch.logsumexp(exact.log_softmax(dim=1), dim=0) - math.log(2)
    value, truth = losses.balance(s), -log_shares.mean()
    torch.testing.assert_close(value.double(), truth, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=0)
    (slope,), (true_slope,) = torch.autograd.grad(value, s), torch.autograd.grad(truth, exact)
    torch.testing.assert_close(slope.double(), true_slope, rtol=1e-4 if dtype == torch.float32 else 1e-10, atol=1e-7)


def test_a_balance_of_what_is_no_number_is_none():
    assert losses.balance(torch.tensor([[0.0, math.nan], [0.0, 1.0]])).isnan()


def test_a_balance_can_be_mapped_over_batches():
    batches = torch.randn(3, 6, 4, dtype=torch.float64)
    found = torch.func.vmap(torch.func.grad(losses.balance))(batches)
    for batch, slope in zip(batches, found, strict=True):
        batch.requires_grad_()
        torch.testing.assert_close(torch.autograd.grad(losses.balance(batch), batch)[0], slope)
