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
