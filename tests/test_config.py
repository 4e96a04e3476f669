"""Settings: what is taken, what is refused, and how it is said."""

import pytest
import yaml

from gedi.config import override, parse, to_yaml
from gedi.errors import UserError
from gedi.fitting import prepare
from gedi.methods import METHODS, with_method
from gedi.presets import PRESETS, completed, preset
from gedi.settings import merge
from gedi.trained import changes_nothing


@pytest.mark.parametrize("name", sorted(PRESETS))
@pytest.mark.parametrize("method", METHODS)
def test_every_preset_takes_every_method_and_survives_yaml(name, method):
    config = parse(override(preset(name), [f"method={method}"]))
    assert parse(yaml.safe_load(to_yaml(config))) == config
    if method == "jem" and config.density.kind != "energy":
        with pytest.raises(UserError, match="jem leaves this preset nothing to train"):
            with_method(config)
    else:
        assert with_method(config).method == method


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"gedi"}))
def test_every_method_changes_something(method):
    assert not changes_nothing(parse(override(preset("addition-100-paper"), [f"method={method}"])))


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
        ({"walks": {}}, "unknown key 'walks': did you mean 'walk'"),
        ({"walk": {"stps": 3}}, r"unknown key 'walk.stps': did you mean 'walk.steps'"),
        ({"walk": {"T": 3}}, r"unknown key 'walk.T': did you mean 'walk.steps'"),
        ({"walk": {"steps": -1}}, r"walk.steps \(T\): must be greater than or equal to 0, got -1"),
        ({"walk": {"radius": 0}}, "walk.radius: must be greater than 0, got 0"),
        ({"walk": {"energy": "radiall"}}, r"walk.energy: must be .*'radial'.*, got 'radiall'"),
        ({"data": {"name": "moon"}}, r"data.name: must be .*'moons'.*, got 'moon'"),
        ({"data": {"noise": -0.1}}, "data.noise: must be greater than 0"),
        ({"data": {"name": "file"}}, "needs data.path"),
        ({"stage1": {"betas": [0.9, 1.0]}}, "betas must be below 1"),
        ({"stage1": {"beta": [0.9, 0.9]}}, "unknown key 'stage1.beta': did you mean 'stage1.betas'"),
        ({"stage2": {"terms": {"swaped": {"weight": 1}}}}, "unknown objective 'swaped': did you mean 'swapped'"),
        ({"stage2": {"weights": {"cluster": 1}}}, "unknown objective 'cluster'"),
        ({"stage2": {"terms": {"swapped": {"epsiln": 1}}}}, "'swapped.epsiln': did you mean 'swapped.epsilon'"),
        ({"stage2": {"terms": {"swapped": 1}}}, r"swapped must hold settings such as \{weight: 1\}, got 1"),
        ({"stage2": {"terms": {"barlow": {}}}}, "barlow.weight: field required"),
        ({"stage2": {"terms": 5}}, "stage2.terms: must be a valid dictionary"),
        ({"stage2": {"moves": {"algin": {}}}}, "unknown move 'algin': did you mean 'align'"),
        ({"stage2": {"moves": {"align": {"moments": [2]}}}}, "align.moments.0: must be less than or equal to 1, got 2"),
        ({"stage2": {"density": {"genrative": 1}}}, "stage2.density 'genrative': did you mean 'generative'"),
        ({"density": {"kind": "enery"}}, "unknown density 'enery': did you mean 'energy'"),
        (
            {"density": {"kind": "none"}},
            "density.kind=none has no terms to weigh: leave them out with stage1.density=null",
        ),
        ({"density": {"stps": 1}}, "unknown key 'density.stps': did you mean 'density.steps'"),
        ({"parts": {"swaped": {"epsilon": 0.1}}}, "unknown objective 'swaped': did you mean 'swapped'"),
        ({"parts": {"vicreg": 5}}, "parts.vicreg: must be a valid dictionary"),
        ({"parts": {"barlow": {"of_diagonal": 1}}}, "'parts.barlow.of_diagonal': did you mean 'parts.barlow.off_"),
        ({"parts": {"barlow": {"off_diagonal": -1}}}, "parts.barlow.off_diagonal: must be greater than or equal to 0"),
        ({"stage1": {"learning_rate": "fast"}}, "stage1.learning_rate: must be a valid number"),
        ({"seed": -1}, "seed: must be greater than or equal to 0"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(settings, message):
    with pytest.raises(UserError, match=message) as error:
        parse(completed(settings))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["method=gedy"], "unknown method 'gedy': did you mean 'gedi'"),
        (["density.chains=50", "density.buffer=10"], "chains must be at most density.buffer"),
        (["model.temperature=0.1"], "epsilon of swapped must be below model.temperature"),
        (["stage2.terms.constraint.weight=1"], "needs a constraint: see constraint.rule"),
        (["stage2.moves.align.moments=[0.5]"], "names clusters by a constraint, and there is none"),
        (["stage2.moves.merge.moments=[0.5]"], "merged from finer ones, and the model has none: see model.finer"),
        (["stage2.terms.finer.weight=1"], "needs some: see model.finer"),
        (["stage1.density.generative=0", "stage1.density.denoising=0"], "stage1 needs at least one term"),
        (["walk.composed=true"], "a composed walk is part of the augmented view"),
    ],
)
def test_what_does_not_fit_together_is_said_in_one_line_before_training(settings, message):
    with pytest.raises(UserError, match=message) as error:
        prepare(parse(override(preset("circles"), settings)))
    assert "\n" not in str(error.value)


