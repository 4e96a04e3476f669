"""What 0.1 wrote: its settings are read and train the same, its models are loaded, its checkpoints refused.

The files in ``old`` are what ``gedi presets NAME`` of 0.1.0 printed: complete settings, every name of them.
"""

import copy
import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from gedi.config import override, parse, to_yaml
from gedi.directory import RunDirectory, load_config
from gedi.errors import UserError
from gedi.fitting import prepare, train
from gedi.methods import with_method
from gedi.presets import completed, preset
from gedi.renamed import VERSION, VERSION_KEY, renamed, renamed_tensors, written_by_0_1
from gedi.runs import execute
from gedi.trained import training_of

OLD = {path.stem: path for path in sorted((Path(__file__).parent / "old").glob("*.yaml"))}
#: The same small trainings, in the words of 0.1 and of today.
POINTS = ["data.n_train=60", "data.n_test=20", "stage1.iterations=3", "walk.steps=2", "stage1.batch_size=20"]
POINTS += ["stage2.batch_size=20", "model.hidden=[8]", "stage2.iterations=3", "n_init=2", "good_enough=0"]
IMAGES = ["data.limit=150", "model.width=2", "model.latent=8", "stage1.iterations=2", "stage2.iterations=10"]
TRIPLETS = ["data.triplets=30", "model.width=2", "stage2.iterations=9", "stage2.batch_size=60"]
SMALL = {
    "circles": (
        [*POINTS, "sampling.buffer=30", "sampling.chains=10"],
        [*POINTS, "density.buffer=30", "density.chains=10"],
    ),
    "digits": ([*IMAGES, "sampling.buffer=64", "sampling.steps=2"], [*IMAGES, "density.buffer=64", "density.steps=2"]),
    "digits-addition": (TRIPLETS, TRIPLETS),
}


def today_of(name):
    """The preset of today with the recipe that a preset of 0.1 had."""
    return preset("digits-energy" if name == "digits" else name)


def old(name, *settings):
    """Complete settings of 0.1, some of them changed by its names."""
    found = yaml.safe_load(OLD[name].read_text())
    for setting in settings:
        key, _, value = setting.partition("=")
        *path, last = key.split(".")
        place = found
        for part in path:
            place = place[part]
        assert last in place, f"0.1 had no {key}"
        place[last] = yaml.safe_load(value)
    return found


def leaves(settings, prefix=""):
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def trained(config):
    run = prepare(config)
    train(run)
    return run.trainer.model.state_dict()


# --- settings ---


def test_there_are_old_files():
    assert set(OLD) == set(SMALL)


@pytest.mark.parametrize("name", OLD)
def test_complete_settings_train_as_the_preset_does(name):
    settings = yaml.safe_load(OLD[name].read_text())
    assert written_by_0_1(settings)
    config, today = parse(completed(settings)), parse(today_of(name))
    assert training_of(config) == training_of(today)
    for stage, kept in training_of(today).items():  # sums are in the order of the terms
        if stage.startswith("stage"):
            assert list(training_of(config)[stage]["terms"]) == list(kept["terms"])
    assert load_config(OLD[name]) == config
    assert parse(yaml.safe_load(to_yaml(config))) == config


@pytest.mark.parametrize("name", OLD)
@pytest.mark.parametrize("method", ["jem", "barlow", "swav", "no-nf", "no-nf-2-enc", "no-constraint", "supervised"])
def test_methods_make_the_same_of_old_settings(name, method):
    config, today = parse(completed(old(name, f"method={method}"))), parse({**today_of(name), "method": method})
    if (name, method) == ("digits-addition", "jem"):
        for one in (config, today):
            with pytest.raises(UserError, match="leaves this preset nothing to train"):
                training_of(one)
    else:
        assert training_of(config) == training_of(today)


@pytest.mark.parametrize("name", OLD)
def test_complete_settings_train_the_same_bit_for_bit(name):
    before, today = SMALL[name]
    found, wanted = trained(parse(completed(old(name, *before)))), trained(parse(override(today_of(name), today)))
    assert wanted.keys() <= found.keys()  # an energy that nothing trains may stand beside
    assert found.keys() - wanted.keys() <= {"density.direction"}
    assert all(torch.equal(x, found[key]) for key, x in wanted.items())


