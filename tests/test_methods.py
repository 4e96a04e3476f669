"""Methods by name: every one of them trains, on the terms that its name promises."""

import math

import pytest

from gedi.config import override, parse
from gedi.errors import UserError
from gedi.fitting import prepare, train
from gedi.methods import METHODS, with_method
from gedi.presets import preset

TINY = (
    "data.n_train=200", "data.n_test=40", "stage1.iterations=3", "stage2.iterations=4", "walk.steps=2", "n_init=1",
    "log_every=1", "density.buffer=200", "stage2.batch_size=64",
)  # fmt: skip
NOT_HERE = {"no-constraint", "logic-alone", "logic-and-labels"}  # they need a rule


@pytest.mark.parametrize("method", [method for method in METHODS if method not in NOT_HERE])
def test_every_method_trains_on_moons(method):
    run = prepare(parse(override(preset("moons"), [*TINY, f"method={method}"])))
    run.trainer.on_log = (records := []).append
    train(run)
    assert records
    assert all(math.isfinite(value) for record in records for value in record.values() if isinstance(value, float))


def terms(method, name="moons"):
    config = with_method(parse(override(preset(name), [f"method={method}"])))
    return {stage: {term: part.kind for term, part in s.terms.items()} for stage, s in config.stages.items()}


def test_without_sinkhorn_every_look_has_agreement_and_shares_are_uniform():
    found = terms("gedi-no-sinkhorn")["stage2"]
    assert found == {
        "negative_free": "negative_free",
        "agreement": "agreement",
        "agreement_walk": "agreement",
        "uniformity": "uniformity",
    }
    config = with_method(parse(override(preset("moons"), ["method=gedi-no-sinkhorn"])))
    assert config.stage2.terms["agreement_walk"].look == "walk"


def test_ebclr_is_an_energy_of_distances_with_the_preset_s_chains_beside_info_nce():
    config = with_method(parse(override(preset("mnist"), ["method=ebclr"])))
    assert config.density.kind == "contrastive"
    assert (config.density.chains, config.density.steps, config.density.own_encoder) == (32, 10, False)
    assert config.stage2.terms["contrastive"].similarity == "distance"
    assert config.stage2.density == {"generative": 0.1, "penalty": 0.001}
    assert list(config.stages) == ["stage2"]


def test_another_density_takes_over_the_weights_of_the_preset_s():
    def weights(kind):
        config = parse(override(preset("moons"), [f"density.kind={kind}"]))
        return config.stage1.density, config.stage2.density

    assert weights("flow") == ({"likelihood": 1.0}, {"likelihood": 0.1})
    assert weights("denoiser") == ({"denoising": 1.0}, {"denoising": 0.1})
    assert weights("energy-matching") == (
        {"matching": 0.3, "denoising": 1.0},
        {"matching": 0.03, "denoising": 0.1},
    )
    assert weights("contrastive") == weights("energy")


def test_a_related_density_keeps_the_chains_and_another_does_not():
    config = parse(override(preset("mnist-energy"), ["density.kind=contrastive"]))
    assert (config.density.chains, config.density.step_size) == (32, 1.0)
    with pytest.raises(UserError, match=r"unknown key 'density\.chains'"):
        parse(override(preset("mnist-energy"), ["density.kind=vae", "density.chains=3"]))


def test_a_term_that_no_density_of_the_run_has_is_refused():
    with pytest.raises(UserError, match=r"unknown term of density\.kind=energy in stage1\.density 'likelihood'"):
        parse(override(preset("moons"), ["stage1.density.likelihood=1"]))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["density.kind=jem"], r"needs model\.head=linear"),
        (["density.kind=jem", "model.head=linear", "density.own_encoder=true"], r"own_encoder must be false"),
        (["walk.direction=latent"], "needs a density with a latent"),
        (["density.kind=flow", "walk.direction=latent", "walk.radius=2"], "at most 1"),
    ],
)
def test_parts_that_do_not_fit_are_refused(settings, words):
    config = parse(override(preset("moons"), [*TINY, *settings]))
    with pytest.raises(UserError, match=words):
        prepare(config)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            ("method=simclr", "density.kind=flow"),
            r"method simclr trains no density, so density.kind=flow would do nothing",
        ),
        (("density.kind=vae", "method=ebclr"), "method ebclr trains density.kind=contrastive, so density.kind=vae"),
        (("method=jem", "density.kind=vae"), "method jem is an energy learnt by its own samples"),
    ],
)
def test_a_density_that_a_method_would_not_train_is_refused(settings, said):
    with pytest.raises(UserError, match=said):
        prepare(parse(override(preset("moons"), [*TINY, *settings])))


def test_a_kernel_needs_no_more_than_its_name():
    run = prepare(parse(override(preset("moons"), [*TINY, "density.kind=kernel", "density.points=50"])))
    assert [(leg.stage.name, leg.stage.density_weights) for leg in run.trainer.course.legs] == [("stage2", {})]


@pytest.mark.parametrize("kind", ["energy", "contrastive", "vae"])
def test_a_second_encoder_is_there_for_every_density_that_can_have_one(kind):
    config = with_method(parse(override(preset("moons"), ["method=no-nf-2-enc", f"density.kind={kind}"])))
    assert config.density.encoders == 2
