"""Tables: their cells, what they write, and that finished cells are not run again."""

import csv
import json
from pathlib import Path

import pytest

from gedi.config import override, parse
from gedi.directory import RunDirectory
from gedi.errors import UserError
from gedi.presets import preset
from gedi.tables import TABLES, Cell, engine, toy, write_table

TINY = (
    "data.n_train=300", "data.n_test=100", "stage1.iterations=10", "stage2.iterations=10", "sampling.buffer=500",
    "stage1.batch_size=50", "stage2.batch_size=50", "n_init=1",
)  # fmt: skip


@pytest.fixture
def tiny(monkeypatch):
    """The same cells, made tiny, run in this process."""
    ran = []

    def run_here(spec, cells, profile, out, jobs, data_dir=None, written=lambda: None, precision="32-true"):
        for cell in cells:
            if not engine._finished(RunDirectory(out / "cells" / cell.folder)):
                steps = () if cell.steps else ("walk.steps=3",)
                small = Cell(cell.row, cell.column, cell.seed, cell.steps, (*cell.settings, *TINY, *steps))
                engine.run_cell(small, profile, out, data_dir, precision=precision)
                ran.append(cell.folder)
                written()

    monkeypatch.setattr(engine, "_run_missing", run_here)
    return ran


def test_the_toy_table_has_the_papers_columns_and_the_control():
    cells = TABLES["toy"].cells(range(5), "laptop")
    assert len(cells) == 2 * 4 * 5
    assert {cell.column for cell in cells} == {"JEM", "SwAV", "GEDI", "control: radial walk"}


def test_the_ablation_has_four_variants_and_five_lengths():
    walked = [cell for cell in TABLES["toy-ablation"].cells(range(5), "laptop") if cell.steps is not None]
    assert toy.T_VALUES == (1, 2, 5, 8, 10)
    assert len(walked) == 2 * len(toy.VARIANTS) * 5 * 5


def test_the_addition_table_has_the_papers_sizes_and_methods():
    cells = TABLES["addition"].cells(range(5), "laptop")
    assert len(cells) == 3 * 6 * 5
    assert {cell.row for cell in cells} == {"addition-100", "addition-1000", "addition-10000"}
    methods = {parse(override(preset(cell.row), list(cell.settings))).method for cell in cells}
    assert methods == {"gedi", "no-constraint", "logic-alone", "supervised"}
    assert cells[0].row == "addition-10000"  # the long ones first


@pytest.mark.parametrize("name", sorted(TABLES))
@pytest.mark.parametrize("profile", ["laptop", "paper"])
def test_every_cell_of_every_table_is_a_valid_run_of_its_own(name, profile):
    if name in ("toy-shapes", "addition-walks", "family", "rsbench") and profile == "paper":
        pytest.skip("the paper has no such shapes, walks, pairs and tasks")
    cells = TABLES[name].cells(range(2), profile)
    assert len({cell.folder for cell in cells}) == len(cells)
    for cell in cells:
        parse(override(preset(cell.preset or cell.row, profile), list(cell.settings)))


@pytest.mark.parametrize("profile", ["laptop", "paper"])
def test_a_table_is_written_and_goes_on_where_it_was(tiny, tmp_path, profile):
    text = write_table("toy", profile=profile, seeds=range(1), out=tmp_path)
    assert len(tiny) == 8
    assert "0.98 ± 0.02" in text  # published, beside ours
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert [row["method"] for row in rows[:4]] == ["JEM", "SwAV", "GEDI", "control: radial walk"]
    assert all(row["NMI"] for row in rows)
    assert (tmp_path / "labels.png").is_file()
    assert (tmp_path / "landscape.png").is_file()
    write_table("toy", profile=profile, seeds=range(1), out=tmp_path)
    assert len(tiny) == 8
    (tmp_path / "cells" / tiny[3] / "results.json").unlink()  # a cell that was stopped
    write_table("toy", profile=profile, seeds=range(1), out=tmp_path)
    assert tiny[8:] == [tiny[3]]


def test_what_is_done_is_written_and_nothing_run(tiny, tmp_path):
    assert write_table("toy", profile="laptop", seeds=range(1), out=tmp_path, done=True) == ""
    write_table("toy", profile="laptop", seeds=range(1), out=tmp_path, only=["moons", "SwAV"])
    assert len(tiny) == 1
    text = write_table("toy", profile="laptop", seeds=range(1), out=tmp_path, done=True)
    assert len(tiny) == 1
    assert text.count("| moons |") == 1
    assert "circles" not in text
    with pytest.raises(UserError, match="table outliers keeps no runs"):
        write_table("outliers", profile="laptop", seeds=range(1), out=tmp_path, done=True)


def test_every_cell_of_the_family_is_a_length_of_its_own_and_one_try():
    cells = TABLES["family"].cells(range(1), "laptop")
    for cell in (cell for cell in cells if cell.row == "moons"):
        config = parse(override(preset("moons"), list(cell.settings)))
        assert config.n_init == 1, cell.column
        assert config.stages["stage2"].iterations == 200, cell.column
        assert config.stages["stage1"].iterations in (0, 600, 1500), cell.column


