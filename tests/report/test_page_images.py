"""The report of a run on images: pictures of what it made of them, whatever images they are."""

import base64
import re

import numpy as np
import pytest
import torch
from matplotlib.image import imread
from safetensors.torch import load_file

from gedi.config import override, parse
from gedi.densities import energy
from gedi.directory import RunDirectory
from gedi.evaluating import evaluate_run
from gedi.fitting import prepare
from gedi.presets import preset
from gedi.report import image_figures, write_report
from gedi.report.page import symbol_gallery
from gedi.runs import execute

TINY = (
    "model.width=4", "model.latent=16", "model.finer=12", "log_every=2", "augment.shift=0.7",
    "stage1.iterations=2", "stage1.batch_size=20", "stage2.iterations=4", "stage2.batch_size=64",
    "density.buffer=64", "density.chains=16", "density.steps=2", "walk.steps=4",
)  # fmt: skip
WRITTEN = {
    "symbols": "What was put together",
    "samples": "Samples of the density",
    "walks": "Walks on the density",
    "training": "Training",
}


@pytest.fixture(autouse=True)
def _short_chains(monkeypatch):
    monkeypatch.setattr(energy, "_FRESH_STEPS", 5)


@pytest.fixture
def finish(tmp_path):
    def run(*settings, base="mnist-energy"):
        directory = RunDirectory.create(tmp_path / "run")
        execute(prepare(parse(override(preset(base), [*TINY, *settings]))), directory)
        return directory

    return run


def of_digits(*settings):
    return ("data.name=digits", "data.limit=200", *settings)


def of_own(tmp_path, shape, labels=None, **settings):
    """A file of random bytes, with labels if there are any."""
    x = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    path = tmp_path / ("x.npy" if labels is None else "x.npz")
    np.save(path, x) if labels is None else np.savez(path, x=x, y=labels)
    return ("data.name=images", f"data.path={path}", *(f"{key}={value}" for key, value in settings.items()))


def check_page(run):
    """The page holds every picture, byte for byte, under its title, and every figure; and nothing from elsewhere."""
    page = write_report(run).read_text()
    found = re.findall(r'<img src="data:image/png;base64,([^"]*)" alt="([^"]*)">', page)
    drawn = {path.stem: base64.b64encode(path.read_bytes()).decode() for path in (run.path / "figures").glob("*.png")}
    assert {title: picture for picture, title in found} == {TITLES[name]: drawn[name] for name in drawn}
    for name, value in run.results()["metrics"].items():
        assert f'<td>{name}</td><td class="number">{value:.4g}</td>' in page
    assert "http" not in re.sub(r'base64,[^"]*', "", page)  # four letters that a picture may have by chance
    return page, set(drawn)


TITLES = WRITTEN | {"energies": "Its own images and others"}


def test_the_page_has_clusters_samples_walks_and_training(finish):
    run = finish(*of_digits())
    page, drawn = check_page(run)
    assert drawn == set(WRITTEN)
    assert "gedi on digits" in page
    assert {"nmi", "accuracy", "energy_gap", "fresh_energy_gap", "clusters_used"} <= run.results()["metrics"].keys()
    assert "chains that began at noise" in page  # what a figure is stands beside it
    evaluate_run(run, parts=["ood"], against=["noise"], limit=50)
    _, drawn = check_page(run)
    assert drawn == set(TITLES)


def test_the_page_of_a_default_recipe_has_its_samples_its_walks_and_how_wide_they_are(tmp_path):
    run = RunDirectory.create(tmp_path / "run")
    small = [word for word in TINY if not word.startswith("density.")]
    execute(prepare(parse(override(preset("digits"), [*small, *of_digits("density.features=4")]))), run)
    page, drawn = check_page(run)
    assert drawn == set(WRITTEN)
    assert {"walk_width", "walk_steps", "walk_reach", "fresh_energy_gap"} <= run.results()["metrics"].keys()
    assert "as the density chose it; no labels" in page


def test_images_without_labels_are_put_together_and_nothing_is_framed(finish, tmp_path, monkeypatch):
    run = finish(*of_own(tmp_path, (120, 8, 8), **{"model.clusters": 4}))
    (tmp_path / "x.npy").unlink()  # a report needs no data files
    seen = []
    draw = image_figures.cluster_gallery
    monkeypatch.setattr(
        image_figures, "cluster_gallery", lambda *args, **kw: seen.append((args, kw)) or draw(*args, **kw)
    )
    page, drawn = check_page(run)
    assert drawn == set(WRITTEN)
    (images, shown, labels, names, _), options = seen[0]
    assert (labels, options["classes"]) == (None, None)
    assert list(names) == [0, 1, 2, 3]
    assert images.shape == (24, 1, 8, 8)
    assert len(shown) == 24
    assert "nmi" not in run.results()["metrics"]
    assert "<td>clusters_used</td>" in page
    assert "<td>nmi</td>" not in page


@pytest.mark.parametrize("labelled", [False, True])
def test_colour_images_keep_their_colours(finish, tmp_path, labelled):
    labels = np.array(["cat", "dog", "owl"] * 40) if labelled else None
    run = finish(*of_own(tmp_path, (120, 8, 8, 3), labels, **{"model.clusters": 3}))
    _, drawn = check_page(run)
    assert drawn == set(WRITTEN)
    assert load_file(run.path / "model" / "points.safetensors")["images"].shape == (24, 3, 8, 8)
    assert ("nmi" in run.results()["metrics"]) == labelled
    paper = imread(run.path / "figures" / "samples.png")[:, :, :3]
    assert np.ptp(paper, axis=2).max() > 0.5


def test_grey_images_are_ink_on_paper_and_colours_are_not_turned(finish, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(image_figures, "cluster_gallery", lambda *args, **kw: seen.append(kw) or args[4])
    run = finish(*of_digits())
    symbol_gallery(run, tmp_path / "a.png")
    assert (seen[0]["low"], seen[0]["high"]) == (1.0, -1.0)  # mean and std are 0.5: white first
    assert seen[0]["classes"] == [str(i) for i in range(10)]
    colour = run.points() | {"images": torch.zeros(3, 3, 8, 8)}
    monkeypatch.setattr(RunDirectory, "points", lambda self: colour)
    symbol_gallery(run, tmp_path / "b.png")
    assert (seen[1]["low"], seen[1]["high"]) == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("method", "pictures"),
    [
        ("swav", {"symbols", "training"}),
        ("barlow", {"symbols", "training"}),
        ("jem", {"symbols", "samples", "walks", "training"}),
    ],
)
def test_a_method_shows_what_it_has(finish, method, pictures):
    _, drawn = check_page(finish(*of_digits(f"method={method}")))
    assert drawn == pictures


def test_the_data_of_the_training_come_first_in_the_histogram(finish, tmp_path, monkeypatch):
    """Whatever the alphabet says: these are called x."""
    run = finish(*of_own(tmp_path, (120, 8, 8), **{"model.clusters": 4}))
    seen = []

    def draw(kept, path, aurocs):
        seen.append((list(kept), aurocs))
        return image_figures.image_grid(torch.zeros(1, 1, 8, 8), path)

    monkeypatch.setattr(image_figures, "energy_histogram", draw)
    evaluate_run(run, parts=["ood"], against=["noise"])
    check_page(run)
    ((names, aurocs),) = seen
    assert names == ["x", "noise"]
    assert aurocs == {"noise": run.evaluation()["ood"]["noise"]["auroc_log_density"]}
