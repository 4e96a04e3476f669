"""What sampling costs and what it leaves behind: no gradient, no graph, no memory."""

import gc

import pytest
import torch

from gedi.config import override, parse
from gedi.fitting import prepare
from gedi.presets import preset
from gedi.random import Streams
from gedi.sampling import ReplayBuffer
from gedi.training.step import JointPass, make_batch

TINY = (
    "data.name=digits", "data.limit=60", "model.width=4", "model.latent=8", "model.projector=16", "model.embedding=8",
    "model.finer=14", "density.buffer=40", "density.chains=8", "density.steps=3", "walk.steps=4", "walk.refresh=0",
    "stage1.iterations=400", "stage1.batch_size=16", "stage2.iterations=400", "stage2.batch_size=16",
    "stage2.density.generative=0.1", "stage2.terms.agreement_walk={kind: agreement, look: walk, weight: 0.1}",
    "stage2.moves.merge.moments=[]", "n_init=1",
    "log_every=20",
)  # fmt: skip
ADJUSTED = ("density.metropolis=true", "density.step_size=null", "density.teleports=1")
RELAXED = ("walk.relax=2", "walk.direction=carried", "walk.corrector=0.001")


def tiny(*settings):
    return prepare(parse(override(preset("mnist-energy"), [*TINY, *settings])))


def parts(run):
    trainer = run.trainer
    buffer = ReplayBuffer(trainer.state.density["chains"].rows)
    return trainer.model, trainer.course.legs[-1].stage, buffer, trainer.train[:16]


def has_no_graph(x):
    return not x.requires_grad and x.grad_fn is None and x.grad is None


@pytest.mark.parametrize("settings", [(), ADJUSTED])
@pytest.mark.parametrize("second", [False, True])
def test_samples_leave_no_gradient_and_carry_no_graph(settings, second):
    model, stage, buffer, _ = parts(tiny(*settings, f"density.own_encoder={second}"))
    before = buffer.chains.clone()
    samples, _ = stage.density.move(model.energy, buffer, torch.Generator().manual_seed(0))
    assert has_no_graph(samples)
    assert has_no_graph(buffer.chains)
    assert not torch.equal(buffer.chains, before)  # something was drawn
    assert all(p.grad is None for p in model.parameters())
    assert all(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("settings", [(), RELAXED])
@pytest.mark.parametrize("every", [0, 2])
def test_walks_leave_no_gradient_and_carry_no_graph(settings, every):
    model, stage, _, x = parts(tiny(*settings))
    ends = stage.walk(model.energy, x, torch.Generator().manual_seed(0), every=every)
    assert has_no_graph(ends)
    assert has_no_graph(x)
    assert not torch.equal(ends[-1] if every else ends, x)
    assert all(p.grad is None for p in model.parameters())


def test_gradients_that_are_there_stay_as_they_are():
    """Between two backward passes, as with gradients that are summed over several batches."""
    model, stage, buffer, x = parts(tiny(*ADJUSTED, *RELAXED))
    model(x).energy.sum().backward()
    before = {p: p.grad.clone() for p in model.parameters() if p.grad is not None}
    assert before
    stage.density.move(model.energy, buffer, torch.Generator().manual_seed(0))
    stage.walk(model.energy, x, torch.Generator().manual_seed(0))
    assert all(torch.equal(p.grad, gradient) for p, gradient in before.items())
    assert {p for p in model.parameters() if p.grad is not None} == set(before)


def test_a_batch_is_made_of_plain_tensors_and_the_step_has_the_gradient_of_its_own_loss():
    """Sampling before the step changes nothing of the gradient but by the samples themselves."""
    run = tiny("density.own_encoder=false")
    model, stage, _, x = parts(run)
    walked = stage.walk(model.energy, x, torch.Generator().manual_seed(0))
    carried = run.trainer.state.density
    batch, _ = make_batch(stage, model, x, walked, carried, Streams(0), progress=0.9)
    contrast, samples = batch.draw.encoded
    tensors = [x, batch.anchor, contrast, samples, *batch.looks.values()]
    assert len(tensors) == 6
    assert all(has_no_graph(part) for part in tensors)
    loss = (model.energy(contrast).mean() - model.energy(samples).mean()) * 0.1
    wanted = torch.autograd.grad(loss, list(model.encoder.parameters()))
    terms = JointPass(model)(batch, lambda: (stage, {}), False).terms
    (stage.weights(0.9)["generative"] * terms["generative"]).backward()
    for p, gradient in zip(model.encoder.parameters(), wanted, strict=True):
        torch.testing.assert_close(p.grad, gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "steps", "evaluated"),
    [
        ((), 3, [8] * 3),
        ((), 0, []),
        (ADJUSTED, 3, [16, 8, 8, 8]),
        (("density.metropolis=true", "density.step_size=null"), 3, [8] * 4),
    ],
)
def test_a_draw_costs_an_evaluation_a_move_and_one_more_where_moves_are_judged(settings, steps, evaluated):
    """Judged moves need the energy where the chain stands; where a jump leads is evaluated in the same call."""
    model, stage, buffer, _ = parts(tiny(*settings, f"density.steps={steps}"))
    rows = []
    model.density.encoder.register_forward_hook(lambda module, args, latent: rows.append(len(latent)))
    model.encoder.register_forward_hook(lambda module, args, latent: rows.append(-1))
    stage.density.move(model.energy, buffer, torch.Generator().manual_seed(0))
    assert rows == evaluated


def live_tensors():
    """How many tensors there are, and their elements."""
    gc.collect()
    found = [x for x in gc.get_objects() if issubclass(type(x), torch.Tensor)]  # isinstance would wake lazy objects
    return len(found), sum(x.numel() for x in found)


@pytest.mark.parametrize(
    ("settings", "stage"),
    [
        (("stage2.iterations=0",), "stage1"),
        (("stage1.iterations=0", "walk.refresh=10"), "stage2"),
        (("stage1.iterations=0", *ADJUSTED, "walk.refresh=1", "walk.energy=live", "guard.attempts=0"), "stage2"),
    ],
)
def test_the_number_of_live_tensors_is_the_same_after_50_and_200_iterations(settings, stage):
    """Before the last tenth of a stage, whose losses are kept to compare tries by."""
    trainer = tiny(*settings).trainer
    assert trainer.course.legs[0].stage.name == stage
    trainer.fit(stop_after=50)
    early = live_tensors()
    trainer.fit(stop_after=150)
    assert trainer.state.iteration == 200
    assert live_tensors() == early
    assert early[0] > 20  # the count sees the weights
