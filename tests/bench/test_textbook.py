"""What is timed against each other gives the same numbers: values, gradients, scores, chains."""

import pytest
import torch

import gedi.losses as ours
from gedi.bench import textbook
from gedi.bench.losses import SIZES, cases, inputs
from gedi.bench.plain_step import PlainStep
from gedi.bench.samplers import jem_on, ours_on, torchebm_on
from gedi.building import build_model, build_stages, context_of
from gedi.config import override, parse
from gedi.densities.density import Place
from gedi.methods import with_method
from gedi.nn import ConvEncoder, ResNet8
from gedi.presets import preset
from gedi.random import Streams
from gedi.sampling import Box, Langevin
from gedi.score import score
from gedi.training.step import JointPass, make_batch
from gedi.types import Spread

ENERGIES = {
    "circles": ((2,), ()),
    "mnist-energy": ((1, 28, 28), ("model.width=4",)),
    "cifar10-paper": ((3, 32, 32), ("model.width=8",)),
}
SAME = {"rtol": 1e-6, "atol": 1e-9}


def case(name):
    shape, settings = ENERGIES[name]
    config = parse(override(preset(name), settings))
    model = build_model(config, shape, 10, Streams(0)).double()
    x = torch.randn(6, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return model.energy, x


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", cases(*SIZES[0]))
def test_a_loss_and_its_gradient_are_those_of_the_textbook(name, size):
    mine, theirs, arguments = cases(*size, dtype=torch.float64)[name]
    found = []
    for loss in (mine, theirs):
        leaves = [argument.clone().requires_grad_() for argument in arguments]
        value = loss(*leaves)
        gradients = torch.autograd.grad(value, leaves, allow_unused=True)
        found.append([value, *gradients])
    for a, b in zip(*found, strict=True):
        assert a is not None
        torch.testing.assert_close(a, b, **SAME)


def test_every_loss_is_measured():
    measured = {mine for mine, _, _ in cases(*SIZES[0]).values()}
    alone = {ours.log_sinkhorn, ours.denoising, ours.deep_cluster}  # measured by themselves, or given something
    assert {getattr(ours, name) for name in ours.__all__} <= measured | alone


@pytest.mark.parametrize("size", SIZES)
def test_sinkhorn_in_probability_space_is_sinkhorn(size):
    scores = inputs(*size, dtype=torch.float64)["logits"] / 10
    torch.testing.assert_close(ours.log_sinkhorn(scores).exp(), textbook.sinkhorn(scores), **SAME)


@pytest.mark.parametrize("name", ENERGIES)
def test_the_score_by_autograd_is_ours(name):
    energy, x = case(name)
    torch.testing.assert_close(score(energy, x), textbook.score(energy, x), **SAME)


@pytest.mark.parametrize("encoder", [ConvEncoder((1, 8, 8), 2, 5), ResNet8(3, 4), ResNet8(3, 4, stem=2)])
def test_an_encoder_written_down_plainly_is_ours(encoder):
    encoder = encoder.double()
    plain = textbook.plain_encoder(encoder)
    channels, side = (1, 8) if isinstance(encoder, ConvEncoder) else (3, 16)
    x = torch.randn(3, channels, side, side, dtype=torch.float64)
    torch.testing.assert_close(plain(x), encoder(x), **SAME)
    assert all(p.is_contiguous() for p in plain.parameters())


@pytest.mark.parametrize("name", ENERGIES)
def test_jem_s_loop_ends_where_our_chains_end(name):
    energy, x = case(name)
    langevin = Langevin(noise=0.1, step_size=0.01, steps=3)
    torch.manual_seed(5)  # what the loop draws from
    end = jem_on(energy, langevin)(x, torch.Generator())
    torch.testing.assert_close(ours_on(energy, langevin)(x, torch.Generator().manual_seed(5)), end, **SAME)
    assert not torch.allclose(end, x)


@pytest.mark.parametrize("our_score", [False, True])
@pytest.mark.parametrize("name", ENERGIES)
def test_torchebm_s_chains_end_where_ours_end(name, our_score):
    pytest.importorskip("torchebm")
    energy, x = case(name)
    langevin = Langevin(noise=0.1, step_size=0.01, steps=3)
    theirs = torchebm_on(energy, langevin, our_score=our_score)(x, torch.Generator().manual_seed(5))
    torch.testing.assert_close(ours_on(energy, langevin)(x, torch.Generator().manual_seed(5)), theirs, **SAME)


def test_the_plain_step_descends_our_objective():
    settings = ["stage2.terms.negative_free.weight=0.01", "parts.swapped.anneal=0"]
    config = with_method(parse(override(preset("circles"), settings)))
    box = Box(torch.full((2,), -1.5, dtype=torch.float64), torch.full((2,), 1.5, dtype=torch.float64))
    model = build_model(config, (2,), 2, Streams(0)).double()
    density = config.density.bind(Place(box, box))
    stage = build_stages(config, density, context_of(config, 2, None))[-1]
    x = torch.randn(32, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    carried = {"chains": Spread(box.sample(200, torch.Generator().manual_seed(0)), 200)}
    batch, _ = make_batch(stage, model, x, x + 0.1, carried, Streams(1), progress=0.5)
    terms = JointPass(model)(batch, lambda: (stage, {}), watching=False).terms
    weights = stage.weights(progress=0.5)
    assert weights.keys() == terms.keys()
    mine = sum(weight * terms[name] for name, weight in weights.items())
    plain = PlainStep(model, config, box)
    noise = batch.draw.apart["noise"][: len(x)]
    theirs = plain.density_loss(x, batch.draw.apart["samples"], noise, config.stage2)
    theirs = theirs + plain.cluster_loss(x, batch.looks["view"], batch.looks["walk"])
    torch.testing.assert_close(mine, theirs, **SAME)
    for a, b in zip(*(torch.autograd.grad(loss, list(model.parameters())) for loss in (mine, theirs)), strict=True):
        torch.testing.assert_close(a, b, **SAME)
