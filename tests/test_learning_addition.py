"""Addition of digit images: the paper's settings to the letter, and what the recipe and the controls learn."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gedi.building import build_stages, context_of
from gedi.config import override, parse
from gedi.data import find_folder
from gedi.densities.density import Place
from gedi.fitting import measured_run, prepare, train
from gedi.presets import preset
from gedi.rules import build_constraint
from gedi.sampling import Box
from gedi.views import CropAndColour

KEPT = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def mnist(tmp_path_factory):
    """A folder with MNIST: the copy beside the project, or GEDI_DATA."""
    if (KEPT / "unpack.py").is_file():
        folder = tmp_path_factory.mktemp("data")
        subprocess.run([sys.executable, str(KEPT / "unpack.py"), str(folder), "mnist"], check=True, capture_output=True)
        return folder
    if os.environ.get("GEDI_DATA") and find_folder("mnist") is not None:
        return Path(os.environ["GEDI_DATA"])
    pytest.skip("no MNIST: neither a copy beside the project nor in GEDI_DATA")


@pytest.mark.parametrize(("triplets", "epochs"), [(100, 100), (1000, 30), (10_000, 5)])
def test_the_paper_presets_hold_the_papers_column_addition(triplets, epochs):
    config = parse(preset(f"addition-{triplets}", "paper"))
    assert config.preset == f"addition-{triplets}-paper"
    assert config.method == "gedi"
    assert config.n_init == 1
    assert (config.data.name, config.data.triplets, config.data.free) == ("mnist-addition", triplets, 0)
    # data augmentation
    a = config.augment
    assert (a.jitter, a.grayscale) == (0.1, 0.1)
    assert a.crop > 0
    assert a.rotation == a.shear == a.scale == a.shift == a.elastic == 0  # and nothing else; digits do not mirror
    assert a.noise == 0.3
    # SGLD, the same in both stages
    s = config.density
    assert s.kind == "energy"
    assert (s.steps, s.buffer, s.reinit, s.step_size, s.noise) == (10, 10_000, 0.05, 1.0, 0.01)
    assert not s.metropolis
    assert not s.clamp
    assert s.clip is None
    assert s.teleports == 0
    assert s.data_noise == 0
    # optimiser, both stages: epochs of triplets in batches of 60 images
    for stage in (config.stage1, config.stage2):
        assert stage.batch_size == 60
        assert stage.iterations == epochs * (3 * triplets // 60)
        assert stage.betas == (0.9, 0.999)
        assert stage.learning_rate == 1e-4
        assert (stage.warmup, stage.final, stage.average) == (0, 1.0, 0.0)
    assert s.chains == 60
    # DAM
    w = config.walk
    assert (w.radius, w.steps) == (0.03, 10)
    assert (w.energy, w.direction, w.corrector, w.refresh) == ("live", "constant", 0.0, 1)
    # weights
    one, two = config.stage1, config.stage2
    assert one.density == two.density == {"generative": 1.0}
    assert one.terms == {}
    assert {name: (term.kind, term.weight) for name, term in two.terms.items()} == {
        "negative_free": ("negative_free", 1 / 60),
        "swapped": ("swapped", 1000.0),
        "swapped_walk": ("swapped", 500.0),
        "constraint": ("constraint", 3000.0),
    }
    swapped, walked, rule = (two.terms[name] for name in ("swapped", "swapped_walk", "constraint"))
    assert (swapped.look, walked.look) == ("view", "walk")
    # the network
    m = config.model
    assert (m.encoder, m.width, m.projector, m.embedding, m.clusters) == ("resnet8", 128, 256, 128, 10)
    assert m.temperature == 0.1
    for term in (swapped, walked):
        assert (term.epsilon, term.epsilon_start, term.iterations) == (0.05, 0.05, 3)
    assert not m.normalise_latent
    assert not s.own_encoder
    # the rule, without anything of ours
    assert (config.constraint.rule, config.constraint.prior) == ("addition", "uniform")
    assert (rule.start, rule.ramp) == (0.0, 0.0)
    assert one.moves == two.moves == {}


def test_the_paper_preset_becomes_what_it_says():
    config = parse(preset("addition-100-paper"))
    box = Box(torch.zeros(3, 32, 32), torch.ones(3, 32, 32))
    density = config.density.bind(Place(box, box))
    one, two = build_stages(config, density, context_of(config, 10, build_constraint(config.constraint, 10)))
    assert one.looks == frozenset()
    assert one.moves == two.moves == {}
    assert two.looks == {"view", "walk"}
    assert two.view.noise == 0.3
    assert two.walk.every_step
    assert two.walk.radius == 0.03
    for stage in (one, two):
        assert stage.density.langevin.steps == 10
        assert stage.density.langevin.box is None
        assert stage.density.reinit == 0.05
        assert stage.optimiser.rate(0, stage.iterations) == stage.optimiser.rate(499, stage.iterations) == 1e-4
    assert two.terms["constraint"].at(0.0) == 3000
    x = torch.rand(60, 3, 32, 32)
    normalised = (x - config.data.mean) / config.data.std
    plain = CropAndColour(4, 0.1, 0.1)(x, torch.Generator().manual_seed(0))
    ours = two.view.augment(normalised, torch.Generator().manual_seed(0))
    torch.testing.assert_close(ours * config.data.std + config.data.mean, plain, rtol=1e-4, atol=1e-4)


def test_the_recipes_walk_and_differ_in_what_is_said_by_hand():
    warps, crops, plain = (parse(preset(name)) for name in ("addition-100", "addition-100-crops", "addition-100-plain"))
    for config in (warps, crops, plain):
        assert config.density.kind == "denoiser"
        assert (config.walk.direction, config.walk.composed, config.walk.radius) == ("denoise", True, None)
        assert config.stage1.density == {"denoising": 1.0}
        assert config.stage1.batch_size % 3 == config.stage2.batch_size % 3 == 0
        assert config.data.triplets == 100
    assert (warps.walk.share, crops.walk.share, plain.walk.share) == (0.25, 1.0, 1.0)
    assert crops.stage2.iterations == plain.stage2.iterations
    assert crops.stage2.terms == plain.stage2.terms == warps.stage2.terms
    hand = {
        name: value for name, value in plain.augment.model_dump().items() if value and name not in ("both", "noise")
    }
    assert hand == {"strength": 1.0}  # of a jitter that there is not
    assert (crops.augment.crop, crops.augment.noise, crops.augment.rotation) == (3, 0.3, 0)


@pytest.mark.slow
def test_one_step_of_each_stage_of_the_paper_preset_at_full_size(mnist):
    settings = ["stage1.iterations=1", "stage2.iterations=1", "density.buffer=120", "log_every=1"]
    run = prepare(parse(override(preset("addition-100-paper"), settings)), data_dir=mnist)
    assert run.data.train.shape == (300, 3, 32, 32)
    assert run.data.source.startswith("mnist")
    assert run.data.train[:].mean().abs() < 0.5
    model = run.trainer.model
    assert sum(p.numel() for p in model.encoder.parameters()) == 1_037_184
    before = {name: p.clone() for name, p in model.named_parameters()}
    log, changed = [], {}

    def note(record):
        log.append(record)
        changed[record["stage"]] = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}

    run.trainer.on_log = note
    train(run)
    assert changed["stage1"]
    assert all(name.startswith(("encoder", "density.direction")) for name in changed["stage1"])
    assert [record["stage"] for record in log] == ["stage1", "stage2"]
    assert set(log[1]) >= {"generative", "negative_free", "swapped", "swapped_walk", "constraint"}
    assert log[1]["constraint"] == pytest.approx(-torch.tensor(0.055).log().item(), abs=1.5)  # names are still chance
    assert changed["stage2"] == set(before)
    assert all(p.isfinite().all() for p in model.parameters())


@pytest.mark.slow
def test_the_small_digits_get_their_names_from_sums():
    run = prepare(parse(override(preset("digits-addition"), ["seed=1"])))
    assert run.trainer.labels is None
    train(run)
    metrics, _ = measured_run(run)
    assert metrics["accuracy"] >= 0.90
    assert metrics["accuracy_matched"] == pytest.approx(metrics["accuracy"])  # the names too
    assert metrics["constraint_satisfied"] > 0.8


@pytest.mark.slow
def test_the_rule_alone_is_satisfied_by_a_collapse():
    settings = ["method=logic-alone", "stage2.iterations=150", "seed=1"]
    run = prepare(parse(override(preset("digits-addition"), settings)))
    train(run)
    metrics, _ = measured_run(run)
    assert metrics["constraint_satisfied"] > 0.9
    assert metrics["accuracy"] < 0.35
    assert metrics["clusters_used"] < 5
