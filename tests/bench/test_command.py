"""``gedi bench`` as a user meets it."""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gedi import cli
from gedi.bench.findings import Figure, LeftOut
from gedi.bench.logic import logic
from gedi.bench.losses import SIZES, cases
from gedi.bench.present import markdown
from gedi.bench.record import measured_before, read, record
from gedi.bench.samplers import samplers
from gedi.bench.timing import Effort

HASTY = Effort(blocks=2, seconds=0.001, limit=0.1, small=True)
PROJECT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch, capsys):
    def run(*args):
        monkeypatch.setattr("gedi.bench.command.QUICK", HASTY)
        monkeypatch.setattr(sys, "argv", ["gedi", "bench", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return run


def test_a_subject_is_measured_told_and_recorded(bench, tmp_path):
    code, out, _ = bench("losses", "--quick", "--out", tmp_path)
    assert code == 0
    assert "swapped prediction, n = 128, c = 2, d = 8: by its formula / ours" in out
    found = json.loads((tmp_path / "bench.json").read_text())
    assert set(found) == {"machine", "versions", "quick", "ratios", "growth", "figures", "left_out"}
    assert {"processor", "cores", "memory_gib", "system", "threads"} == set(found["machine"])
    assert found["machine"]["threads"] == 1
    assert found["quick"] is True
    assert len(found["ratios"]) == len(SIZES) * (1 + len(cases(*SIZES[0])))  # Sinkhorn, and every loss
    for row in found["ratios"]:
        assert row["subject"] == "losses"
        assert 0 < row["low"] <= row["value"] <= row["high"]
        assert row["over_ms"] > 0
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")

    page = tmp_path / "page.md"
    page.write_text("<!-- gedi bench -->\n<!-- end of gedi bench -->\n")
    code, out, _ = bench("--out", tmp_path, "--markdown", page)
    assert code == 0
    assert markdown(read(tmp_path)) in page.read_text()


def test_an_unknown_subject_is_refused_before_anything_is_measured(bench, tmp_path):
    code, _, err = bench("losses", "sampler", "--out", tmp_path / "bench")
    assert code == 2
    assert "did you mean 'samplers'?" in err
    assert not (tmp_path / "bench").exists()


@pytest.mark.parametrize(("subject", "package"), [(samplers, "torchebm"), (logic, "deepproblog")])
def test_what_is_not_installed_is_left_out_and_said(monkeypatch, subject, package):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find(name))
    first = next(subject(HASTY))
    assert isinstance(first, LeftOut)
    assert package in first.why


def test_the_page_on_speed_shows_what_was_recorded():
    assert markdown(read(PROJECT / "benchmarks")) in (PROJECT / "docs" / "speed.md").read_text()


def test_subjects_measured_before_stay_if_machine_versions_and_length_are_the_same(tmp_path):
    found = Figure("a figure", 1.5, "s")
    record({"logic": [found]}, quick=True).write(tmp_path)
    assert measured_before(tmp_path, quick=True) == {"logic": [found]}
    assert measured_before(tmp_path, quick=False) == {}
    assert measured_before(tmp_path / "elsewhere", quick=True) == {}
    done = record({"logic": [found]}, quick=True)
    replace(done, machine={**done.machine, "cores": 1000}).write(tmp_path)
    assert measured_before(tmp_path, quick=True) == {}
