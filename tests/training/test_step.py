"""One step: the stacked passes give what separate ones would, and the joint gradient is the sum of its parts."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from gedi.config import override, parse
from gedi.methods import build_model, build_stages, with_method
from gedi.presets import preset
from gedi.random import Streams
from gedi.sampling import Box, ReplayBuffer
from gedi.training.step import Batch, JointPass, augmented, draw_negatives, make_batch, noise_pairs
from gedi.views import Warp

BOX = Box(torch.tensor([-1.5, -1.5]), torch.tensor([1.5, 1.5]))
DOUBLE_BOX = Box(BOX.low.double(), BOX.high.double())


def setup(*settings):
    config = with_method(parse(override(preset("circles"), settings)))
    model = build_model(config, (2,), 2, Streams(0)).double()
    return config, model, build_stages(config, DOUBLE_BOX, DOUBLE_BOX)


def batch_of(stage, model, n=32):
    torch.manual_seed(0)
    x = torch.randn(n, 2, dtype=torch.float64)
    buffer = ReplayBuffer(BOX.sample(200, torch.Generator().manual_seed(0)).double())
    walked = x + 0.1 if stage.walk else None
    return make_batch(stage, x, walked, model.energy, buffer, Streams(1), progress=0.9)[0]


def plain_loss(model, config, batch):
    """The objective written out term by term, with autograd for the score and no stacking."""
    generative = model.encoder if model.generative_encoder is None else model.generative_encoder

    def energy(x):
        return -(generative(x) @ model.direction)

    w = config.stage2.weights
    tau, eps = config.model.temperature, config.cluster.epsilon
    noised = batch.noised.requires_grad_(True)
    (gradient,) = torch.autograd.grad(-energy(noised).sum(), noised, create_graph=True)
    loss = w.denoising * (config.stage2.denoising * gradient + batch.noise).square().sum(1).mean()
    loss = loss + w.generative * (energy(batch.x).mean() - energy(batch.negatives).mean())
    parts = {}
    for name, x in {"x": batch.x, **batch.views}.items():
        latent = model.encoder(x)
        embedding = model.projector(latent)
        parts[name] = latent, embedding, embedding @ F.normalize(model.prototypes.weight, dim=1).t() / tau
    for view in ("noise", "walk"):
        a, b = parts["x"][2], parts[view][2]
        qa, qb = (sinkhorn(s.detach() * tau, eps) for s in (a, b))
        loss = loss - (qb * a.log_softmax(1)).sum(1).mean() / 2 - (qa * b.log_softmax(1)).sum(1).mean() / 2
    spread = parts["x"][1] - parts["x"][1].mean(0)
    s = spread.t() @ spread + config.cluster.ridge * torch.eye(spread.shape[1], dtype=torch.float64)
    apart = (parts["x"][0] - parts["noise"][0]).square().sum()
    return loss + w.negative_free * ((s.trace() - torch.logdet(s)) / 2 + apart / 2)


def sinkhorn(scores, eps):
    q = (scores / eps).exp()
    for _ in range(3):
        q = q / q.sum(0, keepdim=True)
        q = q / q.sum(1, keepdim=True)
    return q


@pytest.mark.parametrize("second", ["false", "true"])
def test_the_joint_loss_and_its_gradient_are_those_of_the_plain_form(second):
    config, model, stages = setup(f"model.second_encoder={second}", "stage2.weights.negative_free=0.01")
    stage = stages[-1]
    batch = batch_of(stage, model)
    terms = JointPass(model)(batch, stage.values)
    loss = sum(weight.value * terms[name] for name, (weight, _) in stage.terms.items())
    ours = torch.autograd.grad(loss, list(model.parameters()))
    plain = plain_loss(model, config, batch)
    theirs = torch.autograd.grad(plain, list(model.parameters()))
    torch.testing.assert_close(loss, plain, rtol=1e-10, atol=1e-12)
    for (name, _), a, b in zip(model.named_parameters(), ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10, msg=lambda m, name=name: f"{name}: {m}")


def test_stage_one_computes_the_energy_alone():
    _, model, stages = setup()
    out = JointPass(model).outputs(batch_of(stages[0], model))
    assert out.data is None
    assert out.views == {}
    assert out.energy_data.shape == (32,)


def test_the_cluster_baseline_computes_no_energy():
    _, model, stages = setup("method=swav")
    out = JointPass(model).outputs(batch_of(stages[-1], model))
    assert out.energy_data is None
    assert out.noised_score is None


def test_negatives_go_back_to_the_slots_they_came_from():
    _, model, stages = setup()
    negatives = stages[0].negatives
    buffer = ReplayBuffer(BOX.sample(1000, torch.Generator().manual_seed(0)).double())
    before = buffer.chains.clone()
    x, info = draw_negatives(negatives, model.energy, buffer, torch.Generator().manual_seed(1))
    changed = (buffer.chains != before).any(dim=1)
    assert changed.sum() <= negatives.chains
    stored = {tuple(row) for row in buffer.chains.tolist()}
    assert all(tuple(row) in stored for row in x.tolist())
    assert 0 < info["acceptance"] <= 1
    assert all(p.grad is None for p in model.parameters())


def test_noise_comes_in_opposite_pairs():
    x = torch.zeros(5, 2)
    noised, noise = noise_pairs(x, 0.1, torch.Generator().manual_seed(0))
    torch.testing.assert_close(noised, 0.1 * noise)
    torch.testing.assert_close(noise[:5], -noise[5:])


def test_a_batch_without_views_has_none():
    _, model, stages = setup()
    batch = batch_of(stages[0], model)
    assert isinstance(batch, Batch)
    assert batch.views == {}


def test_views_do_not_know_of_half_precision_around_them(seeded):
    stage = replace(setup()[2][1], augment=Warp(rotation=15, shift=2, elastic=1))
    x = torch.rand(4, 1, 28, 28)
    with torch.autocast("cpu", torch.bfloat16):
        view = augmented(stage, x, seeded(0))
    assert torch.equal(view, augmented(stage, x, seeded(0)))
