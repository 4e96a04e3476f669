import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from gedi.random import Streams, derive_seed


@given(st.integers(-(2**40), 2**70), st.text("a/é 0", max_size=20))
def test_a_derived_seed_is_one_that_torch_and_numpy_accept(seed, name):
    derived = derive_seed(seed, name)
    assert 0 <= derived < 2**63
    torch.Generator().manual_seed(derived)
    np.random.default_rng(derived)


def test_a_derived_seed_is_the_same_in_every_process():
    # literal values: Python's own hash() would change from run to run, and old runs must stay reproducible
    assert derive_seed(0, "walk") == 3218960522332051329
    assert derive_seed(1, "walk") == 1826349594869664382


def test_seeds_and_names_never_share_a_derived_seed():
    seen = {derive_seed(seed, name) for seed in range(200) for name in ("", "0", "1", "walk", "walk/1", "1/walk")}
    assert len(seen) == 200 * 6


def test_the_same_seed_gives_the_same_draws_bit_for_bit():
    first, second = (torch.randn(100, generator=Streams(7)["chains"]) for _ in range(2))
    assert torch.equal(first, second)


def test_another_seed_or_another_name_gives_unrelated_draws():
    n = 10_000
    base = torch.randn(n, generator=Streams(0)["chains"])
    for other in (Streams(1)["chains"], Streams(0)["walk"], Streams(0).child("chains")["chains"]):
        correlation = (base * torch.randn(n, generator=other)).mean().item()
        assert abs(correlation) < 4 / n**0.5


def test_a_new_consumer_shifts_nobody_elses_draws():
    alone, crowded = Streams(0), Streams(0)
    expected = [torch.rand(3, generator=alone["batch"]) for _ in range(4)]
    for row in expected:
        torch.rand(17, generator=crowded["new term"])
        assert torch.equal(torch.rand(3, generator=crowded["batch"]), row)


def test_asking_twice_continues_the_stream_instead_of_starting_again():
    streams = Streams(0)
    first, second = torch.rand(5, generator=streams["a"]), torch.rand(5, generator=streams["a"])
    assert not torch.equal(first, second)


def test_children_are_the_same_for_the_same_name_and_apart_for_others():
    draws = [torch.rand(8, generator=Streams(0).child(name)["init"]) for name in ("0", "0", "1")]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_a_restored_position_continues_as_if_nothing_had_happened():
    streams = Streams(3)
    torch.rand(11, generator=streams["walk"])
    state = streams.state_dict()
    expected = torch.rand(6, generator=streams["walk"])  # and this does not move the saved state
    resumed = Streams(3)
    resumed.load_state_dict(state)
    assert torch.equal(torch.rand(6, generator=resumed["walk"]), expected)


def test_streams_that_were_not_saved_start_afresh_on_loading():
    streams = Streams(3)
    torch.rand(11, generator=streams["walk"])
    streams.load_state_dict({})
    assert torch.equal(torch.rand(6, generator=streams["walk"]), torch.rand(6, generator=Streams(3)["walk"]))


def test_numpy_draws_depend_on_seed_and_name_only():
    first = Streams(5).numpy("data").standard_normal(4)
    assert np.array_equal(first, Streams(5).numpy("data").standard_normal(4))
    assert not np.array_equal(first, Streams(5).numpy("split").standard_normal(4))
    assert not np.array_equal(first, Streams(6).numpy("data").standard_normal(4))
