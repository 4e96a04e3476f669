"""InfoNCE: its formula pair by pair, what it is blind to, its bounds, and a run that learns."""

import math

import pytest
import torch
import torch.nn.functional as F

from gedi.errors import UserError
from gedi.losses import contrastive


def similarity(a, b, kind):
    if kind == "distance":
        return -sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


def pair_by_pair(z, other, tau, kind):
    z, other = z.tolist(), other.tolist()
    total = 0.0
    for i in range(len(z)):
        own = math.exp(similarity(z[i], other[i], kind) / tau)
        total -= math.log(own / sum(math.exp(similarity(z[i], b, kind) / tau) for b in other))
        total -= math.log(own / sum(math.exp(similarity(a, other[i], kind) / tau) for a in z))
    return total / (2 * len(z))


def views(n=7, d=4, noise=0.5):
    z = torch.randn(n, d, dtype=torch.float64)
    return z, z + noise * torch.randn(n, d, dtype=torch.float64)


@pytest.mark.parametrize("kind", ["cosine", "distance"])
@pytest.mark.parametrize("tau", [0.3, 1.0])
@pytest.mark.parametrize(("n", "d"), [(2, 3), (7, 4), (5, 9)])
def test_it_is_its_formula(n, d, tau, kind):
    z, other = views(n, d)
    assert contrastive(z, other, tau, kind).item() == pytest.approx(pair_by_pair(z, other, tau, kind), rel=1e-9)


def test_a_cosine_does_not_see_lengths_and_a_distance_does_not_see_where_all_lie():
    z, other = views()
    lengths = torch.rand(len(z), 1, dtype=torch.float64) + 0.5
    torch.testing.assert_close(contrastive(z * lengths, other), contrastive(z, other))
    moved = contrastive(z + 3, other + 3, similarity="distance")
    torch.testing.assert_close(moved, contrastive(z, other, similarity="distance"))


@pytest.mark.parametrize("kind", ["cosine", "distance"])
def test_the_two_views_may_change_places_and_a_turn_changes_nothing(kind):
    z, other = views()
    turn = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64))[0]
    value = contrastive(z, other, similarity=kind)
    torch.testing.assert_close(contrastive(other, z, similarity=kind), value)
    torch.testing.assert_close(contrastive(z @ turn, other @ turn, similarity=kind), value)


def test_what_cannot_be_told_apart_costs_the_logarithm_of_its_number():
    z = torch.ones(8, 3, dtype=torch.float64)
    assert contrastive(z, z).item() == pytest.approx(math.log(8))
    assert contrastive(z, torch.randn(8, 3).double()).item() >= math.log(8) - 1e-12  # one side is blind: never better


def test_large_similarities_do_not_overflow():
    z, other = views()
    for kind in ("cosine", "distance"):
        assert contrastive(1e3 * z, 1e3 * other, 1e-4, kind).isfinite()


def test_learning_by_it_finds_what_two_views_share():
    g = torch.Generator().manual_seed(0)
    shared = torch.randn(256, 2, generator=g)

    def view():
        return torch.cat([shared + 0.05 * torch.randn(256, 2, generator=g), 2 * torch.randn(256, 6, generator=g)], 1)

    weight = torch.randn(8, 2, generator=g).requires_grad_()
    optimiser = torch.optim.Adam([weight], lr=0.05)
    for _ in range(150):
        optimiser.zero_grad()
        contrastive(view() @ weight, view() @ weight, 0.2).backward()
        optimiser.step()
    used = F.normalize(weight.detach(), dim=0).square().sum(dim=1)
    assert used[:2].sum() > 0.95 * used.sum()  # the six dimensions of noise are left out


def test_an_unknown_similarity_is_told_with_the_nearest():
    with pytest.raises(UserError, match="did you mean 'cosine'"):
        contrastive(*views(), similarity="cosin")
