"""The image tables: the paper's figures, cells that tables share, and what is measured of finished runs."""

import csv
import json
import re
from concurrent.futures import Future
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from gedi.config import override, parse
from gedi.densities import energy
from gedi.directory import RunDirectory
from gedi.errors import UserError
from gedi.fitting import prepare
from gedi.methods import METHODS as KNOWN
from gedi.presets import preset
from gedi.tables import TABLES, Cell, engine, images, write_table

SIX = ("JEM", "Barlow", "SwAV", "no NF, 2 enc.", "no NF", "GEDI")
#: The paper's tables, as printed.
NMI_REAL = {"svhn": (0.04, 0.20, 0.24, 0.39), "cifar10": (0.04, 0.22, 0.39, 0.41), "cifar100": (0.05, 0.46, 0.69, 0.72)}
ABLATION_REAL = {"svhn": (0.21, 0.31, 0.39), "cifar10": (0.38, 0.40, 0.41), "cifar100": (0.75, 0.76, 0.72)}
ACC = {
    "svhn": (0.20, 0.84, 0.44, 0.29, 0.52, 0.56),
    "cifar10": (0.23, 0.63, 0.53, 0.48, 0.50, 0.51),
    "cifar100": (0.03, 0.35, 0.14, 0.12, 0.15, 0.15),
}
FID = {
    "svhn": (166, 454, 489, 158, 173, 208),
    "cifar10": (250, 413, 430, 209, 265, 236),
    "cifar100": (240, 374, 399, 210, 237, 244),
}
OOD = {
    "svhn": {"cifar10": (0.75, 0.43, 0.21, 0.76, 0.97, 0.94), "cifar100": (0.75, 0.5, 0.28, 0.75, 0.94, 0.93)},
    "cifar10": {"svhn": (0.43, 0.31, 0.24, 0.43, 0.31, 0.31), "cifar100": (0.54, 0.56, 0.51, 0.53, 0.53, 0.55)},
    "cifar100": {"svhn": (0.48, 0.43, 0.50, 0.47, 0.32, 0.38), "cifar10": (0.48, 0.42, 0.46, 0.47, 0.49, 0.50)},
}


def by_method(table, methods):
    return {(row, method): x for row, values in table.items() for method, x in zip(methods, values, strict=True)}


def test_published_nmi_is_the_papers():
    main, ablation = by_method(NMI_REAL, ("JEM", "Barlow", "SwAV", "GEDI")), by_method(ABLATION_REAL, SIX[3:])
    assert main | ablation == images.PUBLISHED_NMI
    assert all(main[key] == ablation[key] for key in main.keys() & ablation.keys())


def test_published_probes_and_fids_are_the_papers():
    assert by_method(ACC, SIX) == images.PUBLISHED_PROBE
    assert by_method(FID, SIX) == images.PUBLISHED_FID


def test_published_aurocs_are_the_papers():
    assert {(row, strange): by_method({row: values}, SIX) for row, pairs in OOD.items()
            for strange, values in pairs.items()} == images.PUBLISHED_OOD  # fmt: skip


def group(**metrics):
    return engine.Group([{"metrics": metrics, "seconds": {"total": 1.0}, "evaluation": {}}])


@pytest.mark.parametrize("row", images.ROWS)
def test_published_figures_stand_in_their_lines(row):
    """Of all methods and rows, and nowhere else."""
    for column in SIX:
        shown = images._probe_line(row, column, None, group())["published linear probe"]
        assert shown == (f"{dict(zip(SIX, ACC[row], strict=True))[column]:g}" if row in ACC else "")
        shown = images._fid_line(row, column, None, group())["published FID"]
        assert shown == (str(dict(zip(SIX, FID[row], strict=True))[column]) if row in FID else "")
        line = images._ood_line(row, column, None, group())
        for strange in ("svhn", "cifar10", "cifar100", "mnist", "noise"):
            values = OOD.get(row, {}).get(strange)
            wanted = "" if values is None else f"{dict(zip(SIX, values, strict=True))[column]:g}"
            assert line[f"{strange}: published"] == wanted


