"""One step: the stacked passes give what separate ones would, and the joint gradient is the sum of its parts."""

import pytest
import torch
import torch.nn.functional as F

from gedi.building import build_model, build_stages, context_of
from gedi.config import override, parse
from gedi.densities.density import Place
from gedi.methods import with_method
from gedi.presets import preset
from gedi.random import Streams
from gedi.sampling import Box
from gedi.training.stage import View
from gedi.training.step import JointPass, make_batch
from gedi.types import Spread
from gedi.views import Warp

BOX = Box(torch.tensor([-1.5, -1.5]), torch.tensor([1.5, 1.5]))
DOUBLE_BOX = Box(BOX.low.double(), BOX.high.double())


def setup(*settings):
    config = with_method(parse(override(preset("circles"), settings)))
    model = build_model(config, (2,), 2, Streams(0)).double()
    density = config.density.bind(Place(DOUBLE_BOX, DOUBLE_BOX))
    return config, model, build_stages(config, density, context_of(config, 2, None))


def batch_of(stage, model, n=32):
    torch.manual_seed(0)
    x = torch.randn(n, 2, dtype=torch.float64)
    carried = {"chains": Spread(BOX.sample(200, torch.Generator().manual_seed(0)).double(), 200)}
    walked = x + 0.1 if stage.walk else None
    return make_batch(stage, model, x, walked, carried, Streams(1), progress=0.9)[0]


def passed(model, stage, batch, watching=False):
    """Terms, figures and what is carried on, as a step has them."""
    carried = {name: term.begin() for name, term in stage.terms.items()}
    return JointPass(model)(batch, lambda: (stage, carried), watching)


def plain_loss(model, config, batch):
    """The objective written out term by term, with autograd for the score and no stacking."""
    generative = model.encoder if model.density.encoder is None else model.density.encoder

    def energy(x):
        return -(generative(x) @ model.density.direction)

    w, terms = config.stage2.density, config.stage2.terms
    tau, eps = config.model.temperature, terms["swapped"].epsilon
    noised = batch.draw.apart["noised"].requires_grad_(True)
    (gradient,) = torch.autograd.grad(-energy(noised).sum(), noised, create_graph=True)
    loss = w["denoising"] * (config.density.width * gradient + batch.draw.apart["noise"]).square().sum(1).mean()
    loss = loss + w["generative"] * (energy(batch.anchor).mean() - energy(batch.draw.apart["samples"]).mean())
    parts = {}
    for name, x in {"x": batch.anchor, **batch.looks}.items():
        latent = model.encoder(x)
        embedding = model.projector(latent)
        parts[name] = latent, embedding, embedding @ F.normalize(model.prototypes.weight, dim=1).t() / tau
    for view in ("view", "walk"):
        a, b = parts["x"][2], parts[view][2]
        qa, qb = (sinkhorn(s.detach() * tau, eps) for s in (a, b))
        loss = loss - (qb * a.log_softmax(1)).sum(1).mean() / 2 - (qa * b.log_softmax(1)).sum(1).mean() / 2
    spread = parts["x"][1] - parts["x"][1].mean(0)
    s = spread.t() @ spread + terms["negative_free"].ridge * torch.eye(spread.shape[1], dtype=torch.float64)
    apart = (parts["x"][0] - parts["view"][0]).square().sum()
    return loss + terms["negative_free"].weight * ((s.trace() - torch.logdet(s)) / 2 + apart / 2)


def sinkhorn(scores, eps):
    q = (scores / eps).exp()
    for _ in range(3):
        q = q / q.sum(0, keepdim=True)
        q = q / q.sum(1, keepdim=True)
    return q


@pytest.mark.parametrize("own", ["false", "true"])
def test_the_joint_loss_and_its_gradient_are_those_of_the_plain_form(own):
    config, model, stages = setup(f"density.own_encoder={own}", "stage2.terms.negative_free.weight=0.01")
    stage = stages[-1]
    batch = batch_of(stage, model)
    terms = passed(model, stage, batch).terms
    loss = sum(weight * terms[name] for name, weight in stage.weights(0.9).items())
    ours = torch.autograd.grad(loss, list(model.parameters()))
    plain = plain_loss(model, config, batch)
    theirs = torch.autograd.grad(plain, list(model.parameters()))
    torch.testing.assert_close(loss, plain, rtol=1e-10, atol=1e-12)
    for (name, _), a, b in zip(model.named_parameters(), ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10, msg=lambda m, name=name: f"{name}: {m}")


def test_stage_one_computes_the_energy_alone():
    _, model, stages = setup()
    model.projector.register_forward_hook(lambda *args: pytest.fail("a head was asked"))
    batch = batch_of(stages[0], model)
    assert batch.looks == {}
    result = passed(model, stages[0], batch)
    assert set(result.terms) == {"generative", "denoising"}
    assert batch.draw.encoded[0].shape == (32, 2)


def test_the_cluster_baseline_computes_no_energy():
    _, model, stages = setup("method=swav")
    assert model.density is None
    batch = batch_of(stages[-1], model)
    assert (list(batch.draw.encoded), batch.draw.apart, batch.draw.info) == ([], {}, {})
    assert set(passed(model, stages[-1], batch).terms) == {"swapped"}


def test_the_encoder_sees_every_part_once():
    """Data that are both clustered and held against samples go through once."""
    _, model, stages = setup()
    rows = []
    model.encoder.register_forward_hook(lambda module, args, latent: rows.append(len(latent)))
    batch = batch_of(stages[-1], model)
    rows.clear()  # sampling asks the encoder too
    passed(model, stages[-1], batch)
    samples = len(batch.draw.apart["samples"])
    assert rows == [32 * 3 + samples]  # data, view, walk and samples; the closed form of the score has no such call


def test_a_batch_without_views_has_none():
    _, model, stages = setup()
    assert batch_of(stages[0], model).looks == {}


def test_clusters_in_use_are_the_entropy_of_their_shares_once_clusters_have_had_time_to_form():
    _, model, (first, second) = setup()
    assert "clusters in use" not in passed(model, first, batch_of(first, model), watching=True).figures
    batch = batch_of(second, model)
    found = passed(model, second, batch, watching=True).figures
    p = model.heads([model.encoder(batch.anchor)])[0].logits.softmax(dim=1).mean(dim=0)
    assert found["clusters in use"].item() == pytest.approx((-(p * p.log()).sum()).exp().item())
    early = batch._replace(progress=0.2)
    assert "clusters in use" not in passed(model, second, early, watching=True).figures
    assert passed(model, second, batch).figures == {}  # nobody looks


def test_views_do_not_know_of_half_precision_around_them(seeded):
    view = View(noise=0.03, augment=Warp(rotation=15, shift=2, elastic=1))
    x = torch.rand(4, 1, 28, 28)
    with torch.autocast("cpu", torch.bfloat16):
        made = view(x, seeded(0))
    assert torch.equal(made, view(x, seeded(0)))
