"""Settings: what is taken, what is refused, and how it is said."""

import pytest
import yaml

from gedi.config import METHODS, Config, merge, override, parse, to_yaml
from gedi.errors import UserError
from gedi.methods import CHANGES, with_method
from gedi.presets import PRESETS, preset


@pytest.mark.parametrize("name", sorted(PRESETS))
@pytest.mark.parametrize("method", METHODS)
def test_every_preset_takes_every_method_and_survives_yaml(name, method):
    config = parse(override(preset(name), [f"method={method}"]))
    assert parse(yaml.safe_load(to_yaml(config))) == config
    if method == "jem" and "addition" in name and not name.endswith("-paper"):  # a recipe without an energy
        with pytest.raises(UserError, match="jem leaves this preset nothing to train"):
            with_method(config)
    else:
        assert with_method(config).method == method


def test_the_methods_are_the_ones_that_change_something():
    assert set(CHANGES) == set(METHODS)


@pytest.mark.parametrize(
    ("spelling", "method"),
    [
        ("no NF", "no-nf"),
        ("no NF, no train. 1", "no-nf-no-train-1"),
        ("no NF, 2 enc.", "no-nf-2-enc"),
        ("GEDI", "gedi"),
    ],
)
def test_the_papers_spellings_name_methods(spelling, method):
    assert parse({"method": spelling}).method == method


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "gedy"}, "unknown method 'gedy': did you mean 'gedi'"),
        ({"walks": {}}, "unknown key 'walks': did you mean 'walk'"),
        ({"walk": {"stps": 3}}, r"unknown key 'walk.stps': did you mean 'walk.steps'"),
        ({"walk": {"T": 3}}, r"unknown key 'walk.T': did you mean 'walk.steps'"),
        ({"walk": {"steps": -1}}, r"walk.steps \(T\): must be greater than or equal to 0, got -1"),
        ({"walk": {"radius": 0}}, "walk.radius: must be greater than 0, got 0"),
        ({"walk": {"energy": "radiall"}}, r"walk.energy: must be .*'radial', got 'radiall'"),
        ({"data": {"name": "moon"}}, r"data.name: must be .*'moons'.*, got 'moon'"),
        ({"data": {"noise": -0.1}}, "data.noise: must be greater than 0"),
        ({"data": {"name": "file"}}, "needs data.path"),
        ({"stage1": {"betas": [0.9, 1.0]}}, "betas must be below 1"),
        ({"stage2": {"weights": {"cluster": 1}}}, r"unknown key 'stage2.weights.cluster': did you mean"),
        ({"stage1": {"learning_rate": "fast"}}, "stage1.learning_rate: must be a valid number"),
        ({"sampling": {"chains": 50, "buffer": 10}}, "chains must be at most sampling.buffer"),
        ({"model": {"temperature": 0.1}}, "epsilon must be below model.temperature"),
        ({"seed": -1}, "seed: must be greater than or equal to 0"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(settings, message):
    with pytest.raises(UserError, match=message) as error:
        parse(settings)
    assert "\n" not in str(error.value)


def test_overrides_reach_one_value_and_leave_the_rest():
    config = parse(override(preset("circles"), ["stage2.weights.cluster_walk=2", "walk=radial", "data.noise=1e-1"]))
    assert config.stage2.weights.cluster_walk == 2
    assert config.stage2.weights.cluster_noise == Config().stage2.weights.cluster_noise
    assert config.walk.energy == "radial"
    assert config.walk.steps == Config().walk.steps
    assert config.data.noise == 0.1


@pytest.mark.parametrize("text", ["walk.steps", "=3", "walk.steps=[1"])
def test_an_override_that_is_none_is_refused(text):
    with pytest.raises(UserError, match="--set"):
        override({}, [text])


def test_merge_keeps_what_is_not_named():
    assert merge({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}) == {"a": {"b": 3, "c": 2}}


def test_unknown_presets_and_profiles_name_the_nearest():
    with pytest.raises(UserError, match="did you mean 'circles'"):
        preset("circle")
    with pytest.raises(UserError, match="unknown profile 'papers': did you mean 'paper'"):
        preset("circles", "papers")
    with pytest.raises(UserError, match="no paper profile"):
        preset("rings", "paper")


@pytest.mark.parametrize("name", ["moons", "circles"])
def test_the_paper_profile_holds_the_papers_settings(name):
    config = parse(preset(name, "paper"))
    assert config.preset == f"{name}-paper"
    assert config.n_init == 1
    assert (config.model.hidden, config.model.latent) == ((100, 100), 2)
    assert (config.model.projector, config.model.embedding) == (4, 2)
    assert config.model.activation == config.model.first == "leaky_relu"
    s = config.sampling
    assert (s.steps, s.step_size, s.noise, s.buffer, s.reinit) == (1, 1.0, 0.01, 10_000, 0.05)
    assert not s.metropolis
    assert s.teleports == 0
    assert (config.walk.steps, config.walk.direction, config.walk.energy) == (10, "constant", "live")
    assert config.walk.refresh == 1
    assert config.cluster.view_noise == 0.03
    for stage in (config.stage1, config.stage2):
        assert (stage.iterations, stage.batch_size, stage.learning_rate, stage.final) == (7000, 400, 1e-3, 1.0)
    assert config.stage1.betas == (0.0, 0.9)
    weights = config.stage2.weights
    assert (weights.generative, weights.negative_free) == (1, 1 / 400)
    assert (weights.cluster_noise, weights.cluster_walk) == (1000, 500)
    assert weights.denoising == config.stage1.weights.denoising == 0


def test_every_shape_is_the_same_recipe():
    for name in ("moons", "circles", "rings", "spirals", "blobs", "pinwheel"):
        settings = preset(name)
        assert set(settings) == {"preset", "data"}
        assert set(settings["data"]) == {"name"}