@pytest.mark.parametrize("row", images.ROWS)
def test_the_inflated_nmi_stands_only_beside_a_published_one(row):
    line = images._line(row, "GEDI", None, group(nmi=0.1, nmi_batch64=0.4, nmi_batch64_chance=0.31))
    wanted = ("0.400", "0.310") if row in NMI_REAL else ("", "")
    assert (line["NMI, batches of 64"], line["its chance level"]) == wanted
    assert bool(line["published NMI"]) == (row in NMI_REAL)
    assert line["NMI"] == "0.100"
    assert images._line(row, "GEDI", None, engine.Group([{"diverged": "at once"}]))["NMI"] == "diverged"


def test_an_evaluation_is_averaged_over_the_runs_that_have_it():
    runs = [{"metrics": {}, "evaluation": {"ood": {"noise": {"a": x}}}} for x in (0.5, 0.7)]
    several = engine.Group([*runs, {"metrics": {}, "evaluation": {"ood": "none"}}, {"diverged": "at once"}])
    assert several.measured("ood", "noise", "a") == "0.600 ± 0.141 (2 of 3 runs)"  # sqrt(2) * 0.1
    assert engine.Group([*runs, {"diverged": "at once"}]).measured("ood", "noise", "a") == "0.600 ± 0.141"
    assert several.measured("ood", "noise", "b") == ""
    assert several.measured("ood", "noise") == ""
    assert engine.Group(runs[:1]).measured("ood", "noise", "a") == "0.500"


IMAGE_TABLES = ("images", "image-ablation", "probe", "fid", "ood")


@pytest.mark.parametrize("profile", ["laptop", "paper"])
def test_one_training_serves_every_image_table(profile):
    """Where two tables name one folder they mean one run; all tables look in the same place."""
    meant = {}
    for name in IMAGE_TABLES:
        cells = TABLES[name].cells(range(3), profile)
        assert TABLES[name].folder == "images"
        assert len({cell.folder for cell in cells}) == len(cells)
        for cell in cells:
            assert meant.setdefault(cell.folder, cell) == cell
    methods = [cell for cell in TABLES["images"].cells(range(3), profile) if cell.column in images.METHODS]
    trained = {cell.folder for cell in methods if cell.row in images.ROWS}
    for name in ("probe", "ood"):
        assert trained < {cell.folder for cell in TABLES[name].cells(range(3), profile)}
    controls = {"clusters alone", "noise of the same length", "the paper's walk"}
    controls |= {"one encoder, density first", "one encoder, density beside"}
    controls = controls if profile == "laptop" else set()
    assert {c.column for c in TABLES["images"].cells(range(1), profile)} == {"JEM", "Barlow", "SwAV", "GEDI"} | controls
    assert {cell.column for cell in TABLES["probe"].cells(range(1), profile)} == set(SIX)
    assert {cell.column for cell in TABLES["ood"].cells(range(1), profile)} == set(SIX)
    assert {cell.column for cell in TABLES["fid"].cells(range(1), profile)} == set(SIX) - {"Barlow", "SwAV"}
    rows = {"digits", *images.ROWS} if profile == "laptop" else set(images.ROWS)
    assert {cell.row for cell in TABLES["images"].cells(range(1), profile)} == rows


def test_the_ablation_of_the_paper_is_its_own_and_that_of_a_laptop_asks_what_the_density_adds():
    paper = TABLES["image-ablation"].cells(range(2), "paper")
    assert {(cell.row, cell.column) for cell in paper} == by_method(ABLATION_REAL, SIX[3:]).keys()
    assert {parse(override(preset(c.row, "paper"), list(c.settings))).method for c in paper} == {
        "gedi", "no-nf", "no-nf-2-enc",
    }  # fmt: skip
    laptop = TABLES["image-ablation"].cells(range(1), "laptop")
    assert {c.preset for c in laptop} == {"mnist-energy"}
    configs = {engine._config(c, "laptop").model_dump_json() for c in laptop}
    assert len(configs) == len(laptop) == len(images.REGIMES) * len(images.CONTRIBUTIONS) + 3
    walks = {c.column: engine._config(c, "laptop").walk for c in laptop}
    for regime in images.REGIMES:  # every walk is used alike
        walk, paper_walk, control = (
            walks[f"{regime}: {x}"] for x in ("a walk that relaxes", "the paper's walk", "control, a step of noise")
        )
        assert walk.composed == paper_walk.composed == control.composed == True  # noqa: E712
        assert walk.refresh == paper_walk.refresh == control.refresh
        assert (control.energy, paper_walk.relax, walk.relax > 0) == ("radial", 0, True)


