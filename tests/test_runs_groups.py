"""Runs on points in groups: from files, of a user's own, by every method, and through the program."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import yaml

from gedi.config import override, parse
from gedi.data import Dataset
from gedi.directory import RunDirectory
from gedi.errors import UserError
from gedi.fitting import prepare, train
from gedi.logic import Constraint
from gedi.presets import preset
from gedi.random import Streams
from gedi.report import Progress, write_report
from gedi.sources import load_data
from gedi.tables import TABLES, Cell, engine, write_table

SMALL = (
    "data.triplets=20", "stage2.iterations=6", "stage2.batch_size=30", "stage2.moves.align.restarts=4", "log_every=2",
)  # fmt: skip


def digits(*settings):
    return prepare(parse(override(preset("digits-addition"), [*SMALL, *settings])))


def weights(run):
    return torch.cat([p.detach().flatten() for p in run.trainer.model.state_dict().values()])


def file_of_groups(path, groups=20, size=3):
    """Row r of group k is (k, r), so that a cut group shows."""
    k, r = np.divmod(np.arange(groups * size), size)
    np.savez(path, x=np.stack([k, r], axis=1).astype(float), y=r)
    return path


def from_file(path, *settings):
    arguments = ["data.name=file", f"data.path={path}", *settings]
    return parse(override(preset("toy"), arguments))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_groups_of_a_file_stay_together_in_the_split(tmp_path, seed):
    config = from_file(file_of_groups(tmp_path / "x.npz"), "data.group_size=3", f"seed={seed}")
    data = load_data(config, Streams(seed))
    assert (data.group_size, data.groups) == (3, 16)
    assert len(data.test) == 12
    for part, labels in ((data.train, data.train_labels), (data.test, data.test_labels)):
        rows = part.view(-1, 3, 2)
        assert (rows[:, :, 0] == rows[:, :1, 0]).all()  # one group
        assert (rows[:, 1:, 1] > rows[:, :-1, 1]).all()  # in the file's order
        assert torch.equal(labels.view(-1, 3), torch.arange(3).expand(len(rows), -1))
    train, test = ({float(x) for x in part[:, 0]} for part in (data.train, data.test))
    assert not train & test
    assert len(train | test) == 20


def test_the_split_of_groups_follows_from_the_seed_and_mixes(tmp_path):
    path = file_of_groups(tmp_path / "x.npz")
    a, b, other = (load_data(from_file(path, "data.group_size=3"), Streams(s)).train for s in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, other)
    first = a.view(-1, 3, 2)[:, 0, 0]
    assert not torch.equal(first, first.sort().values)


def test_rows_without_groups_are_split_as_rows(tmp_path):
    data = load_data(from_file(file_of_groups(tmp_path / "x.npz")), Streams(0))
    assert (data.group_size, data.groups) == (1, 0)
    assert (len(data.train), len(data.test)) == (48, 12)


def test_a_file_with_a_broken_group_is_refused(tmp_path):
    path = file_of_groups(tmp_path / "x.npz")
    with pytest.raises(UserError, match=r"must hold whole groups: 60 rows are no multiple of data.group_size=7"):
        load_data(from_file(path, "data.group_size=7"), Streams(0))


def own_data(groups=40, seed=0):
    """Three far blobs in the plane; every pair goes up by one symbol: (0, 1) or (1, 2)."""
    g = torch.Generator().manual_seed(seed)
    low = torch.randint(2, (groups,), generator=g)
    symbols = torch.stack([low, low + 1], dim=1).flatten()
    centres = torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    x = centres[symbols] + 0.1 * torch.randn(len(symbols), 2, generator=g)
    return Dataset("pairs", x, x.clone(), symbols, symbols.clone(), group_size=2, groups=groups)


OWN = (
    "stage1.iterations=3", "stage2.iterations=6", "stage2.batch_size=20", "stage1.batch_size=20", "n_init=1",
    "density.buffer=200", "density.chains=20", "walk.steps=3", "stage2.terms.constraint.weight=1",
    "stage2.moves.align.moments=[0.5]", "stage2.moves.align.restarts=4", "constraint.prior=rule", "log_every=2",
)  # fmt: skip


def next_one(a, b):
    return b == a + 1


def test_a_users_own_points_and_rule_train_a_few_iterations():
    rule = Constraint.from_predicate(next_one, [range(3)] * 2)
    run = prepare(parse(override(preset("toy"), list(OWN))), data=own_data(), constraint=rule)
    assert run.constraint is rule
    assert run.data.name == "pairs"
    stage = run.trainer.course.legs[-1].stage
    assert stage.terms["constraint"]._context.constraint is rule
    torch.testing.assert_close(
        stage.terms["swapped"]._context.log_shares.exp(), torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64)
    )
    before, log = weights(run), []
    run.trainer.on_log = log.append
    train(run)
    assert [record["iteration"] for record in log if "event" in record] == [3]
    assert all("constraint" in record for record in log if record["stage"] == "stage2" and "event" not in record)
    assert torch.isfinite(weights(run)).all()
    assert not torch.equal(weights(run), before)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group_size": 4, "groups": 10}, "over 2 variables needs groups of as many points, got groups of 4"),
        ({"groups": 0}, "needs training points in groups of 2, got 0 groups"),
    ],
)
def test_points_that_the_rule_does_not_fit_are_refused_before_anything_runs(changes, message):
    rule = Constraint.from_predicate(next_one, [range(3)] * 2)
    with pytest.raises(UserError, match=message):
        prepare(parse(override(preset("toy"), list(OWN))), data=replace(own_data(), **changes), constraint=rule)


def test_a_batch_that_would_cut_a_group_is_refused_before_anything_runs():
    with pytest.raises(UserError, match=r"over 3 variables .* must be a multiple of 3, got 32; use 30"):
        digits("stage2.batch_size=32")
    with pytest.raises(UserError, match=r"needs a constraint: see constraint\.rule"):
        digits("constraint.rule=null")
    with pytest.raises(UserError, match=r"10 symbols .*, got \[4, 4, 4\] values; see model\.clusters"):
        prepare(
            parse(override(preset("digits-addition"), [*SMALL])),
            constraint=Constraint.from_predicate(lambda a, b, c: a + b == c, [range(4)] * 3),
        )


@pytest.mark.parametrize(
    ("method", "terms", "restarts"),
    [
        ("gedi", {"agreement", "balance", "constraint"}, True),
        ("no-constraint", {"agreement", "balance"}, False),
        ("logic-alone", {"constraint"}, False),
        ("supervised", {"supervised"}, False),
    ],
)
def test_each_method_trains_its_terms_and_is_held_against_the_rule(method, terms, restarts):
    run = digits(f"method={method}")
    (leg,) = run.trainer.course.legs
    assert set(leg.stage.weights(progress=1.0)) == terms
    assert ("align" in leg.stage.moves) == restarts
    assert (run.trainer.labels is not None) == (method == "supervised")
    assert run.constraint is not None  # for the figures
    if method == "logic-alone":
        term = leg.stage.terms["constraint"]
        assert (term.weight, term.start, term.ramp) == (1.0, 0.0, 0.0)
    train(run)
    assert torch.isfinite(weights(run)).all()


def test_the_paper_preset_gives_each_method_its_terms():
    def terms(method):
        settings = [f"method={method}", "data.name=digits-addition", "density.buffer=60", "model.width=4"]
        run = prepare(parse(override(preset("addition-100-paper"), settings)))
        return {leg.stage.name: set(leg.stage.weights(progress=1.0)) for leg in run.trainer.course.legs}

    full = {"generative", "negative_free", "swapped", "swapped_walk", "constraint"}
    assert terms("gedi") == {"stage1": {"generative"}, "stage2": full}
    assert terms("no-constraint") == {"stage1": {"generative"}, "stage2": full - {"constraint"}}
    assert terms("logic-alone") == {"stage2": {"constraint"}}
    assert terms("supervised") == {"stage2": {"supervised"}}
    assert terms("swav") == {"stage2": {"swapped"}}
    assert terms("jem") == {"stage1": {"generative"}, "stage2": {"generative"}}


def test_a_baseline_that_has_nothing_to_train_says_so():
    """The recipe has no energy, so JEM would be nothing."""
    with pytest.raises(UserError, match=r"jem leaves this preset nothing to train.* at least one term of positive"):
        digits("method=jem")


def test_swav_brings_its_own_term_to_a_recipe_without_it():
    assert set(digits("method=swav").trainer.course.legs[0].stage.terms) == {"swapped"}


def test_labels_take_no_part():
    settings = parse(override(preset("digits-addition"), list(SMALL)))
    data = load_data(settings, Streams(0))
    wrong = replace(data, train_labels=data.train_labels.flip(0), test_labels=data.test_labels.flip(0))
    runs = [prepare(settings, data=d) for d in (data, wrong, replace(data, train_labels=None, test_labels=None))]
    for run in runs:
        train(run)
    assert torch.equal(weights(runs[0]), weights(runs[1]))
    assert torch.equal(weights(runs[0]), weights(runs[2]))
    with pytest.raises(UserError, match="method supervised needs labelled training data"):
        prepare(
            settings.model_copy(update={"method": "supervised"}),
            data=replace(data, train_labels=None, test_labels=None),
        )


def test_images_come_as_the_config_asks():
    plain, changed = digits(), digits("data.pad=2", "data.channels=3", "data.mean=0.1", "data.std=0.5")
    assert changed.data.train.shape == (60, 3, 12, 12)
    inner = changed.data.train[:][:, 1, 2:-2, 2:-2] * 0.5 + 0.1
    torch.testing.assert_close(inner, plain.data.train[:][:, 0])
    torch.testing.assert_close(changed.data.test[:1][0, :, 0, 0], torch.full((3,), -0.2))
    held_out = digits("data.validation=10", "data.pad=1").data.validation
    assert held_out.shape == (30, 1, 10, 10)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        (
            "digits-addition",
            ["model.encoder=mlp"],
            r"encoder=mlp takes rows of a table, got points of shape \(1, 8, 8\)",
        ),
        ("circles", ["model.encoder=conv"], r"encoder=conv takes images, got points of shape \(2,\); use mlp"),
    ],
)
def test_an_encoder_that_does_not_fit_the_points_is_refused(name, settings, message):
    with pytest.raises(UserError, match=message):
        prepare(parse(override(preset(name), settings)))


def as_options(settings):
    return [part for setting in settings for part in ("--set", setting)]


def test_a_run_of_digits_leaves_everything(gedi, tmp_path):
    code, out, err = gedi(
        *("run", "digits-addition", "--seed", 3, "--out", tmp_path / "run"), *as_options([*SMALL, "data.validation=10"])
    )
    assert code == 0, err
    assert err == ""
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    metrics = results["metrics"]
    assert {
        *("accuracy", "accuracy_matched", "nmi", "ami", "ari", "constraint_loss", "constraint_satisfied"),
        *("validation_constraint_loss", "validation_constraint_satisfied", "clusters_used"),
        *("name_confidence", "names_open"),
    } <= set(metrics)
    assert 0 <= metrics["name_confidence"] <= 1
    checked = results["verdict"]["checks"]["names_open"]
    assert checked["word"] == ("trusted" if metrics["names_open"] == 0 else "doubtful")
    assert 0 <= metrics["accuracy"] <= metrics["accuracy_matched"] <= 1
    assert metrics["constraint_loss"] > 0
    assert results["source"] == "digits, as scikit-learn ships them"
    assert results["data"] == "digits-addition"
    assert results["density"] is None
    assert (tmp_path / "run" / "figures" / "symbols.png").stat().st_size > 5000
    page = (tmp_path / "run" / "report.html").read_text()
    assert "constraint_loss" in page
    assert page.count("data:image/png;base64") == 2
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines if "event" in line] == [2, 3, 4]
    assert {"constraint_before", "constraint_after", "prototypes"} <= set(
        next(line for line in lines if "event" in line)
    )
    assert [line["iteration"] for line in lines if "event" not in line] == [2, 4, 6]
    assert "accuracy" in out
    code, out, _ = gedi("report", tmp_path / "run")
    assert code == 0


def test_figures_of_the_results_are_those_of_the_saved_model(gedi, tmp_path):
    gedi("run", "digits-addition", "--out", tmp_path / "run", *as_options(SMALL))
    run = RunDirectory.open(tmp_path / "run")
    model = run.fitted().model
    data = load_data(run.config(), Streams(0))
    with torch.no_grad():
        said = model(data.test[:]).logits.argmax(dim=1)
        log_p = model(data.train[:]).logits.double().log_softmax(dim=1).view(-1, 3, 10)
    metrics = run.results()["metrics"]
    assert metrics["accuracy"] == pytest.approx((said == data.test_labels).float().mean().item())
    a, b, c = log_p.exp().unbind(dim=1)
    mass = sum(a[:, i] * b[:, j] * c[:, i + j] for i in range(10) for j in range(10 - i))
    assert metrics["constraint_loss"] == pytest.approx(-mass.log().mean().item(), rel=1e-5)
    a, b, c = log_p.argmax(dim=2).unbind(dim=1)
    assert metrics["constraint_satisfied"] == pytest.approx((a + b == c).float().mean().item())


def test_a_stopped_run_with_alignments_resumes_to_the_same_bytes(gedi, tmp_path, monkeypatch):
    gedi("run", "digits-addition", "--out", tmp_path / "whole", *as_options(SMALL))
    stop = RunDirectory.append_metrics

    def stop_at_the_second_alignment(self, record):
        stop(self, record)
        if record.get("event") == "align" and record["iteration"] == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("gedi.fitting.CHECKPOINT_EVERY", 1)
    monkeypatch.setattr(RunDirectory, "append_metrics", stop_at_the_second_alignment)
    assert gedi("run", "digits-addition", "--out", tmp_path / "cut", *as_options(SMALL))[0] == 130
    monkeypatch.setattr(RunDirectory, "append_metrics", stop)
    code, _, err = gedi("run", "digits-addition", "--out", tmp_path / "cut", "--resume", *as_options(SMALL))
    assert code == 0, err
    whole, cut = (tmp_path / name for name in ("whole", "cut"))
    assert (whole / "model/model.safetensors").read_bytes() == (cut / "model/model.safetensors").read_bytes()
    assert (whole / "metrics.jsonl").read_text() == (cut / "metrics.jsonl").read_text()


def test_a_diverged_run_with_alignments_ends_with_code_3(gedi, tmp_path):
    hostile = ("stage2.learning_rate=1e30", "log_every=100")
    code, _, err = gedi("run", "digits-addition", "--out", tmp_path / "run", *as_options([*SMALL, *hostile]))
    assert code == 3
    assert "diverged" in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("method", ["no-constraint", "logic-alone", "supervised"])
def test_the_other_methods_run_and_report(gedi, tmp_path, method):
    code, _, err = gedi("run", "digits-addition", "--out", tmp_path / "run", *as_options([*SMALL, f"method={method}"]))
    assert code == 0, err
    metrics = RunDirectory.open(tmp_path / "run").results()["metrics"]
    assert {"accuracy", "accuracy_matched", "constraint_satisfied"} <= set(metrics)
    assert (tmp_path / "run" / "figures" / "symbols.png").is_file()


def test_the_progress_bar_takes_events():
    config = parse(override(preset("digits-addition"), list(SMALL)))
    stream = io.StringIO()
    stream.isatty = lambda: True
    with Progress(config, stream) as progress:
        event = {"event": "align", "constraint_before": 2.0, "constraint_after": 1.0, "prototypes": "renamed"}
        progress({"stage": "stage2", "iteration": 2, "restart": 0, **event})
        progress({"stage": "stage2", "iteration": 4, "restart": 0, "loss": 1.0, "balance": 2.3})
    assert "stage2" in stream.getvalue()


def test_a_report_takes_events_wherever_they_stand(gedi, tmp_path):
    gedi("run", "digits-addition", "--out", tmp_path / "run", *as_options(SMALL))
    run = RunDirectory.open(tmp_path / "run")
    lines = run.metrics()
    events = [line for line in lines if "event" in line]
    for records in (events, [*events, *lines], lines):
        run.write("metrics.jsonl", "".join(json.dumps(line) + "\n" for line in records))
        assert write_report(run).is_file()


TINY = ("data.name=digits-addition", *SMALL)
FEW = ("stage1.iterations=2", "stage1.batch_size=30")


@pytest.fixture
def tiny(monkeypatch):
    """The cells of the addition tables on the small digits, run in this process."""
    ran, tables = [], []

    def run_here(spec, cells, profile, out, jobs, data_dir, written, precision):
        for cell in cells:
            if not engine._finished(RunDirectory(out / "cells" / cell.folder)):
                small = Cell(cell.row, cell.column, cell.seed, cell.steps, (*FEW, *cell.settings, *TINY))
                engine.run_cell(small, profile, out, data_dir)
                ran.append(cell.folder)
                written()
                tables.append((out / "table.csv").read_text())

    monkeypatch.setattr(engine, "_run_missing", run_here)
    return ran, tables


def test_the_addition_table_is_written_as_it_goes_and_goes_on_where_it_was(tiny, tmp_path):
    ran, tables = tiny
    text = write_table("addition", profile="laptop", seeds=range(1), out=tmp_path)
    assert len(ran) == 18
    assert [len(t.splitlines()) for t in tables] == [2 + i for i in range(18)]  # a line more with every cell
    assert "0.98 ± 0.00" in text  # published, beside ours
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert [row["triplets"] for row in rows] == ["10000"] * 6 + ["1000"] * 6 + ["100"] * 6
    published = {"GEDI", "without constraint", "logic alone"}
    ours = {"supervised (upper bound)", "without the density", "noise as long as the walks"}
    assert {row["method"] for row in rows} == published | ours
    for row in rows:
        assert row["accuracy"]
        assert row["NMI"]
        assert bool(row["published accuracy"]) == (row["method"] in published)
    for name in ("addition-100", "addition-1000", "addition-10000"):
        assert (tmp_path / f"{name}.png").is_file()
    write_table("addition", profile="laptop", seeds=range(1), out=tmp_path)
    assert len(ran) == 18
    (tmp_path / "cells" / ran[5] / "results.json").unlink()  # a cell that was stopped
    write_table("addition", profile="laptop", seeds=range(1), out=tmp_path)
    assert ran[18:] == [ran[5]]


@pytest.mark.parametrize("name", ["addition", "addition-ablation"])
@pytest.mark.parametrize("profile", ["laptop", "paper"])
def test_every_cell_of_the_addition_tables_can_be_prepared(name, profile):
    """All but their data: the small digits stand in, and a small network."""
    stands_in = ["data.name=digits-addition", "data.triplets=60", "model.width=4"]
    for cell in TABLES[name].cells(range(1), profile):
        config = parse(override(preset(cell.row, profile), list(cell.settings)))
        few = ["density.buffer=60"] if config.density.kind == "energy" else []
        run = prepare(parse(override(preset(cell.row, profile), [*cell.settings, *stands_in, *few])))
        assert run.trainer.course.legs
        triplets = config.data.triplets
        for stage in config.stages.values():
            assert stage.iterations == 0 or stage.batch_size % 3 == 0
            assert stage.iterations == 0 or stage.batch_size <= 3 * triplets


def test_each_line_of_the_ablation_differs_from_the_recipe():
    configs = [
        parse(override(preset(cell.row), list(cell.settings)))
        for cell in TABLES["addition-ablation"].cells(range(1), "laptop")
    ]
    texts = {yaml.safe_dump(config.model_dump(mode="json")) for config in configs}
    assert len(texts) == len(configs)
