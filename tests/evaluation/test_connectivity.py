"""Do walks hold a cluster together? On points whose pieces are known."""

import torch

from gedi.evaluation import nearest, walk_connections
from gedi.evaluation.neighbours import nearest_other

RING = torch.tensor([[torch.cos(a), torch.sin(a)] for a in torch.linspace(0, 6.28, 101)[:100]])


def turned(x, angle):
    c, s = torch.cos(torch.tensor(angle)), torch.sin(torch.tensor(angle))
    return x @ torch.tensor([[c, s], [-s, c]])


def walks(step):
    """Walks of four places along the ring."""
    return torch.stack([turned(RING, step * k) for k in range(4)])


def test_walks_along_a_ring_make_it_one_piece_and_walks_that_stay_make_points_of_it():
    one = torch.zeros(100).long()
    assert walk_connections(RING, walks(0.07), one, one)["walks_connect"] == 1
    assert walk_connections(RING, walks(0.001), one, one)["walks_connect"] == 0.01


def test_the_cluster_in_most_pieces_counts():
    paths = walks(0.07)
    paths[:, 50:] = RING[50:]  # the lower half stays where it is
    found = (torch.arange(100) >= 50).long()
    whole = walk_connections(RING, paths, torch.zeros(100).long(), torch.zeros(100).long())
    assert 0.5 <= whole["walks_connect"] <= 0.55
    assert walk_connections(RING, paths, found, found)["walks_connect"] == 0.02


def test_a_walk_through_another_cluster_joins_nothing_of_its_own():
    found = torch.arange(100) % 2  # every second point: neighbours are never of one cluster
    figures = walk_connections(RING, torch.stack([RING, turned(RING, 0.0628)]), found, 1 - found)
    assert figures == {"walks_leave": 1.0, "walks_connect": 0.02}


def test_clusters_of_a_few_points_say_nothing():
    found = torch.arange(100) // 5
    assert "walks_connect" not in walk_connections(RING, walks(0.07), found, found)


def test_neighbours_in_blocks_are_those_of_the_whole(monkeypatch):
    x, others = torch.randn(50, 3), torch.randn(70, 3)
    whole = torch.cdist(x, others).argmin(dim=1)
    fellows = torch.cdist(x, x).fill_diagonal_(torch.inf).argmin(dim=1)
    monkeypatch.setattr("gedi.evaluation.neighbours._BLOCK", 200)
    assert torch.equal(nearest(x, others), whole)
    assert torch.equal(nearest_other(x), fellows)
