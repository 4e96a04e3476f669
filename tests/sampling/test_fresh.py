import math

import torch

from gedi.sampling import Box, fresh_samples

LEFT, N = 0.7, 3000


def wells(x):
    """Two clusters on the plane, 0.3 wide, with 0.7 of the mass on the left."""
    left, right = (-0.5 * ((x - x.new_tensor([c, 0.0])) / 0.3).square().sum(1) for c in (-1.5, 1.5))
    return -torch.logaddexp(left + math.log(LEFT), right + math.log(1 - LEFT))


def test_fresh_samples_find_every_cluster_with_its_exact_mass_and_width(g):
    box = Box(torch.tensor([-3.0, -2.0]), torch.tensor([3.0, 2.0]))
    x = fresh_samples(wells, N, box, g, noise=0.25, rounds=100)
    assert box.contains(x).all()
    left = x[:, 0] < 0
    assert abs(left.float().mean().item() - LEFT) < 4 * (LEFT * (1 - LEFT) / N) ** 0.5
    for side in (left, ~left):
        torch.testing.assert_close(x[side].std(0), torch.full((2,), 0.3), rtol=0.1, atol=0)


def test_fresh_samples_owe_nothing_but_their_seed(seeded):
    box = Box(torch.tensor([-3.0, -2.0]), torch.tensor([3.0, 2.0]))
    first, again, other = (fresh_samples(wells, 20, box, seeded(s), rounds=5) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.shape == (20, 2)
    assert first.grad_fn is None