def test_the_ablation_draws_its_curves(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(toy, "T_VALUES", (2,))
    text = write_table("toy-ablation", profile="laptop", seeds=range(1), out=tmp_path)
    assert "no NF, 2 enc." in text
    assert (tmp_path / "ablation.png").is_file()
    assert (tmp_path / "nmi_against_T.png").is_file()


def test_a_cell_that_diverges_is_reported_and_not_hidden(tiny, tmp_path):
    cells = [Cell("circles", "GEDI", 0, None, ("stage1.learning_rate=1e30", "sampling.metropolis=false"))]
    engine._run_missing(TABLES["toy"], cells, "laptop", tmp_path, 1)
    result = engine._result(RunDirectory(tmp_path / "cells" / cells[0].folder))
    (row,) = engine._rows(TABLES["toy"], {cells[0]: result})
    assert row["NMI"] == "diverged"
    assert row["runs"] == "1, 1 diverged"


def test_profiles_do_not_mix_in_one_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_run_missing", lambda *args: None)
    write_table("toy", profile="laptop", seeds=range(1), out=tmp_path)
    with pytest.raises(UserError, match="holds the 'laptop' profile"):
        write_table("toy", profile="paper", seeds=range(1), out=tmp_path)


def test_precisions_do_not_mix_in_one_directory_and_each_run_says_its_own(tiny, tmp_path):
    some = {"profile": "laptop", "seeds": range(1), "only": ["moons", "SwAV"]}
    write_table("toy", out=tmp_path / "half", precision="bf16-mixed", **some)
    write_table("toy", out=tmp_path / "full", **some)
    said = {
        name: json.loads((tmp_path / name / "cells" / "moons_swav_T_seed0" / "results.json").read_text())["precision"]
        for name in ("half", "full")
    }
    assert said == {"half": "bf16-mixed", "full": "32-true"}
    with pytest.raises(UserError, match="holds the 'laptop bf16-mixed' profile"):
        write_table("toy", out=tmp_path / "half", **some)
    with pytest.raises(UserError, match="computed in one precision: leave out --precision"):
        write_table("outliers", out=tmp_path / "other", precision="bf16-mixed", **some)


def test_an_unknown_table_names_the_nearest(tmp_path):
    with pytest.raises(UserError, match="did you mean 'toy'"):
        write_table("toys", profile="laptop", seeds=range(1), out=tmp_path)


def test_missing_cells_are_run_by_another_process_and_the_table_is_written_after_each(tmp_path, capfd):
    cells = [Cell(row, "SwAV", 0, None, (*TINY, "walk.steps=3", "method=swav")) for row in toy.DATA]
    written = []

    def count():
        written.append(len(list(tmp_path.glob("cells/*/results.json"))))

    engine._run_missing(TABLES["toy"], cells, "laptop", tmp_path, 1, None, count)
    assert len(written) == 2
    assert written[-1] == 2
    assert all(engine._finished(RunDirectory(tmp_path / "cells" / cell.folder)) for cell in cells)
    assert "0 of 2 cells are done, 2 to run" in capfd.readouterr().err
    engine._run_missing(TABLES["toy"], cells, "laptop", tmp_path, 1, None, count)
    assert len(written) == 2
    assert "2 of 2 cells are done, 0 to run" in capfd.readouterr().err


def test_a_line_says_mean_and_spread_and_how_many_diverged():
    runs = [{"metrics": {"nmi": x}, "seconds": {"total": 10 * x}} for x in (0.5, 0.7)] + [{"diverged": "at once"}]
    group = engine.Group(runs)
    assert group.figure("nmi") == "0.600 ± 0.141"  # 0.1 * sqrt(2): two runs have one degree of freedom
    assert group.figure("kl") == ""
    assert engine.Group([{"metrics": {"nmi": 0.5}}]).figure("nmi") == "0.500"  # one run has no deviation
    assert group.seconds() == "6"
    assert group.processor_seconds() == ""  # runs of long ago do not say
    timed = [{"metrics": {}, "seconds": {"total": 9.0, "processor": x}} for x in (3.0, 5.0)]
    assert engine.Group([*timed, *runs]).processor_seconds() == "4"
    assert group.count() == "3, 1 diverged"
    assert group.share(lambda r: r["metrics"]["nmi"] > 0.6) == "1/2"
    assert group.share(lambda r: None) == ""
    assert engine.Group([{"diverged": "at once"}]).seconds() == ""


def test_a_table_of_its_own_folder_is_called_table_and_only_leaves_cells_out(tiny, tmp_path):
    write_table("toy", profile="laptop", seeds=range(1), out=tmp_path, only=["moons", "SwAV"])
    assert tiny == ["moons_swav_T_seed0"]
    assert {path.name for path in tmp_path.glob("*.*")} >= {"table.csv", "table.md", "profile.txt"}
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert [row["method"] for row in rows] == ["SwAV"]
    with pytest.raises(UserError, match="unknown row or method of this table 'mons': did you mean 'moons'"):
        write_table("toy", profile="laptop", seeds=range(1), out=tmp_path, only=["mons"])


@pytest.mark.parametrize("name", sorted(TABLES))
def test_tables_that_share_a_folder_say_so_and_look_there(name, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(engine, "write_table", lambda spec, name, *, out, **rest: asked.append(out) or "")
    write_table(name, profile="laptop", seeds=range(1))
    write_table(name, profile="laptop", seeds=range(1), out=tmp_path)
    assert asked == [Path("tables") / (TABLES[name].folder or name), tmp_path]