@pytest.mark.parametrize("profile", ["laptop", "paper"])
def test_every_method_named_is_known_and_every_cell_parses(profile):
    for name in IMAGE_TABLES:
        for cell in TABLES[name].cells(range(1), profile):
            assert engine._config(cell, profile).method in KNOWN


def test_every_cell_of_the_laptops_ablation_can_be_prepared():
    """On the small digits, in place of MNIST."""
    for cell in TABLES["image-ablation"].cells(range(1), "laptop"):
        config = parse(override(preset(cell.preset), [*cell.settings, "data.name=digits", "density.buffer=32"]))
        assert prepare(config).trainer.course.legs


def test_what_is_measured_depends_on_the_profile_and_the_data():
    cell = Cell("svhn", "GEDI", 0)
    measured = {name: TABLES[name].measure for name in ("probe", "fid", "ood")}
    assert TABLES["images"].measure is None
    assert measured["probe"](cell, "paper") == {"parts": ("probe",), "recipe": "sgd", "samples": 5000}
    assert measured["probe"](cell, "laptop")["recipe"] == "lbfgs"
    assert measured["ood"](cell, "paper")["against"] == ("cifar10", "cifar100", "noise")
    for name, measure in measured.items():
        assert measure(cell, "laptop")["parts"] == (name,)
        assert measure(cell, "laptop")["limit"] == 5000
        assert "limit" not in measure(cell, "paper")
    assert all(row not in images.STRANGE[row] for row in images.ROWS)
    assert all({strange for pair, strange in images.PUBLISHED_OOD if pair == row} <= set(images.STRANGE[row])
               for row in OOD)  # fmt: skip


CELLS = TABLES["probe"].cells(range(2), "laptop")


def chosen(*only):
    return {(cell.row, cell.column) for cell in engine._chosen(CELLS, only)}


def test_only_names_rows_or_methods_or_both():
    everything = {(row, column) for row in images.ROWS for column in SIX}
    assert chosen() == everything
    assert chosen("mnist", "svhn") == {(row, c) for row, c in everything if row in ("mnist", "svhn")}
    assert chosen("GEDI") == {(row, "GEDI") for row in images.ROWS}
    assert chosen("mnist", "GEDI", "no NF, 2 enc.") == {("mnist", "GEDI"), ("mnist", "no NF, 2 enc.")}
    assert len(engine._chosen(CELLS, ["mnist", "GEDI"])) == 2  # every seed
    with pytest.raises(UserError, match="unknown row or method of this table 'minst': did you mean 'mnist'"):
        chosen("GEDI", "minst")


def test_a_cell_is_finished_when_it_has_run_and_was_measured(tmp_path):
    run, needs = RunDirectory(tmp_path), {"parts": ("probe", "ood"), "against": ("noise", "svhn"), "limit": 5}
    assert not engine._finished(run)
    run.write("results.json", "{}")
    assert engine._finished(run)
    assert engine._finished(run, {})
    assert not engine._finished(run, needs)
    run.write("evaluation.json", json.dumps({"probe": {}, "ood": {"noise": {}}}))
    assert engine._finished(run, {"parts": ("probe",)})
    assert engine._finished(run, {"parts": ("ood",), "against": ("noise",)})
    assert not engine._finished(run, needs)
    run.write("evaluation.json", json.dumps({"probe": {}, "ood": {"noise": {}, "svhn": {}}}))
    assert engine._finished(run, needs)
    (tmp_path / "evaluation.json").unlink()
    (tmp_path / "results.json").unlink()
    run.write("diverged.json", json.dumps({"diverged": "at once"}))
    assert engine._finished(run, needs)  # nothing more can come of it
    assert engine._result(run) == {"diverged": "at once"}


