"""The energy by Langevin samples: what it draws, what its terms are, what the guard is told, and what it answers."""

import math

import pytest
import torch
import torch.nn.functional as F

from gedi.building import build_model
from gedi.config import override, parse
from gedi.densities.density import Draw, Place
from gedi.densities.energy import EnergyDensity, noise_pairs
from gedi.errors import UserError
from gedi.presets import preset
from gedi.processes import Processes
from gedi.random import Streams
from gedi.sampling import Box, Normal, ReplayBuffer
from gedi.types import Spread

BOX = Box(torch.tensor([-1.5, -1.5]).double(), torch.tensor([1.5, 1.5]).double())
PLACE = Place(BOX, BOX)


def setup(*settings):
    """A bound density and a network that has it."""
    config = parse(override(preset("circles"), settings))
    return config.density.bind(PLACE), build_model(config, (2,), 2, Streams(0)).double()


def carried_by(chains):
    return {"chains": Spread(chains, len(chains))}


def alone(function, parts):
    """Several batches in one call, as one process joins them."""
    return list(torch.split(function(torch.cat(parts)), [len(part) for part in parts]))


class Linear:
    """An energy ``slope x``: its score is ``-slope`` everywhere."""

    def __init__(self, *slope):
        self.energy = lambda x: x @ torch.tensor(slope)


def test_samples_go_back_to_the_slots_they_came_from():
    density, model = setup()
    buffer = ReplayBuffer(BOX.sample(1000, torch.Generator().manual_seed(0)).double())
    before = buffer.chains.clone()
    x, acceptance = density.move(model.energy, buffer, torch.Generator().manual_seed(1))
    changed = (buffer.chains != before).any(dim=1)
    assert changed.sum() <= density.chains
    stored = {tuple(row) for row in buffer.chains.tolist()}
    assert all(tuple(row) in stored for row in x.tolist())
    assert 0 < acceptance <= 1
    assert all(p.grad is None for p in model.parameters())


def test_noise_comes_in_opposite_pairs():
    x = torch.zeros(5, 2)
    noised, noise = noise_pairs(x, 0.1, torch.Generator().manual_seed(0))
    torch.testing.assert_close(noised, 0.1 * noise)
    torch.testing.assert_close(noise[:5], -noise[5:])


@pytest.mark.parametrize("size", [1, 2, 3])
def test_it_begins_with_a_buffer_of_which_each_process_has_its_share(size, seeded):
    chains = [
        EnergyDensity(buffer=100, chains=6).bind(Place(BOX, BOX, Processes(rank, size))).begin(seeded(3))["chains"]
        for rank in range(size)
    ]
    assert {one.total for one in chains} == {100}
    whole = BOX.sample(100, seeded(3))
    for rank, one in enumerate(chains):
        assert torch.equal(one.rows, whole[rank::size])


def test_chains_begin_where_the_run_says(g):
    normal = Normal(torch.zeros(2), 0.1 * torch.ones(2))
    rows = EnergyDensity(buffer=2000).bind(Place(BOX, normal)).begin(g)["chains"].rows
    torch.testing.assert_close(rows.std(dim=0), torch.full((2,), 0.1), rtol=0.1, atol=0)
    assert BOX.contains(EnergyDensity(buffer=200).bind(PLACE).begin(g)["chains"].rows).all()


def test_chains_that_cannot_be_shared_out_or_drawn_are_refused():
    with pytest.raises(UserError, match=r"density\.chains must give each of 3 processes as many, got 128; use 126"):
        EnergyDensity().bind(Place(BOX, BOX, Processes(0, 3)))
    with pytest.raises(UserError, match=r"must be at most density\.buffer, got 128 chains for a buffer of 100"):
        EnergyDensity(buffer=100).bind(PLACE)


