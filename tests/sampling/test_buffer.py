import pytest
import torch

from gedi.errors import UserError
from gedi.sampling import ReplayBuffer


def test_chains_are_written_back_to_exactly_the_slots_they_came_from(g):
    start = torch.randn(50, 2)
    buffer = ReplayBuffer(start.clone())
    slots, x = buffer.draw(20, g)
    assert torch.equal(x, start[slots])
    buffer.put(slots, x + 100)
    drawn = torch.zeros(50, dtype=torch.bool)
    drawn[slots] = True
    assert torch.equal(buffer.chains[drawn], start[drawn] + 100)
    assert torch.equal(buffer.chains[~drawn], start[~drawn])


def test_the_slots_of_a_draw_are_all_different(g):
    buffer = ReplayBuffer(torch.zeros(30, 1))
    for _ in range(20):
        slots, _ = buffer.draw(29, g)
        assert len(slots.unique()) == 29


def test_every_slot_is_drawn_equally_often(g):
    buffer, counts, rounds = ReplayBuffer(torch.zeros(20, 1)), torch.zeros(20), 4000
    for _ in range(rounds):
        counts[buffer.draw(5, g)[0]] += 1
    assert (counts / rounds - 5 / 20).abs().max() < 0.03  # four standard errors


def test_changing_drawn_chains_changes_the_buffer_only_when_they_are_put_back(g):
    buffer = ReplayBuffer(torch.zeros(10, 2))
    slots, x = buffer.draw(10, g)
    x += 1
    assert torch.equal(buffer.chains, torch.zeros(10, 2))
    buffer.put(slots, x)
    assert torch.equal(buffer.chains, torch.ones(10, 2))


def test_what_is_put_back_brings_no_graph(g):
    buffer = ReplayBuffer(torch.zeros(10, 2))
    slots, x = buffer.draw(4, g)
    buffer.put(slots, x * torch.ones(2, requires_grad=True))
    assert not buffer.chains.requires_grad
    assert buffer.chains.grad_fn is None


def test_the_whole_buffer_can_be_drawn_and_no_more(g):
    buffer = ReplayBuffer(torch.randn(8, 2))
    assert sorted(buffer.draw(8, g)[0].tolist()) == list(range(8))
    with pytest.raises(UserError, match="buffer of 8 chains cannot give 9: enlarge the buffer"):
        buffer.draw(9, g)


@pytest.mark.parametrize("shape", [(3,), (1, 4, 4)])
def test_no_chain_is_begun_again_at_fraction_zero_and_all_are_at_one(g, shape):
    x, fresh = torch.randn(200, *shape), torch.randn(200, *shape)
    assert torch.equal(ReplayBuffer.restart(x, fresh, 0.0, g), x)
    assert torch.equal(ReplayBuffer.restart(x, fresh, 1.0, g), fresh)


@pytest.mark.parametrize("fraction", [0.05, 0.5])
def test_the_fraction_is_the_share_of_whole_chains_begun_again(g, fraction):
    n = 20_000
    out = ReplayBuffer.restart(torch.zeros(n, 3), torch.ones(n, 3), fraction, g)
    assert torch.equal(out.amin(1), out.amax(1))  # a chain is replaced as a whole
    share = out[:, 0].mean().item()
    assert abs(share - fraction) < 4 * (fraction * (1 - fraction) / n) ** 0.5


def test_a_chain_is_replaced_by_the_fresh_one_of_its_own_row(g):
    x, fresh = torch.arange(100.0)[:, None], torch.arange(100.0)[:, None] + 1000
    out = ReplayBuffer.restart(x, fresh, 0.5, g)
    assert torch.equal(out % 1000, x)


def test_the_same_seed_draws_the_same_slots(seeded):
    buffer = ReplayBuffer(torch.randn(100, 2))
    assert torch.equal(buffer.draw(10, seeded(3))[0], buffer.draw(10, seeded(3))[0])
    assert not torch.equal(buffer.draw(10, seeded(3))[0], buffer.draw(10, seeded(4))[0])