TINY = (
    "data.name=digits", "data.limit=100", "model.width=4", "model.latent=16", "log_every=2", "augment.shift=0.7",
    "stage1.iterations=2", "stage1.batch_size=20", "stage2.iterations=3", "stage2.batch_size=64", "walk.steps=2",
)  # fmt: skip
TINY_DENSITY = {"jem": ("density.buffer=64", "density.chains=16", "density.steps=2"), "gedi": ("density.features=4",)}


class Here:
    """In place of other processes: work is done when it is handed over."""

    def __init__(self, jobs, mp_context):
        assert jobs >= 1

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def submit(self, function, *args):
        future = Future()
        future.set_result(function(*args))
        return future


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """MNIST's cells on the small digits, tiny, in this process; other data sets are not on this machine."""
    said = {"trained": [], "evaluated": []}
    train, evaluate = engine._train_cell, engine.evaluate_run

    def train_small(cell, profile, path, data_dir, precision):
        said["trained"].append(cell.folder)
        small = (*TINY, *TINY_DENSITY.get(cell.column.lower(), ())) if cell.row == "mnist" else ()
        return train(replace(cell, settings=(*cell.settings, *small)), profile, path, data_dir, precision)

    def evaluate_small(directory, **needs):
        said["evaluated"].append((directory.path.name, needs["parts"]))
        return evaluate(directory, **needs | {"limit": 40, "samples": 5})

    monkeypatch.setattr(engine, "_train_cell", train_small)
    monkeypatch.setattr(engine, "evaluate_run", evaluate_small)
    monkeypatch.setattr(engine, "ProcessPoolExecutor", Here)
    monkeypatch.setattr(energy, "_FRESH_STEPS", 5)
    monkeypatch.setattr("pooch.os_cache", lambda _: tmp_path / "cache")
    monkeypatch.delenv("GEDI_DATA", raising=False)
    monkeypatch.setitem(images.STRANGE, "mnist", ("digits", "noise"))
    return said


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def links(text):
    return re.findall(r"!\[.*\]\((.*)\)", text)


def test_four_tables_from_one_folder_train_each_cell_once(tiny, tmp_path, capsys):
    out = tmp_path / "tables"

    def table(name, *only):
        tiny["trained"].clear()
        tiny["evaluated"].clear()
        return write_table(name, profile="laptop", seeds=range(1), out=out, jobs=1, only=["mnist", *only])

    text = table("images", "SwAV", "GEDI")
    assert len(tiny["trained"]) == 2
    assert tiny["evaluated"] == []
    assert [(row["data"], row["method"]) for row in rows_of(out / "images.csv")] == [
        ("mnist", "SwAV"),
        ("mnist", "GEDI"),
    ]
    assert "NMI, batches of 64" not in text  # nothing published of MNIST
    assert {"NMI", "AMI", "ARI", "accuracy", "energy gap"} <= rows_of(out / "images.csv")[0].keys()
    assert set(links(text)) == {f"mnist/{name}.png" for name in ("symbols", "samples", "walks")}
    assert (out / "images.md").read_text() == text
    assert "NMI 0." in capsys.readouterr().err

    text = table("probe", "SwAV", "JEM")
    assert tiny["trained"] == ["mnist_jem_T_seed0"]  # the other is there
    assert sorted(tiny["evaluated"]) == [("mnist_jem_T_seed0", ("probe",)), ("mnist_swav_T_seed0", ("probe",))]
    assert all(float(row["linear probe"]) > 0 for row in rows_of(out / "probe.csv"))
    table("probe", "SwAV", "JEM")
    assert tiny == {"trained": [], "evaluated": []}  # gone on with, not measured again

    text = table("fid", "JEM", "GEDI")
    assert tiny["trained"] == []
    row = rows_of(out / "fid.csv")[0]
    assert row["network"]
    assert any(name.startswith("fid") and name.endswith(", fresh chains") for name in row)

    text = table("ood", "SwAV", "GEDI", "JEM")
    assert tiny["trained"] == []
    found = {row["method"]: row for row in rows_of(out / "ood.csv")}
    assert 0 <= float(found["GEDI"]["noise: score norm"]) <= 1
    assert found["SwAV"]["noise: score norm"] == ""  # no density
    assert found["SwAV"]["noise: max probability"]
    assert found["JEM"]["noise: max probability"] == ""  # no clusters
    assert set(links(text)) == {"energies-mnist-gedi.png", "energies-mnist-jem.png"}
    assert {path.name for path in out.glob("*.md")} == {"images.md", "probe.md", "fid.md", "ood.md"}
    for name in ("images", "fid", "ood"):
        for link in links((out / f"{name}.md").read_text()):
            assert " " not in link  # Markdown would end it there
            assert (out / link).is_file()

    tiny["trained"].clear()
    (out / "cells" / "mnist_gedi_T_seed0" / "evaluation.json").unlink()  # a cell that was stopped before its figures
    table("ood", "GEDI", "SwAV")
    assert tiny == {"trained": [], "evaluated": [("mnist_gedi_T_seed0", ("ood",))]}