@pytest.mark.parametrize("name", OLD)
def test_every_old_name_may_be_typed(name):
    """As a command of 0.1 did: each sets what a complete file sets."""
    complete = old(name)
    typed = [f"{key}={json.dumps(value)}" for key, value in leaves(complete) if key != "preset"]
    assert len(typed) > 120
    assert training_of(parse(override(today_of(name), typed))) == training_of(parse(complete))
    for assignment in typed:
        if not assignment.startswith("stage1.") or name != "digits-addition":  # which has no such stage any more
            config = parse(override(today_of(name), [assignment]))
            assert training_of(config) == training_of(parse(today_of(name))), assignment


PLACES = [
    ("sampling.noise=0.7", "density.noise", 0.7),
    ("sampling.step_size=0.7", "density.step_size", 0.7),
    ("sampling.metropolis=false", "density.metropolis", False),
    ("model.second_encoder=true", "density.own_encoder", True),
    ("stage2.denoising=0.7", "density.width", 0.7),
    ("cluster.view_noise=0.7", "augment.noise", 0.7),
    ("cluster.epsilon_start=0.7", "stage2.terms.swapped.epsilon_start", 0.7),
    ("cluster.epsilon_start=0.7", "stage2.terms.swapped_walk.epsilon_start", 0.7),
    ("cluster.epsilon=0.7", "stage2.terms.swapped.epsilon", 0.7),
    ("cluster.epsilon=0.7", "stage2.terms.swapped_walk.epsilon", 0.7),
    ("cluster.anneal=0.7", "stage2.terms.swapped.anneal", 0.7),
    ("cluster.iterations=7", "stage2.terms.swapped.iterations", 7),
    ("cluster.ridge=0.7", "stage2.terms.negative_free.ridge", 0.7),
    ("cluster.start=0.7", "stage2.terms.agreement.start", 0.7),
    ("cluster.start=0.7", "stage2.terms.agreement_walk.start", 0.7),
    ("cluster.start=0.7", "stage2.terms.balance.start", 0.7),
    ("cluster.merge=[0.7]", "stage2.moves.merge.moments", [0.7]),
    ("cluster.finer_balance=0.7", "stage2.terms.finer.balance", 0.7),
    ("cluster.off_diagonal=0.7", "stage2.terms.barlow.off_diagonal", 0.7),
    ("cluster.contrast_temperature=0.7", "stage2.terms.contrastive.temperature", 0.7),
    ("cluster.similarity=distance", "stage2.terms.contrastive.similarity", "distance"),
    ("constraint.start=0.7", "stage2.terms.constraint.start", 0.7),
    ("constraint.ramp=0.7", "stage2.terms.constraint.ramp", 0.7),
    ("constraint.align=[0.7]", "stage2.moves.align.moments", [0.7]),
    ("constraint.restarts=7", "stage2.moves.align.restarts", 7),
    ("constraint.decode=false", "stage2.moves.align.decode", False),
    ("constraint.prior=rule", "constraint.prior", "rule"),
    *((f"stage1.weights.{name}=0.7", f"stage1.density.{name}", 0.7) for name in ("generative", "denoising", "penalty")),
    *((f"stage2.weights.{name}=0.7", f"stage2.density.{name}", 0.7) for name in ("generative", "denoising", "penalty")),
    ("stage2.weights.cluster_noise=0.7", "stage2.terms.swapped.weight", 0.7),
    ("stage2.weights.cluster_walk=0.7", "stage2.terms.swapped_walk.weight", 0.7),
    ("stage2.weights.cluster_walk=0.7", "stage2.terms.swapped_walk.look", "walk"),
    ("stage2.weights.agreement_walk=0.7", "stage2.terms.agreement_walk.weight", 0.7),
    ("stage2.weights.agreement_walk=0.7", "stage2.terms.agreement_walk.look", "walk"),
    ("stage2.weights.constraint=0.7", "stage2.terms.constraint.weight", 0.7),
    *(
        (f"stage2.weights.{name}=0.7", f"stage2.terms.{name}.weight", 0.7)
        for name in ("negative_free", "agreement", "balance", "finer", "barlow", "contrastive", "supervised")
    ),
]  # fmt: skip


