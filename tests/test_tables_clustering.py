"""The table of clusterings: what a line says, what is counted, and a row made for real."""

import json

import numpy as np
import pytest

from gedi.errors import UserError
from gedi.tables import write_table
from gedi.tables.clustering import ALONE, DATA, GEDI, PEERS, STILL, Outcome, markdown

ROW = "circles, 200"


def line_of(text, row):
    names, _, *lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if "|" in line]
    return next(dict(zip(names, line, strict=True)) for line in lines if line[0] == row)


def test_what_is_near_and_what_misleads_is_counted():
    peers = {way: [Outcome(0.5, 1.0), Outcome(0.7, 1.0)] for way in (ALONE, STILL, *PEERS)}
    found = {
        "near": peers | {GEDI: [Outcome(0.58, 2.0, "doubtful", 0.9), Outcome(0.6, 4.0, "trusted", 1.0)]},
        "far": peers | {GEDI: [Outcome(0.29, 2.0, "trusted", 0.99), Outcome(0.1, 2.0, "doubtful")]},
    }
    text = markdown(found)
    assert "Within 0.03 of the best of the four on 1 of 2 tables; trusted, with less than half of the best: 1." in text
    line = line_of(text, "near")
    assert (line["GEDI, NMI"], line["k-means, NMI"], line["seconds"]) == ("0.59", "0.60", "3.0")
    assert (line["information kept"], line["verdict"]) == ("0.950", "1 doubtful, 1 trusted")


@pytest.mark.parametrize("name", DATA)
def test_every_table_follows_from_its_seed(name):
    (a, classes), (b, _), (other, _) = DATA[name](200), DATA[name](200), DATA[name](201)
    assert np.array_equal(a, b)
    assert len(a) == len(classes)
    assert np.isfinite(a).all()
    measured = name in ("iris", "wine", "breast cancer", "digits, 64 columns")
    assert np.array_equal(a, other) == measured


def test_a_row_is_made_and_written(tmp_path):
    text = write_table("clustering", profile="laptop", seeds=range(200, 201), out=tmp_path, only=[ROW])
    assert float(line_of(text, ROW)["GEDI, NMI"]) > 0.95
    assert float(line_of(text, ROW)["k-means, NMI"]) < 0.1
    assert (tmp_path / "clustering.md").read_text() == text
    assert set(json.loads((tmp_path / "clustering.json").read_text())[ROW]) == {GEDI, ALONE, STILL, *PEERS}
    assert len((tmp_path / "clustering.csv").read_text().splitlines()) == 1 + 3 + len(PEERS)


def test_a_row_that_there_is_not_is_refused(tmp_path):
    with pytest.raises(UserError, match="unknown row of table clustering 'irs': did you mean 'iris'"):
        write_table("clustering", profile="laptop", seeds=range(1), out=tmp_path, only=["irs"])
