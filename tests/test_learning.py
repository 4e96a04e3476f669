"""Real trainings: the presets learn what they say, and the controls do not."""

import pytest

from gedi.config import override, parse
from gedi.devices import make_fabric
from gedi.evaluation import density_check
from gedi.fitting import measured_run, prepare, train
from gedi.presets import preset


def learn(name, *settings, profile=None, precision="32-true", log=None):
    run = prepare(parse(override(preset(name, profile), settings)), fabric=make_fabric(precision=precision))
    if log is not None:
        run.trainer.on_log = log.append
    train(run)
    metrics, _ = measured_run(run)
    return metrics, run


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("circles", 0.97), ("moons", 0.97), ("spirals", 0.9), ("rings", 0.9)])
def test_the_recipe_finds_the_clusters_with_a_genuine_density(name, least):
    metrics, _ = learn(name, "seed=1000")
    assert metrics["nmi"] >= least
    assert density_check(metrics)["genuine"], density_check(metrics)
    assert metrics["kl"] < 0.2 < metrics["kl_uniform"]


@pytest.mark.slow
def test_the_recipe_learns_in_half_precision():
    log = []
    metrics, _ = learn("circles", "seed=0", precision="bf16-mixed", log=log)
    assert metrics["nmi"] >= 0.97
    assert metrics["kl"] < 0.2
    assert not [record for record in log if record.get("event") == "guard"]


@pytest.mark.slow
def test_without_a_model_the_walk_does_not_solve_moons():
    """The control: score -x, with no model."""
    metrics, run = learn("moons", "seed=1000", "walk=radial", "n_init=1")
    assert metrics["nmi"] < 0.9
    assert run.trainer.course.selection_losses[0] > run.trainer.settings.good_enough  # and the loss says so


@pytest.mark.slow
def test_noise_views_alone_do_not_solve_spirals():
    metrics, _ = learn("spirals", "seed=1000", "method=swav", "n_init=1")
    assert metrics["nmi"] < 0.5


@pytest.mark.parametrize("name", ["moons", "circles"])
@pytest.mark.parametrize("method", ["gedi", "jem", "swav", "no-nf-2-enc"])
def test_the_paper_profile_runs_at_full_size(name, method):
    settings = [f"method={method}", "stage1.iterations=3", "stage2.iterations=3", "log_every=1"]
    metrics, run = learn(name, *settings, profile="paper")
    assert run.trainer.course.legs[0].stage.batch_size == 400
    assert 0 <= metrics["nmi"] <= 1


def test_the_cluster_term_learns_from_walks_that_never_cross():
    """Three far blobs, walks that stay: a few hundred iterations suffice, so a sign error cannot hide."""
    metrics, _ = learn(
        *("blobs", "seed=0", "data.n_train=600", "stage1.iterations=400", "stage2.iterations=400"),
        *("walk.steps=50", "n_init=2", "density.buffer=1000"),
    )
    assert metrics["nmi"] > 0.8


def test_stage_one_learns_the_density():
    """KL falls well below the uniform density's within a few hundred steps: the generative signs are right."""
    metrics, _ = learn("circles", "stage1.iterations=250", "stage2.iterations=0", "data.n_test=400")
    assert metrics["kl"] < metrics["kl_uniform"] / 2
    assert metrics["score_cosine"] > 0.6