@pytest.mark.parametrize(("assignment", "place", "value"), PLACES, ids=[f"{old} is {new}" for old, new, _ in PLACES])
def test_each_old_name_has_its_place(assignment, place, value):
    every = [f"stage2.weights.{name}=1" for name in old("circles")["stage2"]["weights"]]  # so that each term is there
    found = parse(override(preset("circles"), [*every, assignment])).model_dump()
    for part in place.split("."):
        found = found[part]
    assert found == value


@pytest.mark.parametrize(("weight", "move"), [("constraint", "constraint.align"), ("finer", "cluster.merge")])
def test_moves_of_0_1_are_made_only_beside_their_term(weight, move):
    for order in (1, -1):
        given = {move.partition(".")[0]: {move.partition(".")[2]: [0.5]}, "stage2": {"weights": {weight: 0.0}}}
        found = renamed(dict([*given.items()][::order]))
        assert found["stage2"]["moves"][move.partition(".")[2]]["moments"] == []
        given["stage2"]["weights"][weight] = 1.0
        assert renamed(given)["stage2"]["moves"][move.partition(".")[2]]["moments"] == [0.5]


def test_a_file_of_some_old_names_changes_the_preset_it_names():
    found = parse(
        completed({"preset": "digits-energy", "stage2": {"weights": {"negative_free": 0.5}}, "sampling": {"steps": 3}})
    )
    wanted = parse(override(preset("digits-energy"), ["stage2.terms.negative_free.weight=0.5", "density.steps=3"]))
    assert found == wanted


def test_old_names_of_the_energy_bring_it_where_there_is_none():
    settings = ["sampling.chains=7", "stage2.weights.generative=0.1", "model.second_encoder=true"]
    config = parse(override(preset("digits-addition"), settings))
    assert (config.density.kind, config.density.chains, config.density.own_encoder) == ("energy", 7, True)


def test_one_width_of_score_matching_takes_the_place_of_two():
    assert parse(old("circles", "stage1.denoising=0.3", "stage2.denoising=0.3")).density.width == 0.3
    unused = old("circles", "stage1.denoising=0.3", "stage2.weights.denoising=0")
    assert parse(unused).density.width == 0.3
    with pytest.raises(UserError, match=r"stage1.denoising=0.3 and stage2.denoising=0.05 must be alike: the density"):
        parse(old("circles", "stage1.denoising=0.3"))


def test_what_is_given_is_not_written_into():
    given = {"stage2": {"terms": {"swapped": {"weight": 1.0}}, "weights": {"cluster_noise": 2.0}}}
    kept = copy.deepcopy(given)
    assert renamed(given)["stage2"]["terms"] == {"swapped": {"weight": 2.0}}
    assert given == kept


def test_names_of_today_stay_as_they_are():
    for name in ("circles", "digits", "addition-100-paper"):
        assert renamed(preset(name)) == preset(name)
        assert not written_by_0_1(preset(name))


# --- versions ---


def test_complete_settings_say_their_version():
    written = yaml.safe_load(to_yaml(parse(preset("circles"))))
    assert next(iter(written)) == VERSION_KEY
    assert written[VERSION_KEY] == VERSION
    assert not written_by_0_1(written)


@pytest.mark.parametrize("version", [VERSION + 1, 10**30, "2", 2.5, None, True, [2]])
def test_settings_of_a_later_version_are_refused_in_one_line(version):
    settings = yaml.safe_load(to_yaml(parse(preset("circles")))) | {VERSION_KEY: version, "later": {"setting": 1}}
    for read in (parse, lambda settings: parse(completed(settings))):
        with pytest.raises(UserError, match="are of a later gedi: this one reads versions up to 2") as said:
            read(settings)
        assert "\n" not in str(said.value)


# --- runs ---