def test_overrides_reach_one_value_and_leave_the_rest():
    plain = parse(preset("circles"))
    config = parse(
        override(preset("circles"), ["stage2.terms.swapped_walk.weight=2", "walk=radial", "data.noise=1e-1"])
    )
    assert config.stage2.terms["swapped_walk"].weight == 2
    assert config.stage2.terms["swapped_walk"].look == "walk"
    assert config.stage2.terms["swapped"] == plain.stage2.terms["swapped"]
    assert config.stage1 == plain.stage1
    assert config.walk.energy == "radial"
    assert config.walk.steps == plain.walk.steps
    assert config.data.noise == 0.1


def test_an_override_adds_a_term_and_leaves_one_out():
    config = parse(override(preset("circles"), ["stage2.terms.barlow.weight=3", "stage2.terms.swapped=null"]))
    assert list(config.stage2.terms) == ["negative_free", "swapped_walk", "barlow"]
    assert config.stage2.terms["barlow"].weight == 3


def test_settings_of_a_kind_reach_every_term_of_it_and_its_own_come_first():
    settings = ["parts.swapped.epsilon=0.15", "stage2.terms.swapped_walk.epsilon=0.12"]
    terms = parse(override(preset("circles"), settings)).stage2.terms
    assert (terms["swapped"].epsilon, terms["swapped_walk"].epsilon) == (0.15, 0.12)


def test_another_density_takes_none_of_the_settings_of_the_one_before():
    assert override(preset("mnist-energy"), ["density.kind=none"])["density"] == {"kind": "none"}
    back = parse(override(preset("mnist-energy"), ["density.kind=none", "density.kind=energy"]))
    assert back.density == parse(preset("circles")).density  # all defaults
    assert parse(override(preset("mnist-energy"), ["density.kind=energy"])) == parse(preset("mnist-energy"))
    assert override({"density": {"chains": 5}}, ["density.kind=energy"])["density"] == {"kind": "energy", "chains": 5}


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
    s = config.density
    assert (s.steps, s.step_size, s.noise, s.buffer, s.reinit) == (1, 1.0, 0.01, 10_000, 0.05)
    assert not s.metropolis
    assert s.teleports == 0
    assert (config.walk.steps, config.walk.direction, config.walk.energy) == (10, "constant", "live")
    assert config.walk.refresh == 1
    assert config.augment.noise == 0.03
    for stage in (config.stage1, config.stage2):
        assert (stage.iterations, stage.batch_size, stage.learning_rate, stage.final) == (7000, 400, 1e-3, 1.0)
    assert config.stage1.betas == (0.0, 0.9)
    weights = {name: term.weight for name, term in config.stage2.terms.items()}
    assert weights == {"negative_free": 1 / 400, "swapped": 1000, "swapped_walk": 500}
    assert config.stage1.density == config.stage2.density == {"generative": 1}


def test_every_shape_is_the_same_recipe():
    for name in ("moons", "circles", "rings", "spirals", "blobs", "pinwheel"):
        assert preset(name) == merge(preset("toy"), {"preset": name, "data": {"name": name}})


def test_null_leaves_out_a_term_or_a_move_of_the_preset():
    config = parse(override(preset("digits"), ["stage2.terms.finer=null", "stage2.moves.merge=null"]))
    assert "finer" not in config.stage2.terms
    assert not config.stage2.moves
    assert "merge" in parse(preset("digits")).stage2.moves