@pytest.mark.parametrize(
    ("weights", "drawn"),
    [
        ({}, set()),
        ({"generative": 0.0}, set()),
        ({"generative": 1.0}, {"samples"}),
        ({"penalty": 1.0}, {"samples"}),
        ({"denoising": 1.0}, {"noised", "noise"}),
        ({"generative": 1.0, "denoising": 1.0}, {"samples", "noised", "noise"}),
    ],
)
@pytest.mark.parametrize("own", ["false", "true"])
def test_only_what_terms_in_force_need_is_drawn(weights, drawn, own, g):
    density, model = setup(f"density.own_encoder={own}", "density.buffer=300")
    carried, x = density.begin(g), torch.randn(16, 2, dtype=torch.float64)
    before = carried["chains"].rows.clone()
    draw, after = density.draw(model, x, x, weights, carried, Streams(0))
    extra = {"contrast"} if own == "true" and "samples" in drawn else set()
    assert set(draw.apart) == drawn | extra
    assert (len(draw.encoded) == 2) == ("samples" in drawn and own == "false")
    assert torch.equal(after["chains"].rows, before) == ("samples" not in drawn)
    assert ("acceptance" in draw.info) == ("samples" in drawn)


def test_data_are_noised_and_as_many_as_samples_where_they_are_told_to_be(g):
    density, model = setup("density.chains=8", "density.data_noise=0.1", "density.buffer=50")
    x = torch.randn(32, 2, dtype=torch.float64)
    draw, _ = density.draw(model, x, x, {"generative": 1.0}, density.begin(g), Streams(0))
    contrast, samples = draw.encoded
    assert len(contrast) == len(samples) == 8
    spread = (contrast - x[::4]).std().item()
    assert 0.05 < spread < 0.2


def test_the_terms_are_what_their_formulas_say():
    density, model = setup("density.buffer=300")
    x = torch.randn(16, 2, dtype=torch.float64)
    weights = {"generative": 1.0, "denoising": 1.0, "penalty": 1.0}
    carried = carried_by(BOX.sample(300, torch.Generator().manual_seed(0)))
    draw, _ = density.draw(model, x, x, weights, carried, Streams(0))
    latents = [model.encoder(part) for part in draw.encoded]
    terms, figures = density.values(model, draw, latents, weights, alone, watching=True)
    data, samples = model.energy(x), model.energy(draw.apart["samples"])
    assert list(terms) == ["generative", "denoising", "penalty"]
    torch.testing.assert_close(terms["generative"], data.mean() - samples.mean())
    torch.testing.assert_close(terms["penalty"], data.square().mean() + samples.square().mean())
    noised = draw.apart["noised"].requires_grad_()
    (gradient,) = torch.autograd.grad(model.energy(noised).sum(), noised)
    error = (density.width * -gradient + draw.apart["noise"]).square().sum(dim=1).mean()
    torch.testing.assert_close(terms["denoising"], error)
    assert figures["energy gap"].item() == pytest.approx((data.mean() - samples.mean()).abs().item())
    assert not figures["energy gap"].requires_grad


def test_extent_and_drift_are_measured_in_diagonals_of_the_box():
    def figures(density, box, x, model):
        found = density.bind(Place(box, box)).watched(model, Draw(apart={"samples": x}))
        return {name: float(value) for name, value in found.items()}

    box = Box(torch.zeros(2), torch.tensor([3.0, 4.0]))  # diagonal 5
    density = EnergyDensity(chains=4, noise=1.0, step_size=0.5, clamp=False)
    x = torch.tensor([[13.0, 4.0], [3.0, -10.0]])  # 10 outside, each
    found = figures(density, box, x, Linear(6.0, 8.0))
    assert found == pytest.approx({"chain extent": 2, "drift": 0.5 * 10 / 5})
    wide = EnergyDensity(chains=4, noise=7.0, step_size=0.5 * 49, clamp=False)
    again = figures(wide, Box(box.low * 7, box.high * 7), x * 7, Linear(6.0 / 7, 8.0 / 7))
    assert again == pytest.approx(found)
    clipped = EnergyDensity(chains=4, noise=1.0, step_size=0.5, clip=3.0, clamp=False)
    assert figures(clipped, box, x, Linear(9.0, 9.0))["drift"] == pytest.approx(0.3 * math.sqrt(2))
    assert density.bind(Place(box, box)).watched(Linear(1.0, 1.0), Draw()) == {}  # nothing was drawn