def test_data_that_are_not_here_do_not_stop_the_others(tiny, tmp_path, capsys):
    only = ["fashion-mnist", "mnist", "SwAV"]
    write_table("images", profile="laptop", seeds=range(1), out=tmp_path / "out", jobs=1, data_dir=tmp_path, only=only)
    err = " ".join(capsys.readouterr().err.split())
    assert "fashion-mnist_swav_T_seed0: not run: " in err
    assert "gedi data get fashion-mnist" in err
    assert [row["data"] for row in rows_of(tmp_path / "out" / "images.csv")] == ["mnist"]
    assert not (tmp_path / "out" / "cells" / "fashion-mnist_swav_T_seed0").exists()


def test_strange_data_that_are_not_here_do_not_stop_the_others(tiny, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(images.STRANGE, "mnist", ("noise", "svhn"))
    text = write_table("ood", profile="laptop", seeds=range(1), out=tmp_path / "out", jobs=1, only=["mnist", "SwAV"])
    err = " ".join(capsys.readouterr().err.split())
    assert "mnist_swav_T_seed0: not measured: " in err
    assert "gedi data get svhn" in err
    assert text == ""  # no line is done
    assert tiny["trained"] == ["mnist_swav_T_seed0"]


def test_energies_of_every_method_are_drawn_under_names_that_make_links(tmp_path):
    done = {}
    results = {"preset": "svhn", "method": "gedi", "seed": 3, "data": "svhn", "metrics": {}, "density": None}
    results |= {"restarts": {"selection_losses": [], "chosen": None}, "seconds": {}, "versions": {}}
    for column in (*SIX, "JEM"):
        cell = Cell("svhn", column, 3)
        run = done[cell] = RunDirectory(tmp_path / cell.folder)
        run.write("results.json", json.dumps(results))
        if column not in ("SwAV", "Barlow"):  # which have no energy
            run.write("evaluation.json", json.dumps({"ood": {"cifar10": {"auroc_log_density": 0.5}}}))
            (run.path / "model").mkdir(exist_ok=True)
            save_file(
                {"cifar10": torch.randn(50), "svhn": torch.randn(50)}, run.path / "model" / "energies.safetensors"
            )
    drawn = images._draw_energies(tmp_path, done | {Cell("svhn", "GEDI", 4): RunDirectory(tmp_path / "later")})
    assert [path.name for path in drawn] == [
        f"energies-svhn-{method}.png" for method in ("jem", "no-nf-2-enc", "no-nf", "gedi")
    ]
    assert all(path.is_file() for path in drawn)


def test_lines_with_and_without_figures_stand_in_one_table():
    """Runs that diverged have no FID, and a line without it must not take the column from the others."""
    fid = {"network": "pixels", "fresh": {"fid_pixels": 2.0, "fid_pixels_samples": 5, "precision": 0.5}}
    good = {"metrics": {"nmi": 0.1}, "seconds": {"total": 1.0}, "evaluation": {"fid": fid}}
    cells = [Cell("mnist", column, 0) for column in ("GEDI", "JEM")]
    for results in ([good, {"diverged": "at once"}], [{"diverged": "at once"}, good]):
        rows = engine._rows(TABLES["fid"], dict(zip(cells, results, strict=True)))
        assert sorted(row["fid_pixels, fresh chains"] for row in rows) == ["", "2.000"]
        assert all("samples" not in name for name in rows[0])
        assert rows[0].keys() == rows[1].keys()
        assert "published FID" not in rows[0]  # an empty column is left out
