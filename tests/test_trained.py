"""Which parts a config trains: what is said is what the trainer gets, and a name that changes nothing is refused."""

from pathlib import Path

import pytest
import torch

from gedi.building import build_stages, context_of
from gedi.config import override, parse
from gedi.densities.density import Place
from gedi.errors import UserError
from gedi.fitting import prepare, train
from gedi.methods import METHODS, with_method
from gedi.presets import PRESETS, preset
from gedi.rules import build_constraint
from gedi.sampling import Box
from gedi.tables import TABLES, engine
from gedi.trained import changes_nothing, check_method, parts_of, parts_table, training_of

ROOT = Path(__file__).parent.parent
BOX = Box(-torch.ones(2), torch.ones(2))
SMALL = ("stage2.iterations=3", "log_every=1", "n_init=1", "walk.steps=2")
CHAINS = ("stage1.iterations=3", "density.buffer=64", "density.chains=16", "density.steps=2")
PICTURES = ("data.name=digits", "data.limit=100", "model.width=4", "stage1.batch_size=20", "stage2.batch_size=64")
IMAGES = (*CHAINS, *PICTURES)
TRIPLETS = ("data.name=digits-addition", "data.triplets=30", "model.width=4", "stage2.batch_size=60")
POINTS = (*CHAINS, "data.n_train=300", "data.n_test=100", "stage1.batch_size=50", "stage2.batch_size=50")
TINY = {
    "moons": POINTS,
    "circles-paper": POINTS,
    "digits-energy": (*IMAGES, "model.latent=16"),
    "digits": (*PICTURES, "stage1.iterations=3", "model.latent=16", "density.features=4"),
    "cifar10-paper": IMAGES,
    "digits-addition": TRIPLETS,
    "addition-100-paper": (*CHAINS, *TRIPLETS, "stage1.batch_size=60"),
}


def small(name, method):
    return parse(override(preset(name), [*SMALL, *TINY[name], f"method={method}"]))


def weights_of(config):
    """The trained weights; built as the method says, whatever its name promises."""
    config = with_method(config).model_copy(update={"method": "gedi"})
    run = prepare(config)
    train(run)
    return run.trainer.model.state_dict()


@pytest.mark.parametrize("name", TINY)
def test_a_method_changes_nothing_exactly_if_it_trains_the_same_bit_for_bit(name):
    """A second encoder that nothing trains is no difference: what both have is compared."""
    plain = weights_of(small(name, "gedi"))
    none = {"jem"} if name == "digits-addition" else set() if "addition" in name else {"logic-alone"}
    none |= {"logic-and-labels"}  # of labels that are told, and none are
    none |= {"jem", "no-nf-no-train-1"} if name == "digits" else set()  # no samples, nothing to walk by
    for method in set(METHODS) - {"gedi"} - none:  # no energy for JEM, no rule for the logic
        config = small(name, method)
        said, trained = changes_nothing(config), weights_of(config)
        same = all(torch.equal(plain[key], trained[key]) for key in plain.keys() & trained.keys())
        assert said == (same and plain.keys() <= trained.keys()), method


@pytest.mark.parametrize(
    ("name", "method", "change"),
    [
        ("mnist", "no-nf", "it would leave out negative_free; use"),
        ("cifar10-energy", "no-nf-2-enc", "leave out negative_free, set density.own_encoder=true; use"),
        (
            "digits-addition",
            "no-nf-no-train-1",
            "leave out negative_free, leave out the first stage, set walk.energy=live",
        ),
        (
            "moons",
            "no-constraint",
            "leave out constraint, align, set constraint.rule=null, set constraint.prior=uniform",
        ),
    ],
)
def test_a_method_that_changes_nothing_is_refused_with_what_it_would_change(name, method, change):
    config = parse(override(preset(name), [f"method={method}"]))
    with pytest.raises(UserError, match=f"method {method} changes nothing in preset {name}, which trains ") as error:
        check_method(config)
    assert change in str(error.value)
    assert "use method=gedi" in str(error.value)
    with pytest.raises(UserError, match="changes nothing"):
        prepare(config)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("digits-energy", ["method=no-nf", "stage2.terms.negative_free.weight=0.1"]),
        ("digits-energy", ["method=no-nf-2-enc", "density.own_encoder=false"]),
        (
            "digits-addition",
            ["method=no-nf-2-enc", "density.kind=energy", "stage2.density={generative: 0.1, penalty: 0.01}"],
        ),
        ("digits-addition", ["method=no-nf-no-train-1", "density.kind=energy", "walk.composed=true"]),
    ],
)
def test_a_method_is_taken_where_settings_give_it_something_to_change(name, settings):
    assert not changes_nothing(parse(override(preset(name), settings)))


def test_what_takes_no_part_makes_no_difference():
    plain = preset("digits-energy")
    same = ["walk.steps=7", "parts.constraint.start=0.5", "log_every=3", "preset=mine", "stage2.moves.align.moments=[]"]
    same += ["stage2.terms.barlow.weight=0", "stage3={iterations: 0, learning_rate: 1, betas: [0, 0]}"]
    for assignment in same:
        assert training_of(parse(override(plain, [assignment]))) == training_of(parse(plain)), assignment
    for assignment in (
        "stage2.moves.merge.moments=[0.5]",
        "walk.composed=true",
        "constraint.prior=rule",
        "stage2.iterations=0",
    ):
        assert training_of(parse(override(plain, [assignment]))) != training_of(parse(plain)), assignment


