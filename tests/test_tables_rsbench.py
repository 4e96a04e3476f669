"""Right answers by wrong symbols: the table's cells, its lines, and what the recipes learn."""

import pytest

from gedi.config import override, parse
from gedi.fitting import learn, prepare
from gedi.presets import preset
from gedi.tables import TABLES
from gedi.tables.rsbench import METHODS, TASKS
from gedi.tables.spec import Group

CELLS = TABLES["rsbench"].cells(range(1), "laptop")
TINY = ("model.width=4", "stage2.iterations=2", "stage2.moves.align.restarts=2")


@pytest.mark.parametrize(
    "cell", [cell for cell in CELLS if cell.row.startswith("digits")], ids=lambda cell: cell.folder
)
def test_every_cell_can_be_prepared(cell):
    config = parse(override(preset(cell.row), [*cell.settings, *TINY[:2]]))
    run = prepare(config)
    assert run.left_open is not None
    assert bool(run.few) == ("ten labels" in cell.column)
    assert sum(run.few.values()) in (0, 10)
    kinds = {term.kind for leg in run.trainer.course.legs for term in leg.stage.terms.values()}
    if "answers" in cell.column:
        assert kinds <= {"constraint", "labelled"}
        assert config.density.kind == "none"


def test_cells_of_mnist_have_settings_that_can_be_read():
    mnist = [cell for cell in CELLS if cell.row.startswith("mnist")]
    assert {cell.column for cell in mnist} > set(METHODS)
    for cell in mnist:
        config = parse(override(preset(cell.row), list(cell.settings)))
        assert config.data.name == cell.row
        assert config.stage2.batch_size % config.constraint.variables == 0
    assert {cell.row for cell in CELLS} == set(TASKS)


def test_a_line_says_what_was_told_before_training():
    told = {"maps": 36, "swaps": 1, "labels": 10}
    metrics = {"accuracy": 0.98, "answer_accuracy": 1.0, "concept_f1": 0.97}
    result = {"metrics": metrics, "rule": told, "seconds": {"total": 3.0}}
    line = TABLES["rsbench"].line("digits-even-odd", "GEDI, ten labels", None, Group([result, result]))
    assert (line["maps that fit"], line["exchanges"], line["labels"]) == ("36", "1", "10")
    assert line["concept accuracy"] == "0.980 ± 0.000"
    upper = TABLES["rsbench"].line("digits-even-odd", "all labels (upper bound)", None, Group([result]))
    assert upper["labels"] == "all"


@pytest.mark.slow
def test_clusters_mend_what_answers_alone_get_wrong():
    found = {}
    for name, method in (("clusters", "gedi"), ("answers", "logic-alone")):
        run = prepare(parse(override(preset("digits-half"), [f"method={method}", "seed=3"])))
        found[name] = learn(run).metrics
    assert found["clusters"]["accuracy"] > 0.95
    assert min(found[name]["answer_accuracy"] for name in found) > 0.9  # both give the right answers
    assert found["answers"]["accuracy"] < 0.7


@pytest.mark.slow
def test_ten_labels_choose_between_two_namings():
    labels = next(
        cell for cell in CELLS if cell.column == "GEDI, ten labels" and cell.row == "digits-even-odd"
    ).settings
    learnt = learn(prepare(parse(override(preset("digits-even-odd"), [*labels, "seed=3"]))))
    assert learnt.metrics["accuracy"] > 0.95
    assert learnt.fitted.verdict["word"] == "trusted"
    assert "Labels were used" in learnt.fitted.verdict["why"][-1]
