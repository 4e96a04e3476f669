"""What stands in examples/ runs, and does what it says."""

import json
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setenv("MPLBACKEND", "agg")


@pytest.mark.slow
def test_parts_in_a_loop_of_ones_own():
    from own_loop import train

    nmi, samples = train(steps=300)
    assert nmi > 0.9
    assert samples.shape == (200, 2)


def test_a_rule_helps_a_classifier():
    from rule_on_a_classifier import accuracies

    alone, with_rule = accuracies(steps=100)
    assert with_rule > alone + 0.1


@pytest.mark.slow
def test_an_encoder_of_ones_own():
    from own_encoder import fitted

    assert fitted(iterations=2).labels_.shape == (1797,)


def test_a_lightning_module_without_lightning():
    import lightning_module

    x = torch.cat([torch.randn(80, 2), torch.randn(80, 2) + 6])
    found = lightning_module.train(lightning_module.Clusters(2, 2), x, epochs=30)(x).view(2, 80)
    assert (found[0] == found[0, 0]).all()
    assert (found[1] == 1 - found[0, 0]).all()


def code(notebook):
    cells = json.loads(notebook.read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    held = {}
    exec(compile(code(notebook), notebook.name, "exec"), held)
    if "auroc" in held:
        assert held["auroc"] > 0.9
    if "rule" in held:
        assert (held["model"].labels_ == held["numbers"]).mean() > 0.95
    if "matplotlib" in sys.modules:
        import matplotlib.pyplot as plt

        plt.close("all")


def test_there_are_the_notebooks_promised():
    assert [path.stem for path in NOTEBOOKS] == ["outliers", "own_pictures", "own_table", "rule_instead_of_labels"]


def test_which_rule_names_which_symbols():
    from which_rule_names import answers, what_next

    found = answers()
    assert found["a + b is given"][:2] == (1, 0)
    assert found["|a - b| is given"] == (2, 1, (0,))
    assert found["a and b differ"][:2] == (720, 719)  # every permutation
    assert what_next("|a - b| is given")[-1].endswith("(1 left)")


def test_a_sudoku_mends_what_was_read_and_fills_the_blanks():
    from sudoku import solve

    alone, together, blanks = solve(puzzles=25)
    assert alone < 0.9
    assert together > alone + 0.05
    assert blanks > 0.8


def test_a_schedule_is_fair_and_the_best_that_is():
    import itertools

    from scheduling import PEOPLE, plans, wishes

    fair = [
        plan
        for plan in itertools.product(range(4), repeat=5)
        if set(plan) == set(range(4)) and max(map(plan.count, plan)) <= 2 and all(map(int.__ne__, plan, plan[1:]))
    ]
    liked = wishes()
    best = max(fair, key=lambda plan: sum(float(liked[day, who].log()) for day, who in enumerate(plan)))
    assert plans(1) == [tuple(PEOPLE[who] for who in best)]
    assert plans(1, x3=2)[0][2] == "Cleo"


def test_two_networks_in_one_program_learn_digits_and_colours():
    from two_domains import trained

    digit, colour = trained(steps=150)
    assert digit > 0.9
    assert colour > 0.9


@pytest.mark.slow
def test_a_program_of_deepproblog_trains_as_it_is():
    from deepproblog_program import trained

    fitted, data = trained(iterations=150)
    assert (fitted.predict(data.test.stored) == data.test_labels).float().mean() > 0.9