@pytest.mark.parametrize("name", sorted(PRESETS))
@pytest.mark.parametrize("method", ["gedi", "jem", "swav"])
def test_the_parts_said_are_those_the_trainer_is_given(name, method):
    config = parse(override(preset(name), [f"method={method}"]))
    try:
        parts, config = parts_of(config), with_method(config)
    except UserError:
        assert method == "jem"
        return
    density = config.density.bind(Place(BOX, BOX))
    shares = torch.full((10,), 0.1) if name == "table" else None
    constraint = build_constraint(config.constraint, 10)
    several = constraint is not None and constraint.queries is not None
    answers = torch.zeros(3, dtype=torch.long) if several else None
    context = context_of(config, 10, constraint, shares=shares, answers=answers)
    stages = build_stages(config, density, context)
    weighed = {term for stage in stages for term in stage.density_weights}
    kinds = {term.kind for stage in stages for term in stage.terms.values()}
    moves = {move.kind for stage in stages for move in stage.moves.values()}
    assert ("samples" in parts["density"]) == ("generative" in weighed)
    assert ("score matching" in parts["density"]) == ("denoising" in weighed)
    assert ("penalty" in parts["density"]) == ("penalty" in weighed)
    for stage in stages:
        assert (stage.name[-1] in parts["density"]) == bool({"generative", "denoising"} & stage.density_weights.keys())
    assert (parts["chains"] != "") == bool({"generative", "penalty"} & weighed)
    assert parts["chains"].startswith("Metropolis") == (parts["chains"] != "" and density.langevin.metropolis)
    assert (parts["walks in the clusters"] != "none") == any(stage.walk is not None for stage in stages)
    assert (parts["negative-free"] == "yes") == ("negative_free" in kinds)
    assert (parts["rule"] != "none") == ("constraint" in kinds)
    assert ("names searched" in parts["rule"]) == ("align" in moves)
    assert (parts["merged from"] != "") == ("merge" in moves)
    assert (parts["clusters"] == "Sinkhorn") == ("swapped" in kinds)


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_the_pages_hold_the_table_of_parts_as_it_is_printed(page):
    assert parts_table() in (ROOT / page).read_text(), "put in what gedi presets --parts prints"


def test_every_preset_has_a_line_in_the_table_of_parts():
    cells = [line.split("|")[1] for line in parts_table().splitlines()[2:]]
    assert sorted(name.strip(" `") for cell in cells for name in cell.split(",")) == sorted(PRESETS)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_jem_is_the_sampled_term_alone_by_langevin_chains(name):
    plain = parse(preset(name))
    if plain.density.kind != "energy":
        with pytest.raises(UserError, match="leaves this preset nothing to train"):
            with_method(plain.model_copy(update={"method": "jem"}))
        return
    config = with_method(plain.model_copy(update={"method": "jem"}))
    stages = [stage for stage in config.stages.values() if stage.iterations > 0]
    assert stages
    for stage in stages:
        assert "generative" in stage.in_force
        assert set(stage.in_force) <= {"generative", "penalty"}
    assert not config.density.metropolis
    assert config.density.teleports == 0
    assert config.density.reinit == 0.05
    if not plain.density.metropolis:  # then the chains are the preset's own
        assert config.density == plain.density.model_copy(update={"own_encoder": False})


@pytest.mark.parametrize("profile", ["laptop", "paper"])
@pytest.mark.parametrize("name", sorted(TABLES))
def test_no_table_has_two_lines_of_one_training(name, profile):
    trained: dict[str, str] = {}
    cells = TABLES[name].cells(range(1), profile)
    twins = engine._twins(cells, profile)
    for cell in cells:
        try:
            config = engine._config(cell, profile)
        except UserError:  # no such profile of the paper's
            continue
        line = f"{cell.row}, {cell.column}, {cell.steps}"
        if cell not in twins:
            assert trained.setdefault(repr(training_of(config)), line) == line


def test_laptop_tables_leave_out_the_ablations_that_are_none_and_say_so(tmp_path, monkeypatch):
    left = engine._twins(TABLES["probe"].cells(range(2), "laptop"), "laptop")
    rows = ("mnist", "fashion-mnist", "svhn", "cifar10", "cifar100")
    assert {(cell.row, cell.column, twin) for cell, twin in left.items()} == {
        (row, column, "GEDI") for row in rows for column in ("no NF", "no NF, 2 enc.")
    }
    assert len(left) == 2 * 5 * 2  # every seed
    assert engine._twins(TABLES["probe"].cells(range(2), "paper"), "paper") == {}
    assert engine._twins(TABLES["toy-ablation"].cells(range(1), "laptop"), "laptop") == {}
    paper = engine._twins(TABLES["addition-ablation"].cells(range(1), "paper"), "paper")
    assert {cell.column: twin for cell, twin in paper.items()} == {
        "no alignment": "the recipe",  # whose literal settings align nothing, have uniform shares and no warps
        "alignment by renaming only": "the recipe",
        "uniform shares instead of the rule's": "the recipe",
        "noise alone instead of warps": "the recipe",
        "noise alone, and walk, two encoders": "the same, two encoders",
    }
    asked = []
    monkeypatch.setattr(engine, "_run_missing", lambda spec, cells, *rest: asked.extend(cells))
    monkeypatch.setattr(engine, "_finished", lambda directory, needs=None: True)
    empty = {"metrics": {}, "seconds": {"total": 1.0}, "evaluation": {}}
    monkeypatch.setattr(engine, "_result", lambda directory: empty)
    text = engine.write_table(
        TABLES["probe"], "probe", profile="laptop", seeds=range(2), out=tmp_path, only=["mnist", "GEDI", "no NF"]
    )
    assert {cell.column for cell in asked} == {"GEDI"}
    assert "no NF is the same training as GEDI here (mnist), so it has no line of its own." in text
    assert "| no NF |" not in text


def test_a_default_config_is_the_toy_recipe_in_its_parts():
    assert parts_of(parse({})) == parts_of(parse(preset("moons")))
