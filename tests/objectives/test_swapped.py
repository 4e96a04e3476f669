"""The cluster term: its prior, its epsilon, and the loss of a perfect clustering."""

import math

import pytest
import torch
import torch.nn.functional as F

from gedi import losses
from gedi.objectives.swapped import Swapped, perfect_cluster_loss


def test_the_cluster_term_hands_its_prior_to_sinkhorn(seen, two_views, context):
    data, view = two_views(n=40)
    prior = torch.tensor([0.55, 0.25, 0.15, 0.05])
    term = Swapped(weight=1.0, epsilon_start=0.3, epsilon=0.3, anneal=0.0, iterations=50)
    expected = losses.swapped_prediction(
        data, view, temperature=0.5, epsilon=0.3, iterations=50, log_prior=prior.log().double()
    )
    torch.testing.assert_close(term.bind(context(log_shares=prior.log()))(seen(data, view)), expected)
    plain = term.bind(context())(seen(data, view))
    assert (expected - plain).abs() > 1e-3
    shares = losses.log_sinkhorn(data * 0.5, 0.3, 50, prior.log().double()).exp().mean(dim=0)
    torch.testing.assert_close(shares, prior.double(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("look", ["view", "walk"])
def test_the_cluster_term_is_held_against_the_look_it_names(look, seen, two_views, context):
    data, view = two_views(n=40)
    term = Swapped(weight=1.0, look=look, epsilon_start=0.3, epsilon=0.3).bind(context())
    other = {"view": view, "walk": view + 1}[look]
    assert term.looks == (look,)
    torch.testing.assert_close(
        term(seen(data, view)), losses.swapped_prediction(data, other, temperature=0.5, epsilon=0.3)
    )


def test_epsilon_goes_down_geometrically_and_stays():
    term = Swapped(weight=1.0, epsilon_start=0.5, epsilon=0.1, anneal=0.7)
    assert term.epsilon_at(0) == 0.5
    assert term.epsilon_at(0.35) == pytest.approx(math.sqrt(0.5 * 0.1))
    assert term.epsilon_at(0.7) == term.epsilon_at(1.0) == pytest.approx(0.1)


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


def test_the_loss_of_a_perfect_clustering_is_the_perfect_loss(seen, context):
    simplex = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).repeat(50, 1) / 0.2
    loss = losses.swapped_prediction(simplex, simplex, temperature=0.2, epsilon=0.05)
    assert loss.item() == pytest.approx(perfect_cluster_loss(2, 8, 0.2), rel=1e-3)
    term = Swapped(weight=1.0, epsilon_start=0.05, epsilon=0.05).bind(context(clusters=2, temperature=0.2))
    assert term(seen(simplex, simplex)).item() == loss.item()
    perfect, ignorant = term.loss_range()
    assert perfect == perfect_cluster_loss(2, 8, 0.2)
    nothing = torch.zeros(100, 2)
    assert ignorant == pytest.approx(term(seen(nothing, nothing)).item()) == pytest.approx(math.log(2))
