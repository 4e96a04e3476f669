"""The report of a run in the plane: its own points, walks as they were trained, the verdict at the top."""

import json
import re

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from gedi.building import walk_settings
from gedi.config import override, parse
from gedi.data import Dataset
from gedi.directory import RunDirectory
from gedi.fitting import prepare
from gedi.presets import preset
from gedi.report import figures, write_report
from gedi.runs import execute
from gedi.sampling import Box

TINY = (
    "n_init=1", "stage1.iterations=3", "stage2.iterations=3", "density.buffer=200", "walk.steps=5", "model.clusters=2",
)  # fmt: skip


@pytest.fixture
def finish(tmp_path):
    def run(data, *settings):
        directory = RunDirectory.create(tmp_path / "run")
        execute(prepare(parse(override(preset("moons"), [*TINY, *settings])), data=data), directory)
        return directory

    return run


def mine(n=400, labelled=False):
    x = torch.rand(n, 2, generator=torch.Generator().manual_seed(0)) + 7  # nowhere near the moons
    y = (x[:, 0] > 7.5).long()
    return Dataset("mine", x[n // 4 :], x[: n // 4], *((y[n // 4 :], y[: n // 4]) if labelled else ()))


@pytest.mark.parametrize("labelled", [False, True])
def test_the_points_of_the_run_are_drawn_and_nothing_is_read_again(finish, monkeypatch, labelled):
    data = mine(labelled=labelled)
    directory = finish(data)
    seen = {}
    draw = figures.scatter
    monkeypatch.setattr(
        figures, "scatter", lambda ax, x, y, title, box: seen.update({title: (x, y)}) or draw(ax, x, y, title, box)
    )
    write_report(directory)
    points, labels = seen["test data, true classes" if labelled else "test data"]
    assert torch.equal(points, data.test)
    assert (labels is None) if not labelled else torch.equal(labels, data.test_labels)
    assert torch.equal(seen["clusters found"][0], data.test)


def test_of_many_points_some_are_kept_with_their_clusters(finish, monkeypatch):
    monkeypatch.setattr("gedi.measuring.SAMPLES", 30)
    data = mine(labelled=True)
    directory = finish(data)
    kept = load_file(directory.path / "model" / "points.safetensors")
    assert kept["test"].shape == (30, 2)
    rows = torch.cdist(kept["test"], data.test).argmin(dim=1)
    assert torch.equal(data.test[rows], kept["test"])
    assert torch.equal(kept["predicted"][rows], kept["shown"])
    assert torch.equal(data.test_labels[rows], kept["shown_labels"])
    assert not torch.equal(rows, torch.arange(30))  # not the first ones: rows may be sorted


def test_the_landscape_draws_walks_as_they_are_trained():
    """Relaxation pulls the walk back to the ring after every step; without it the walk drawn is another one."""
    config = parse(override(preset("circles"), ["walk.steps=40", "walk.relax=3", "walk.relax_noise=0.2"]))
    walk = walk_settings(config)
    box = Box(torch.tensor([-2.0, -2.0]), torch.tensor([2.0, 2.0]))

    def energy(x):
        return 50 * (x.norm(dim=1) - 1).square()

    starts = torch.tensor([[1.0, 0.0], [0.0, -1.0]])
    _, axes = figures.new_figure(1)
    figures.landscape(axes[0], energy, box, walk, starts, "ring")
    drawn = [line.get_xydata() for line in axes[0].lines if len(line.get_xydata()) > 1]
    paths = walk(energy, starts, torch.Generator().manual_seed(0), every=1)
    for i, line in enumerate(drawn):
        np.testing.assert_allclose(line, paths[:, i].numpy(), atol=1e-6)
    assert len(drawn) == 2


def test_the_page_begins_with_the_verdict(finish):
    directory = finish(mine())
    page = write_report(directory).read_text()
    found = directory.results()["verdict"]
    assert found["word"] in ("doubtful", "failed")
    body = page[page.index("<body>") :]
    assert re.match(rf'<body>\s*<div class="verdict {found["word"]}"><strong>{found["word"]}</strong>', body)
    for reason in found["why"]:
        assert reason.replace("'", "&#39;") in body
    assert "Do samples fit the test data?" in page
    assert "genuine" not in page


def test_a_run_of_an_earlier_version_still_has_a_page(finish):
    directory = finish(mine())
    results = directory.results()
    del results["verdict"], results["checksums"]
    (directory.path / "results.json").write_text(json.dumps(results))
    path = directory.path / "model" / "points.safetensors"
    save_file({name: x.clone() for name, x in load_file(path).items() if name in ("predicted", "samples")}, path)
    assert "What the verdict rests on" not in write_report(directory).read_text()
