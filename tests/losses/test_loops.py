"""Every loss of the family, number by number in plain Python, at batches of two, odd ones and fewer than dimensions."""

import math
from functools import partial

import numpy as np
import pytest
import torch

from gedi import losses


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def unit(a):
    length = math.sqrt(dot(a, a))
    return [x / length for x in a]


def squared(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def log_softmax(row):
    top = max(row)
    total = math.log(sum(math.exp(x - top) for x in row)) + top
    return [x - total for x in row]


def covariance(rows, divisor):
    n, d = len(rows), len(rows[0])
    mean = [sum(row[j] for row in rows) / n for j in range(d)]
    return [
        [sum((row[j] - mean[j]) * (row[k] - mean[k]) for row in rows) / divisor for k in range(d)] for j in range(d)
    ]


def determinant(matrix):
    """By elimination with pivots."""
    a, result = [list(row) for row in matrix], 1.0
    for i in range(len(a)):
        best = max(range(i, len(a)), key=lambda r: abs(a[r][i]))
        if best != i:
            a[i], a[best], result = a[best], a[i], -result
        result *= a[i][i]
        for r in range(i + 1, len(a)):
            factor = a[r][i] / a[i][i]
            a[r] = [x - factor * y for x, y in zip(a[r], a[i], strict=True)]
    return result


def nt_xent(z, other, tau=0.2):
    points = [unit(a) for a in z + other]
    n, total = len(z), 0.0
    for i, a in enumerate(points):
        others = sum(math.exp(dot(a, b) / tau) for k, b in enumerate(points) if k != i)
        total -= math.log(math.exp(dot(a, points[(i + n) % (2 * n)]) / tau) / others)
    return total / (2 * n)


def cpc(c, z, tau=1.0):
    return -sum(log_softmax([dot(a, b) / tau for b in z])[i] for i, a in enumerate(c)) / len(c)


def proto_cpc(s, other, sharpening=2.0):
    total, n, c = 0.0, len(s), len(s[0])
    for given, seen in ((s, other), (other, s)):
        q = [[math.exp(x) for x in log_softmax([sharpening * y for y in row])] for row in seen]
        shares = [sum(row[k] for row in q) / n for k in range(c)]
        for i in range(n):
            total += math.log(sum(shares[k] * math.exp(given[i][k]) for k in range(c))) - dot(q[i], given[i])
    return total / (2 * n)


def k_shot(query, *shots, tau=0.1, ridge=1e-2):
    """The projection by a plain inverse."""
    n, total = len(query), 0.0
    for i in range(n):
        z, lengths = np.array(unit(query[i])), []
        for j in range(n):
            v = np.array([unit(shot[j]) for shot in shots])  # (K, d)
            inverse = np.linalg.inv(v @ v.T + ridge * np.eye(len(shots)))
            lengths.append(math.sqrt(float(z @ v.T @ inverse @ v @ z) + 1e-12) / tau)
        total -= log_softmax(lengths)[i]
    return total / n


def vicreg(z, other):
    n, d = len(z), len(z[0])
    total = 25 * sum(squared(a, b) for a, b in zip(z, other, strict=True)) / (n * d)
    for rows in (z, other):
        c = covariance(rows, n - 1)
        total += 25 / 2 * sum(max(0.0, 1 - math.sqrt(c[j][j] + 1e-4)) for j in range(d)) / d
        total += sum(c[j][k] ** 2 for j in range(d) for k in range(d) if j != k) / d
    return total


def w_mse(z, other, ridge=1e-3):
    """Whitening by an inverse factor, row by row."""
    white = []
    for rows in (z, other):
        c, mean = np.array(covariance(rows, len(rows) - 1)), np.mean(rows, axis=0)
        level = ridge * np.trace(c) / len(c) + 1e-12
        inverse = np.linalg.inv(np.linalg.cholesky(c + level * np.eye(len(c))))
        white.append([unit((inverse @ (np.array(row) - mean)).tolist()) for row in rows])
    return sum(squared(a, b) for a, b in zip(*white, strict=True)) / len(z)


def mec(z, other, rate=0.9, order=4):
    n, d = len(z), len(z[0])
    first, second = np.array([unit(a) for a in z]), np.array([unit(a) for a in other])
    product = sum(np.outer(a, b) for a, b in zip(first, second, strict=True)) * rate / n
    power, total = np.eye(d), 0.0
    for k in range(1, order + 1):
        power = power @ product
        total += (-1) ** (k + 1) / k * np.trace(power)
    return -(n + d) / (2 * n) * total


def cor_info_max(z, other, ridge=1e-3):
    views = [[unit(a) for a in rows] for rows in (z, other)]
    n, d = len(z), len(z[0])
    total = sum(squared(a, b) for a, b in zip(*views, strict=True)) / n
    for rows in views:
        c = covariance(rows, n)
        total -= math.log(determinant([[c[j][k] + ridge * (j == k) for k in range(d)] for j in range(d)])) / (2 * d)
    return total


def deep_cluster(s, assigned):
    present = sorted(set(assigned))
    means = []
    for k in present:
        rows = [-log_softmax(row)[k] for row, own in zip(s, assigned, strict=True) if own == k]
        means.append(sum(rows) / len(rows))
    return sum(means) / len(present)


LOOPS = {
    "nt_xent": (losses.nt_xent, nt_xent, 2),
    "cpc": (losses.cpc, cpc, 2),
    "proto_cpc": (losses.proto_cpc, proto_cpc, 2),
    "k_shot, one": (losses.k_shot, k_shot, 2),
    "k_shot, three": (losses.k_shot, k_shot, 4),
    "vicreg": (losses.vicreg, vicreg, 2),
    "w_mse": (losses.w_mse, w_mse, 2),
    "mec": (losses.mec, mec, 2),
    "mec, two terms": (partial(losses.mec, order=2), partial(mec, order=2), 2),
    "cor_info_max": (losses.cor_info_max, cor_info_max, 2),
}


@pytest.mark.parametrize(("n", "d"), [(2, 3), (7, 4), (5, 9)])
@pytest.mark.parametrize("name", LOOPS)
def test_a_loss_is_its_loop(name, n, d):
    loss, loop, views = LOOPS[name]
    given = [torch.randn(n, d, dtype=torch.float64) for _ in range(views)]
    assert loss(*given).item() == pytest.approx(loop(*(x.tolist() for x in given)), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize(("n", "c"), [(2, 3), (7, 4), (5, 9)])
def test_pseudo_labels_count_alike_however_many_points_have_them(n, c):
    s, assigned = torch.randn(n, c, dtype=torch.float64), torch.randint(0, c, (n,))
    assert losses.deep_cluster(s, assigned).item() == pytest.approx(
        deep_cluster(s.tolist(), assigned.tolist()), rel=1e-10
    )


@pytest.mark.parametrize(("n", "d"), [(2, 3), (7, 4), (5, 9)])
def test_running_covariances_count_as_they_are_told(n, d):
    z, other = (torch.randn(n, d, dtype=torch.float64) for _ in range(2))
    past = [torch.eye(d).double() * 2, torch.eye(d).double() / 3]
    expected = (z / z.norm(dim=1, keepdim=True) - other / other.norm(dim=1, keepdim=True)).square().sum(1).mean()
    for rows, before in zip((z, other), past, strict=True):
        now = torch.cov((rows / rows.norm(dim=1, keepdim=True)).t(), correction=0).view(d, d)
        mixed = 0.7 * before + 0.3 * now + 1e-3 * torch.eye(d).double()
        expected = expected - torch.logdet(mixed) / (2 * d)
    found = losses.cor_info_max(z, other, past=past, keep=0.7)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("temperature", [1e-6, 1e6])
@pytest.mark.parametrize("name", ["contrastive", "nt_xent", "cpc", "k_shot"])
def test_no_temperature_is_too_extreme(name, temperature, dtype):
    z, other = (torch.randn(6, 4, dtype=dtype, requires_grad=True) for _ in range(2))
    value = getattr(losses, name)(z, other, temperature=temperature)
    assert value.isfinite()
    assert all(g.isfinite().all() for g in torch.autograd.grad(value, [z, other]))


@pytest.mark.parametrize("sharpening", [1e-6, 1e6])
def test_no_sharpening_is_too_extreme(sharpening):
    s, other = (1e3 * torch.randn(6, 4, requires_grad=True) for _ in range(2))
    value = losses.proto_cpc(s, other, sharpening)
    assert value.isfinite()
    assert all(g.isfinite().all() for g in torch.autograd.grad(value, [s, other]))


DEGENERATE = {
    "all alike": lambda n, d: torch.ones(n, d),
    "every second alike": lambda n, d: torch.randn(n // 2, d).repeat_interleave(2, dim=0),
    "zeros": lambda n, d: torch.zeros(n, d),
    "one zero row": lambda n, d: torch.randn(n, d) * (torch.arange(n) > 0)[:, None],
    "one zero column": lambda n, d: torch.randn(n, d) * (torch.arange(d) > 0),
    "tiny": lambda n, d: 1e-12 * torch.randn(n, d),
    "huge": lambda n, d: 1e4 * torch.randn(n, d),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", DEGENERATE)
@pytest.mark.parametrize("name", [*LOOPS, "contrastive", "barlow_twins", "agreement", "swapped_prediction"])
def test_points_that_say_nothing_give_finite_numbers(name, kind, dtype):
    loss, views = (LOOPS[name][0], LOOPS[name][2]) if name in LOOPS else (getattr(losses, name), 2)
    given = [DEGENERATE[kind](6, 4).to(dtype).requires_grad_() for _ in range(views)]
    value = loss(*given)
    assert value.isfinite()
    for gradient in torch.autograd.grad(value, given, allow_unused=True):
        assert gradient is None or gradient.isfinite().all()


def test_a_series_without_terms_and_a_shot_without_views_are_refused():
    z = torch.randn(4, 3)
    with pytest.raises(ValueError, match="at least one term"):
        losses.mec(z, z, order=0)
    with pytest.raises(ValueError, match="at least one view"):
        losses.k_shot(z)
