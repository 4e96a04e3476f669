"""The table of clusterings: what a line says, what is counted, and a row made for real."""

import json
import sys
import types

import numpy as np
import pytest

from gedi.errors import UserError
from gedi.tables import write_table
from gedi.tables.clustering import PEERS
from gedi.tables.clustering_data import DATA, parted
from gedi.tables.clustering_text import ALONE, GEDI, STILL, Outcome, markdown
from gedi.tables.deep_peer import deep_peers

ROW = "circles, 200"


def lines_of(text, row):
    """The lines of a row in both tables, each by the names above it."""
    found = []
    for block in text.split("\n\n"):
        names, *lines = [
            [cell.strip() for cell in line.split("|")[1:-1]] for line in block.splitlines() if "|" in line
        ] or [[]]
        found += [dict(zip(names, line, strict=True)) for line in lines if line[0] == row]
    return found


def test_what_is_near_and_what_misleads_is_counted():
    peers = {way: [Outcome(0.5, 0.4, 1.0), Outcome(0.7, 0.4, 1.0)] for way in (ALONE, STILL, *PEERS)}
    peers["mixture"] = [one._replace(unseen=0.55) for one in peers["mixture"]]
    found = {
        "near": {GEDI: [Outcome(0.58, 0.5, 2, 0.4, "doubtful", 0.9), Outcome(0.6, 0.3, 4, 0.5, "trusted", 1)]} | peers,
        "far": {GEDI: [Outcome(0.29, 0.2, 2, 0.6, "trusted", 0.99), Outcome(0.1, 0.1, 2, 0.5, "doubtful")]} | peers,
    }
    text = markdown(found)
    assert "Within 0.03 of the best peer on 1 of 2 tables, and so on rows unseen, beside " in text
    assert "peers that predict, on 1; trusted, with less than half of the best: 1." in text
    line, more = lines_of(text, "near")
    assert (line["GEDI, NMI"], line["k-means, NMI"]) == ("0.59", "0.60")
    assert (line["information kept"], line["verdict"]) == ("0.950", "1 doubtful, 1 trusted")
    assert (more["GEDI, ARI"], more["GEDI, NMI of unseen"], more["GEDI, processor seconds"]) == ("0.40", "0.45", "3.0")
    assert (more["mixture, NMI of unseen"], more["mixture, processor seconds"]) == ("0.55", "1.0")
    assert "spectral, NMI of unseen" not in more  # it cannot predict


@pytest.mark.parametrize("name", DATA)
def test_every_table_follows_from_its_seed(name):
    (a, classes), (b, _), (other, _) = DATA[name](200), DATA[name](200), DATA[name](201)
    assert np.array_equal(a, b)
    assert len(a) == len(classes)
    assert np.isfinite(a).all()
    measured = name in ("iris", "wine", "breast cancer", "digits, 64 columns")
    assert np.array_equal(a, other) == measured
    learnt, unseen = parted(DATA[name](200), 200)
    assert len(learnt.rows) == len(a) - len(a) // 5
    assert sorted(map(tuple, [*learnt.rows, *unseen.rows])) == sorted(map(tuple, a))
    assert set(learnt.classes) >= set(unseen.classes)


def test_a_row_is_made_and_written(tmp_path):
    text = write_table("clustering", profile="laptop", seeds=range(200, 201), out=tmp_path, only=[ROW])
    line, more = lines_of(text, ROW)
    assert float(line["GEDI, NMI"]) > 0.95
    assert float(line["k-means, NMI"]) < 0.1
    assert float(more["GEDI, NMI of unseen"]) > 0.9
    assert float(more["k-means, NMI of unseen"]) < 0.2
    assert float(more["GEDI, processor seconds"]) > 0
    assert (tmp_path / "clustering.md").read_text() == text
    ways = {GEDI, ALONE, STILL, *PEERS, *deep_peers()}
    assert set(json.loads((tmp_path / "clustering.json").read_text())[ROW]) == ways
    assert len((tmp_path / "clustering.csv").read_text().splitlines()) == 1 + len(ways)


def test_a_deep_peer_takes_part_where_it_can_be_imported(monkeypatch):
    class Theirs:
        def __init__(self, clusters, random_state, device):
            self.asked = clusters, random_state, device

        def fit(self, rows):
            assert rows.dtype == np.float32
            self.labels_ = np.arange(len(rows)) % self.asked[0]
            return self

        def predict(self, rows):
            print("progress")  # is not shown
            return np.zeros(len(rows), int)

    package, deep = types.ModuleType("clustpy"), types.ModuleType("clustpy.deep")
    package.deep, deep.IDEC = deep, Theirs
    monkeypatch.setitem(sys.modules, "clustpy", package)
    monkeypatch.setitem(sys.modules, "clustpy.deep", deep)
    deep_peers.cache_clear()
    peer = deep_peers()["IDEC"](3, 7)
    assert peer.fit_predict(np.zeros((6, 2))).tolist() == [0, 1, 2, 0, 1, 2]
    assert peer.predict(np.zeros((2, 2))).tolist() == [0, 0]
    monkeypatch.setitem(sys.modules, "clustpy.deep", None)  # what cannot be imported is no error
    deep_peers.cache_clear()
    assert deep_peers() == {}
    deep_peers.cache_clear()


def test_a_row_that_there_is_not_is_refused(tmp_path):
    with pytest.raises(UserError, match="unknown row of table clustering 'irs': did you mean 'iris'"):
        write_table("clustering", profile="laptop", seeds=range(1), out=tmp_path, only=["irs"])
