"""The HTML page of a run: one self-contained file."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import jinja2
import torch
from matplotlib.axes import Axes
from torch import Tensor

from gedi.building import walk_settings
from gedi.config import to_yaml
from gedi.data import CATALOGUE, Scaling
from gedi.directory import RunDirectory
from gedi.evaluation import matched
from gedi.fitted import needs_encoder
from gedi.judge import EVIDENCE
from gedi.measuring import explanations
from gedi.methods import has_clusters, has_density, with_method
from gedi.report import figures, image_figures, row_figures
from gedi.run_files import refuse
from gedi.training import Walk
from gedi.types import EnergyFn

_SHOWN_STEPS = 10  # of a walk of noise and denoising


def write_report(directory: RunDirectory) -> Path:
    """Draw the figures of a finished run and write ``report.html``; files that cannot be used are refused before."""
    results, config = directory.results(), directory.config()
    for read in (directory.evaluation, directory.metrics):
        read()
    page = jinja2.Environment(
        loader=jinja2.PackageLoader("gedi.report"), autoescape=True, undefined=jinja2.StrictUndefined
    ).get_template("report.html.j2")
    held = {"results": {"verdict": None, **results}, "config": to_yaml(config), "about": explanations() | EVIDENCE}
    try:
        page.render(**held, pictures=[])
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError) as error:
        refuse(directory.path / "results.json", str(error).splitlines()[0])
    pictures = draw(directory)
    directory.write("report.html", page.render(**held, pictures=[(title, _embed(path)) for title, path in pictures]))
    return directory.path / "report.html"


def draw(directory: RunDirectory) -> list[tuple[str, Path]]:
    """The figures of a run as (title, file), from what the run kept: its data are not read again."""
    config = with_method(directory.config())
    folder = directory.path / "figures"
    pictures: list[tuple[str, Path]] = []
    if not config.model.of_rows:
        pictures += image_pictures(directory, folder)
    elif "test" in (points := directory.points()) and not needs_encoder(directory.path / "model"):
        pictures.append(("What was learnt", plane_picture(directory, points, folder / "overview.png")))
    elif "shown" in points and has_clusters(config):
        pictures.append(("What was put together", row_picture(directory, points, folder / "clusters.png")))
    if "gaps" in (points := directory.points()):
        path = figures.spectral_gaps(points["gaps"], folder / "gaps.png")
        pictures.append(("How many clusters the graph speaks for", path))
    if directory.metrics():
        records = directory.metrics()
        interventions = sum(record.get("event") == "guard" for record in records)
        title = "Training" + (f"; interventions of the guard: {interventions}" if interventions else "")
        pictures.append((title, figures.training_curves(records, folder / "training.png")))
    return pictures


def plane_picture(directory: RunDirectory, points: dict[str, Tensor], path: Path) -> Path:
    """What a run on points in the plane made of them: clusters, density, walks, samples."""
    config, fitted = with_method(directory.config()), directory.fitted()
    box = fitted.box
    test, labels = points["test"], points.get("shown_labels")
    title = "test data" if labels is None else "test data, true classes"
    panels: list[Callable[[Axes], None]] = [lambda ax: figures.scatter(ax, test, labels, title, box)]
    if has_clusters(config):
        found = points["shown"]
        if labels is not None:  # else a right cluster may have the other one's colour
            found = torch.from_numpy(matched(labels.numpy(), found.numpy()))
        panels.append(lambda ax: figures.scatter(ax, test, found, "clusters found", box))
    if has_density(config):
        starts, walk = test[torch.linspace(0, len(test) - 1, 8).long()], walk_settings(config)
        drawn = "log density" if walk.energy == "graph" else "log density, walks on it"
        panels.append(lambda ax: figures.landscape(ax, fitted.energy, box, walk, starts, drawn))
        panels.append(lambda ax: figures.scatter(ax, points["samples"], None, "samples drawn from it", box))
    figure, axes = figures.new_figure(len(panels))
    for ax, panel in zip(axes, panels, strict=True):
        panel(ax)
    return figures.save(figure, path)


def row_picture(directory: RunDirectory, points: dict[str, Tensor], path: Path) -> Path:
    """What a run on rows put together, in their own units where those are known."""
    inputs = None if needs_encoder(directory.path / "model") else directory.fitted().inputs
    names, rows = directory.results().get("columns", []), points["rows"] if "rows" in points else points["test"]
    own = inputs.back(rows) if isinstance(inputs, Scaling) and inputs.projection is None else None
    return row_figures.clusters_of_rows(rows, own, points["shown"], names, path)


def image_pictures(directory: RunDirectory, folder: Path) -> list[tuple[str, Path]]:
    """What a run on images made of them: clusters, samples, walks from test images."""
    config = with_method(directory.config())
    points, energies = directory.points(), kept_energies(directory)
    walks = has_density(config) and config.walk.steps > 0 and not needs_encoder(directory.path / "model")
    fitted = directory.fitted() if walks else None
    black, white = (0 - config.data.mean) / config.data.std, (1 - config.data.mean) / config.data.std
    pictures = [("What was put together", symbol_gallery(directory, folder / "symbols.png"))]
    if "samples" in points:
        chains = points["chains"][:64] if "chains" in points else None
        compared = (points["images"][:64], points["samples"][:64], chains)
        path = image_figures.sample_comparison(*compared, folder / "samples.png", low=black, high=white)
        pictures.append(("Samples of the density", path))
    if fitted is not None:
        path = _walks(walk_settings(config), fitted.energy, points["images"][:8], folder / "walks.png", black, white)
        pictures.append(("Walks on the density", path))
    if energies:
        found = directory.evaluation().get("ood", {})
        aurocs = {name: r["auroc_log_density"] for name, r in found.items() if "auroc_log_density" in r}
        path = image_figures.energy_histogram(energies, folder / "energies.png", aurocs)
        pictures.append(("Its own images and others", path))
    return pictures


def _walks(walk: Walk, energy: EnergyFn, images: Tensor, path: Path, black: float, white: float) -> Path:
    """Walks from some images; of noise and denoising more steps than the clusters see, since two show little."""
    title = "walks on the density, from the left"
    if walk.direction == "denoise" and walk.steps < _SHOWN_STEPS:
        title += f" (the clusters see {walk.steps} steps)"
        walk = replace(walk, steps=_SHOWN_STEPS)
    paths = walk(energy, images, torch.Generator().manual_seed(0), every=max(1, walk.steps // 10))
    return image_figures.walk_strip(paths, path, title, low=black, high=white)


def kept_energies(directory: RunDirectory) -> dict[str, Tensor]:
    """Energies of the run's own test images and, after them, of others."""
    energies, own = directory.energies(), directory.results()["data"]
    return {name: energies[name] for name in sorted(energies, key=lambda name: (name != own, name))}


def symbol_gallery(directory: RunDirectory, path: Path) -> Path:
    """The test images that a run calls by each name, or puts together."""
    config = with_method(directory.config())
    points = directory.points()
    asked = config.model.clusters
    names = range(asked if isinstance(asked, int) else int(points["predicted"].max()) + 1)
    images, labels = points["images"], points.get("shown_labels")
    black, white = (0 - config.data.mean) / config.data.std, (1 - config.data.mean) / config.data.std
    ink = (white, black) if images.shape[1] == 1 else (black, white)  # grey digits look best as ink on paper
    classes: Sequence[str] | None = None
    if config.constraint.rule is None and labels is not None:  # clusters without names
        known = CATALOGUE.get(config.data.name)
        classes = (known.classes if known else ()) or [str(i) for i in range(int(labels.max()) + 1)]
    return image_figures.cluster_gallery(
        images, points["shown"], labels, names, path, classes=classes, low=ink[0], high=ink[1]
    )


def _embed(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
