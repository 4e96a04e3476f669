"""The table of outliers: what a line says, what is counted, that its data follow from the seed, and a row for real."""

import json
import sys

import numpy as np
import pytest

from gedi.errors import UserError
from gedi.tables import write_table
from gedi.tables.outlier_data import DATA
from gedi.tables.outliers import GEDI, LEARNT, PEERS, Outcome, markdown, peers

IMAGES = [name for name in DATA if "MNIST" in name]
ROW = "between 5 Gaussians: 50 columns"


def line_of(text, row):
    names, _, *lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if "|" in line]
    return next(dict(zip(names, line, strict=True)) for line in lines if line[0] == row)


def test_best_and_second_are_counted():
    def row(ours, learnt, *theirs):
        both = {GEDI: ours, LEARNT: learnt}
        return {
            way: [Outcome(x, 1.0), Outcome(x, 3.0)] for way, x in (both | dict(zip(PEERS, theirs, strict=True))).items()
        }

    found = {
        "best": row(0.9, 0.5, 0.8, 0.8, 0.8, 0.8, 0.8),
        "second": row(0.8, 0.9, 0.9, 0.8, 0.7, 0.7, 0.7),  # as good as the second
        "third": row(0.7, 0.1, 0.9, 0.8, 0.7, 0.7, 0.7),
    }
    text = markdown(found)
    assert "Best or second beside the 5 others: GEDI on 2 of 3, the learnt density on 1." in text
    line = line_of(text, "second")
    assert (line[GEDI], line["one Gaussian"], line["seconds"], line["peers' seconds"]) == (
        "0.800",
        "0.900",
        "2.0",
        "10.0",
    )


@pytest.mark.parametrize("name", [name for name in DATA if name not in IMAGES])
def test_every_question_follows_from_its_seed_and_no_row_is_seen_twice(name):
    for one, again, other in zip(*(list(DATA[name](seed, None)) for seed in (200, 200, 201)), strict=True):
        assert np.array_equal(one.train, again.train)
        assert not np.array_equal(one.train, other.train)
        assert one.train.shape[1] == one.usual.shape[1] == one.strange.shape[1]
        assert all(np.isfinite(rows).all() for rows in one[:3])


def test_strangers_of_a_class_left_out_are_all_of_it_and_nobody_learns_from_them():
    cases = list(DATA["iris: each class"](200, None))
    assert [(len(c.train), len(c.usual), len(c.strange)) for c in cases] == [(50, 50, 50)] * 3


def test_without_pyod_or_what_it_needs_the_usual_ways_are_left(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyod", None)
    monkeypatch.delitem(sys.modules, "pyod.models.ecod", raising=False)
    assert peers() == PEERS


@pytest.mark.slow
def test_a_row_is_made_and_written(tmp_path, monkeypatch):
    short = {"iterations": 300, "terms": {name: {"weight": 0} for name in ("agreement", "balance", "proposed")}}
    monkeypatch.setattr(
        "gedi.tables.outliers._DENOISER",
        {"preset": "table", "density": {"kind": "denoiser"}, "stage1": short | {"density": {"denoising": 1.0}}},
    )
    text = write_table("outliers", profile="laptop", seeds=range(200, 201), out=tmp_path, only=[ROW])
    line = line_of(text, ROW)
    assert float(line[GEDI]) > 0.95
    assert float(line["one Gaussian"]) < 0.6  # strangers are in the middle
    assert (tmp_path / "outliers.md").read_text() == text
    assert set(json.loads((tmp_path / "outliers.json").read_text())[ROW]) == {GEDI, LEARNT, *peers()}
    assert len((tmp_path / "outliers.csv").read_text().splitlines()) == 3 + len(peers())


def test_a_row_that_there_is_not_is_refused(tmp_path):
    with pytest.raises(UserError, match="unknown row of table outliers 'moon': did you mean 'moons'"):
        write_table("outliers", profile="laptop", seeds=range(1), out=tmp_path, only=["moon"])
