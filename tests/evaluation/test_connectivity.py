"""Do walks hold a cluster together? On points whose pieces are known."""

import pytest
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
    assert figures["walks_leave"] == 1
    assert figures["walks_connect"] == 0.02


def test_short_walks_do_not_hide_a_cut_and_long_ones_do_not_make_one():
    """A line cut in two: of short walks a hundredth leave, but half of those that could."""
    line, found = torch.arange(1000.0)[:, None], (torch.arange(1000) >= 500).long()
    for step, leave in ((10.5, 0.01), (100.5, 0.1)):
        end = line + step
        ends = (end[:, 0] >= 500).long()
        figures = walk_connections(line, torch.stack([line, end]), found, ends)
        assert figures["walks_leave"] == pytest.approx(leave, abs=0.001)
        assert figures["walks_cross"] == pytest.approx(0.5, abs=0.03)
    apart = line + 50.0 * found[:, None]  # long walks within each part, and a gap between the parts
    end = torch.where(found[:, None] == 1, 550 + (apart - 550 + 300) % 500, (apart + 300) % 500)
    assert walk_connections(apart, torch.stack([apart, end]), found, found)["walks_cross"] == 0


def test_walks_that_cannot_reach_another_cluster_say_nothing_of_crossing():
    found = (RING[:, 0] > 5).long()
    assert "walks_cross" not in walk_connections(RING, walks(0.07), found, found)


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
