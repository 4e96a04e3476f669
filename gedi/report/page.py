"""The HTML page of a run: one self-contained file."""

import base64
from collections.abc import Callable, Sequence
from pathlib import Path

import jinja2
import torch
from matplotlib.axes import Axes
from torch import Tensor

from gedi.config import to_yaml
from gedi.data import CATALOGUE
from gedi.evaluation import matched
from gedi.methods import has_clusters, has_density, walk_settings, with_method
from gedi.report import figures, image_figures
from gedi.run_files import refuse
from gedi.runs import RunDirectory
from gedi.training.step import walk_from

_ABOUT = {
    "nmi": "normalised mutual information with the true classes, whole test set",
    "ami": "the same, adjusted for chance",
    "ari": "adjusted Rand index",
    "accuracy": "share of points in the right cluster; clusters are matched to classes unless a rule names them",
    "clusters_used": "clusters that hold at least one test point",
    "accuracy_matched": "the same with clusters matched to classes one to one",
    "constraint_loss": "-log P(constraint) of the training groups",
    "constraint_satisfied": "share of training groups that satisfy the constraint; no proof: a collapse does too",
    "validation_constraint_loss": "-log P(constraint) of groups held out",
    "validation_constraint_satisfied": "share of groups held out that satisfy the constraint",
    "nmi_batch64": "NMI averaged over batches of 64, as some published figures may be; inflated, see the next line",
    "nmi_batch64_chance": "what the same clusters reach in that figure when they are dealt out at random",
    "effective_clusters": "exp of the entropy of the clusters' shares",
    "largest_share": "share of test points in the largest cluster",
    "mean_confidence": "mean of the largest probability",
    "fresh_energy_gap": "the same for chains that began at noise",
    "cluster_entropy": "1: clusters share the points equally; 0: collapsed to one",
    "effective_rank": "dimensions the embedding really uses",
    "energy_gap": "energy of the model's samples less that of test data; near 0 when they are alike",
    "sample_mmd2": "samples against test data, maximum mean discrepancy",
    "sample_mmd2_null95": "what that figure stays under in 95 % of cases when both sets are alike",
    "sample_1nn": "share of points whose nearest neighbour is of their own kind; 0.5: not to be told apart",
    "kl": "nats from the true density to the model's",
    "kl_uniform": "the same for a uniform density on the box",
    "density_correlation": "rank correlation of model and true log density, on and around the data",
    "score_cosine": "cosine between model score and true score",
    "far_mass": "share of the model's mass where the truth has next to none",
    "normal_cosine": "|cosine| between score and the rings' normal",
    "walks_connect": "share of its points that a cluster's largest connected piece holds, where it is least; no labels",
    "walks_leave": "share of walks on the final energy that leave the cluster found; no labels",
    "walks_cross": "the same among walks that come farther than the nearest point of another cluster; no labels",
    "even_1nn": "sample_1nn for points spread evenly over the box: what the test would say of no density at all",
    "walk_crossing": "share of walks on the final energy that end in another true cluster",
    "used_share": "clusters that hold at least one test point, of those asked for",
    "confidence": "0: memberships are even; 1: they are certain",
    "loss_left": "the best try's cluster loss; 0: of a perfect clustering, 1: of knowing nothing",
    "test_points": "how many points the density is held against",
    "mmd_over_null": "sample_mmd2 over sample_mmd2_null95, what chance allows",
    "interventions": "how often the guard stepped in",
    "rule_held_out": "share of groups held out that satisfy the rule",
    "rule_names": "1: no other naming of the symbols satisfies the rule",
    "rule_trained": "share of training groups that satisfy the rule",
}


def write_report(directory: RunDirectory) -> Path:
    """Draw the figures of a finished run and write ``report.html``; files that cannot be used are refused before."""
    results, config = directory.results(), directory.config()
    for read in (directory.evaluation, directory.metrics):
        read()
    page = jinja2.Environment(
        loader=jinja2.PackageLoader("gedi.report"), autoescape=True, undefined=jinja2.StrictUndefined
    ).get_template("report.html.j2")
    held = {"results": {"verdict": None, **results}, "config": to_yaml(config), "about": _ABOUT}
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
    if config.model.encoder != "mlp":
        pictures += image_pictures(directory, folder)
    elif "test" in (points := directory.points()):
        pictures.append(("What was learnt", plane_picture(directory, points, folder / "overview.png")))
    if directory.metrics():
        records = directory.metrics()
        interventions = sum(record.get("event") == "guard" for record in records)
        title = "Training" + (f"; interventions of the guard: {interventions}" if interventions else "")
        pictures.append((title, figures.training_curves(records, folder / "training.png")))
    return pictures


def plane_picture(directory: RunDirectory, points: dict[str, Tensor], path: Path) -> Path:
    """What a run on points in the plane made of them: clusters, density, walks, samples."""
    config, (model, box) = with_method(directory.config()), directory.load_model()
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
        panels.append(
            lambda ax: figures.landscape(ax, model.energy, box, walk, starts, "log density learnt, walks on it")
        )
        panels.append(lambda ax: figures.scatter(ax, points["samples"], None, "samples drawn from it", box))
    figure, axes = figures.new_figure(len(panels))
    for ax, panel in zip(axes, panels, strict=True):
        panel(ax)
    return figures.save(figure, path)


def image_pictures(directory: RunDirectory, folder: Path) -> list[tuple[str, Path]]:
    """What a run on images made of them: clusters, samples, walks from test images."""
    config = with_method(directory.config())
    points, energies = directory.points(), kept_energies(directory)
    walks = has_density(config) and config.walk.steps > 0 and not directory.needs_encoder
    model = directory.load_model()[0] if walks else None
    black, white = (0 - config.data.mean) / config.data.std, (1 - config.data.mean) / config.data.std
    pictures = [("What was put together", symbol_gallery(directory, folder / "symbols.png"))]
    if "chains" in points:
        compared = (points["images"][:64], points["samples"][:64], points["chains"][:64])
        path = image_figures.sample_comparison(*compared, folder / "samples.png", low=black, high=white)
        pictures.append(("Samples of the density", path))
    if model is not None:
        settings = walk_settings(config)
        every = max(1, settings.steps // 10)
        paths = walk_from(settings, model.energy, points["images"][:8], torch.Generator().manual_seed(0), every=every)
        pictures.append(
            ("Walks on the density", image_figures.walk_strip(paths, folder / "walks.png", low=black, high=white))
        )
    if energies:
        found = directory.evaluation().get("ood", {})
        aurocs = {name: r["auroc_log_density"] for name, r in found.items() if "auroc_log_density" in r}
        path = image_figures.energy_histogram(energies, folder / "energies.png", aurocs)
        pictures.append(("Its own images and others", path))
    return pictures


def kept_energies(directory: RunDirectory) -> dict[str, Tensor]:
    """Energies of the run's own test images and, after them, of others."""
    energies, own = directory.energies(), directory.results()["data"]
    return {name: energies[name] for name in sorted(energies, key=lambda name: (name != own, name))}


def symbol_gallery(directory: RunDirectory, path: Path) -> Path:
    """The test images that a run calls by each name, or puts together."""
    config = with_method(directory.config())
    points = directory.points()
    names = range(config.model.clusters or int(points["predicted"].max()) + 1)
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
