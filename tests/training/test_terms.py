"""Terms, schedules and batches."""

import math

import pytest
import torch
import torch.nn.functional as F

from gedi.losses import swapped_prediction
from gedi.training import ClusterTerm, Optimiser, perfect_cluster_loss
from gedi.training.batches import Batches


@pytest.mark.parametrize(("clusters", "temperature"), [(2, 0.5), (2, 0.2), (3, 0.2), (5, 0.5)])
def test_no_free_embedding_beats_the_perfect_loss_and_descent_reaches_it(clusters, temperature):
    g = torch.Generator().manual_seed(clusters)
    w = torch.randn(clusters, 8, generator=g).requires_grad_()
    u = torch.randn(clusters, 8, generator=g).requires_grad_()
    optimizer = torch.optim.Adam([w, u], lr=0.05)
    floor = perfect_cluster_loss(clusters, 8, temperature)
    for _ in range(600):
        logits = F.normalize(w, dim=1) @ F.normalize(u, dim=1).t() / temperature
        loss = F.cross_entropy(logits, torch.arange(clusters))  # each its own cluster: the perfect case
        assert loss.item() >= floor - 1e-6
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() == pytest.approx(floor, rel=0.02, abs=5e-4)


def test_the_loss_of_a_perfect_clustering_is_the_perfect_loss():
    simplex = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).repeat(50, 1) / 0.2
    loss = swapped_prediction(simplex, simplex, temperature=0.2, epsilon=0.05)
    assert loss.item() == pytest.approx(perfect_cluster_loss(2, 8, 0.2), rel=1e-3)


def test_epsilon_goes_down_geometrically_and_stays():
    term = ClusterTerm("noise", 0.2, 0.5, 0.1, 0.7, 3)
    assert term.epsilon_at(0) == 0.5
    assert term.epsilon_at(0.35) == pytest.approx(math.sqrt(0.5 * 0.1))
    assert term.epsilon_at(0.7) == term.epsilon_at(1.0) == pytest.approx(0.1)


def test_the_learning_rate_warms_up_and_falls_to_its_share():
    optimiser = Optimiser(1.0, (0.9, 0.999), warmup=10, final=0.02)
    rates = [optimiser.rate(i, 1000) for i in range(1000)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == pytest.approx(1, abs=0.01)
    assert rates[-1] == pytest.approx(0.02, abs=0.001)
    assert Optimiser(1.0, (0.9, 0.999), 0, 1.0).rate(900, 1000) == 1.0


def test_a_pass_over_the_data_shows_every_point_once():
    batches, g = Batches(12, 4), torch.Generator().manual_seed(0)
    seen = torch.cat([batches.next(g) for _ in range(3)])
    assert sorted(seen.tolist()) == list(range(12))


def test_batches_go_on_from_a_saved_place():
    a, g = Batches(10, 3), torch.Generator().manual_seed(0)
    a.next(g)
    b, h = Batches(10, 3), torch.Generator()
    b.load_state_dict(a.state_dict())
    h.set_state(g.get_state())
    assert [a.next(g).tolist() for _ in range(7)] == [b.next(h).tolist() for _ in range(7)]
