"""The page on rows of a table: what the clusters are, in the units of the columns."""

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure

from gedi import GEDI
from gedi.report import row_figures
from gedi.report.row_figures import clusters_of_rows

TITLE = "What was put together"


@pytest.fixture
def texts(monkeypatch):
    """Everything written on the picture that is made."""
    made: list[Figure] = []
    save = row_figures.save
    monkeypatch.setattr(row_figures, "save", lambda figure, path: made.append(figure) or save(figure, path))

    def found():
        axes = made[-1].axes
        labels = [label.get_text() for ax in axes for label in (*ax.get_yticklabels(), *ax.get_xticklabels())]
        return [text.get_text() for ax in axes for text in ax.texts] + labels + [ax.get_title() for ax in axes]

    return found


def test_means_are_those_of_the_clusters_and_the_telling_column_comes_first(texts, tmp_path, g):
    found = torch.tensor([0] * 30 + [1] * 10)
    rows = torch.randn(40, 3, generator=g)
    rows[:, 1] = torch.where(found == 0, 250.0, -3.5)  # the only one that tells
    path = clusters_of_rows(rows - rows.mean(dim=0), rows, found, ["a", "b", "c"], tmp_path / "c.png")
    assert path.is_file()
    said = texts()
    assert said[:2] == ["250", "-3.5"]
    assert said[6] == "b"
    assert {"0\n75%", "1\n25%"} <= set(said)
    assert any("of how rows vary" in text for text in said)


@pytest.mark.parametrize("columns", [1, 3, 200])
def test_every_width_has_a_page(texts, tmp_path, columns):
    x = np.random.default_rng(0).normal(size=(60, columns))
    page = GEDI(2, iterations=2, random_state=0).fit(x).report(tmp_path / "page.html")
    assert TITLE in page.read_text()
    assert any("means in each cluster" in text for text in texts()) == (
        columns < 200
    )  # axes mean nothing by themselves


@pytest.mark.filterwarnings("ignore:column 'kind' is words")
def test_columns_are_called_as_the_frame_calls_them(texts, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"Größe": rng.normal(size=60), "width": rng.normal(size=60), "kind": ["a", "b"] * 30})
    GEDI(2, iterations=2, random_state=0).fit(frame).report(tmp_path / "page.html")
    assert {"Größe", "width", "kind=a", "kind=b"} <= set(texts())


@pytest.mark.parametrize("columns", [2, 3])
def test_an_encoder_of_ones_own_needs_not_be_given_for_a_page(tmp_path, columns):
    x = np.random.default_rng(0).normal(size=(60, columns))
    model = GEDI(2, encoder=torch.nn.Linear(columns, 8), iterations=2, random_state=0).fit(x)
    assert TITLE in model.report(tmp_path / "page.html").read_text()


def test_a_density_alone_has_a_page_too(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 3))
    assert GEDI(1, random_state=0).fit(x).report(tmp_path / "page.html").is_file()