def test_the_drift_is_that_of_the_score_where_a_term_has_it_anyway():
    density, model = setup("density.buffer=300")
    x = torch.randn(16, 2, dtype=torch.float64)
    weights = {"generative": 1.0, "denoising": 1.0}
    carried = carried_by(BOX.sample(300, torch.Generator().manual_seed(0)))
    draw, _ = density.draw(model, x, x, weights, carried, Streams(0))
    latents = [model.encoder(part) for part in draw.encoded]
    found = density.values(model, draw, latents, weights, alone, watching=True).figures
    _, score = model.energy.with_score(draw.apart["noised"])
    length = score.square().sum(dim=1).mean().sqrt()
    drift = density.langevin.alpha * length / (BOX.high - BOX.low).norm()
    assert found["drift"].item() == pytest.approx(drift.item())
    assert set(density.watched(model, draw)) == {"chain extent"}  # it is not measured a second time


@pytest.mark.parametrize("step_size", [None, 0.5])
def test_a_softer_density_moves_less_at_the_same_temperature(step_size):
    density = EnergyDensity(step_size=step_size).bind(PLACE)
    soft = density.softer(0.25)
    assert soft.langevin.alpha == pytest.approx(density.langevin.alpha / 4)
    assert soft.noise == pytest.approx(density.noise / 2)
    assert soft.temperature == pytest.approx(density.temperature)
    assert soft.softer_weights({"generative": 2.0, "penalty": 0.01}, 0.2) == pytest.approx(
        {"generative": 2.0, "penalty": 0.01 + 2 * 0.2}
    )
    assert soft.softer_weights({"denoising": 2.0}, 0.2) == {"denoising": 2.0}


def test_what_it_answers_is_one_density(g):
    density, model = setup()
    x = torch.randn(9, 2, dtype=torch.float64, requires_grad=True)
    energy = density.energy(model)
    torch.testing.assert_close(density.log_density(model, x), -energy(x))
    assert not density.log_density(model, x).requires_grad
    (gradient,) = torch.autograd.grad(-energy(x).sum(), x)
    torch.testing.assert_close(density.score(model, x.detach()), gradient)
    samples = density.sample(model, 40, g)
    assert samples.shape == (40, 2)
    assert BOX.contains(samples).all()


def test_a_frozen_copy_does_not_follow_training():
    density, model = setup()
    x = torch.randn(9, 2, dtype=torch.float64)
    frozen = density.frozen(model)
    before = density.log_density(model, x)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1)
    assert torch.equal(density.log_density(frozen, x), before)
    assert not torch.equal(density.log_density(model, x), before)
    assert not any(p.requires_grad for p in frozen.parameters())
    assert all(p.requires_grad for p in model.parameters())


def test_its_own_encoder_is_a_part_of_the_network_only_where_it_is_wanted():
    shared, own = setup()[1], setup("density.own_encoder=true")[1]
    assert shared.density.encoder is None
    assert {name for name in own.state_dict() if name.startswith("density.encoder")}
    assert (setup()[0].encoders, setup("density.own_encoder=true")[0].encoders) == (1, 2)
    for a, b in zip(shared.encoder.parameters(), own.density.encoder.parameters(), strict=True):
        assert a.shape == b.shape
        assert not torch.equal(a, b) or a.abs().sum() == 0  # drawn from a stream of its own
    x = torch.randn(7, 2, dtype=torch.float64)
    latent = own.density.encoder(x)
    torch.testing.assert_close(own.energy(x), -F.linear(latent, own.density.direction[None])[:, 0])