#: What methods of 0.1 changed in the settings that a model was kept with.
CHANGED = {
    "gedi": [],
    "no-nf-2-enc": ["stage2.weights.negative_free=0", "model.second_encoder=true"],
    "swav": ["stage1.iterations=0", *(f"stage2.weights.{name}=0" for name in ("generative", "denoising"))],
}
CHANGED["swav"] += ["stage2.weights.negative_free=0", "stage2.weights.cluster_walk=0"]


def written_by_old(path, name, method):
    """A finished run as 0.1 left it: its names of settings, weights and terms, and no checksum or fingerprint."""
    settings = old(name, *SMALL[name][0], "n_init=1", f"method={method}")
    execute(prepare(parse(settings)), RunDirectory.create(path))
    (path / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    (path / "data.json").unlink()
    shape = json.loads((path / "model" / "config.json").read_text())
    for later in ("checksum", "inputs", "verdict", VERSION_KEY):
        del shape[later]
    shape["config"] = old(name, *SMALL[name][0], "n_init=1", f"method={method}", *CHANGED[method])
    (path / "model" / "config.json").write_text(json.dumps(shape))
    results = json.loads((path / "results.json").read_text())
    for later in ("verdict", "fingerprint", "checksums"):
        del results[later]
    (path / "results.json").write_text(json.dumps(results))
    log = (path / "metrics.jsonl").read_text()
    (path / "metrics.jsonl").write_text(log.replace("swapped_walk", "cluster_walk").replace("swapped", "cluster_noise"))
    save_file(old_weights(path / "model" / "model.safetensors"), path / "model" / "model.safetensors")
    shutil.rmtree(path / "checkpoints")
    for _ in range(2):
        RunDirectory(path).checkpoints.save(
            {"model": {}, "chains": torch.zeros(3), "leg": 2, "logged": 1, "spent": 1.0}
        )
    return RunDirectory.open(path)


def old_weights(path):
    """By the names of 0.1, which always had an energy."""
    found = {}
    for name, x in load_file(path).items():
        found[name.replace("density.encoder.", "generative_encoder.").replace("density.", "")] = x.clone()
    return {"direction": torch.zeros(8), **found}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of 0.1 by data and method, each made once."""
    made = {}

    def get(name, method="gedi"):
        if (name, method) not in made:
            made[name, method] = written_by_old(tmp_path_factory.mktemp("old") / "run", name, method)
        return made[name, method]

    return get


@pytest.mark.parametrize("method", CHANGED)
def test_the_model_of_an_old_run_is_loaded_with_its_energy(runs, method):
    run = runs("circles", method)
    before = load_file(run.path / "model" / "model.safetensors")
    assert "direction" in before
    assert any(name.startswith("generative_encoder.") for name in before) == (method == "no-nf-2-enc")
    fitted = run.fitted()
    model, box = fitted.model, fitted.box
    now = model.state_dict()
    assert now.keys() == renamed_tensors(before).keys()
    assert all(torch.equal(x, now[name]) for name, x in renamed_tensors(before).items())
    assert torch.isfinite(model(box.sample(5, torch.Generator())).energy).all()


@pytest.mark.parametrize("method", CHANGED)
def test_a_report_of_an_old_run_is_drawn(runs, gedi, method):
    run = runs("circles", method)
    code, out, err = gedi("report", run.path)
    assert (code, out.strip()) == (0, str(run.path / "report.html")), err
    assert "cluster_noise" in (run.path / "metrics.jsonl").read_text()


def test_an_old_run_on_images_is_evaluated(runs, gedi):
    run = runs("digits")
    code, out, err = gedi("evaluate", run.path, "--part", "probe", "--limit", "50")
    assert code == 0, err
    assert json.loads(out[: out.rindex("}") + 1])["probe"]


def test_a_model_of_other_settings_is_still_told_in_an_old_run(runs, tmp_path):
    run = RunDirectory(Path(shutil.copytree(runs("circles").path, tmp_path / "run")))
    shape = json.loads((run.path / "model" / "config.json").read_text())
    shape["config"]["model"]["temperature"] = 0.3
    (run.path / "model" / "config.json").write_text(json.dumps(shape))
    with pytest.raises(UserError, match=r"its settings are not those of config.yaml"):
        run.fitted()


def test_old_weights_that_do_not_fit_are_refused(runs, tmp_path):
    run = RunDirectory(Path(shutil.copytree(runs("circles").path, tmp_path / "run")))
    path = run.path / "model" / "model.safetensors"
    save_file({name: x for name, x in load_file(path).items() if name != "direction"}, path)
    with pytest.raises(UserError, match="its weights are not those of the network"):
        run.fitted()


def contents(path):
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file() and file.name != ".lock"}


def test_an_old_run_cannot_go_on_and_is_told_what_to_do(runs, gedi):
    run = runs("circles")
    before = contents(run.path)
    typed = [word for setting in [*SMALL["circles"][0], "n_init=1"] for word in ("--set", setting)]
    for words in (["circles", *typed], [run.path / "config.yaml"]):
        code, out, err = gedi("run", *words, "--out", run.path, "--resume")
        assert (code, out) == (2, "")
        assert "is of gedi 0.1, which this version cannot go on with: finish it with 0.1, or start anew with" in err
        assert len(err.splitlines()) == 1
    assert contents(run.path) == before
    with pytest.raises(UserError, match=r"finish it with 0.1, or start anew with --overwrite or another --out"):
        execute(prepare(run.config()), run)  # from Python: told by its checkpoints
    assert contents(run.path) == before


def test_old_settings_may_begin_anew_in_the_same_place(runs, gedi, tmp_path, monkeypatch):
    monkeypatch.setattr("gedi.report.write_report", lambda directory: directory.write("report.html", "drawn"))
    path = shutil.copytree(runs("circles").path, tmp_path / "run")
    shutil.copy(path / "config.yaml", tmp_path / "mine.yaml")
    assert gedi("run", tmp_path / "mine.yaml", "--out", path, "--overwrite")[0] == 0
    again = yaml.safe_load((path / "config.yaml").read_text())
    assert again[VERSION_KEY] == VERSION
    assert gedi("run", tmp_path / "mine.yaml", "--out", path, "--resume")[0] == 0  # no run of 0.1 any more


def test_the_settings_beside_a_model_say_their_version(tmp_path):
    config = parse(override(preset("circles"), [*SMALL["circles"][1], "n_init=1", "method=swav"]))
    run = RunDirectory.create(tmp_path / "run")
    execute(prepare(config), run)
    path = run.path / "model" / "config.json"
    kept = json.loads(path.read_text())
    assert kept[VERSION_KEY] == VERSION
    assert parse(kept["config"]) == with_method(config)
    run.fitted()
    path.write_text(json.dumps(kept | {VERSION_KEY: VERSION + 1}))
    with pytest.raises(
        UserError, match=r"model/config.json' cannot be used: settings of version 3 are of a later gedi"
    ):
        run.fitted()


def test_an_old_model_takes_images_as_they_were_given(runs):
    fitted = runs("digits").fitted()
    d = fitted.config.data
    assert (d.mean, d.std) == (0.5, 0.5)
    white = torch.full((1, 1, 8, 8), 255, dtype=torch.uint8)
    torch.testing.assert_close(fitted.inputs(white), torch.ones(1, 1, 8, 8))


def test_an_old_model_of_a_table_is_not_asked_in_units_that_were_not_kept(runs, tmp_path):
    run = RunDirectory(Path(shutil.copytree(runs("circles").path, tmp_path / "run")))
    rows = torch.zeros(3, 2)
    assert run.fitted().predict(rows).shape == (3,)  # shapes were not scaled
    shape = json.loads((run.path / "model" / "config.json").read_text())
    shape["config"]["data"] |= {"name": "file", "path": "mine.csv"}
    (run.path / "model" / "config.json").write_text(json.dumps(shape))
    (run.path / "config.yaml").write_text(yaml.safe_dump(shape["config"]))
    for fitted in (run.fitted(), run.fitted()):
        for ask in (lambda: fitted.predict(rows), lambda: fitted.sample(3)):  # noqa: B023
            with pytest.raises(UserError, match="did not keep the scale of a table's rows: train it again"):
                ask()
        fitted.save(run.path / "model")  # which makes nothing up
