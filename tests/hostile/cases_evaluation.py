"""Evaluations and reports that must be refused: of what is no finished run, and with arguments that mean nothing."""

import numpy as np
import torch
from calls import Called, Typed

from gedi.directory import RunDirectory
from gedi.evaluation import (
    auroc,
    batch_nmi,
    clustering_metrics,
    frechet_distance,
    kmeans_clusters,
    knn_accuracy,
    mmd_test,
    nearest_neighbour_test,
    precision_recall,
)
from gedi.examine import evaluate_run

BEGUN = {"run/config.yaml": "preset: digits\nmodel: {encoder: conv}\ndata: {name: digits}\n"}
PLANE = {"run/config.yaml": "preset: moons\n"}


def evaluated(**options):
    """A call of evaluate_run on a run that has only begun."""

    def call(folder):
        (folder / "run").mkdir()
        (folder / "run" / "config.yaml").write_text(BEGUN["run/config.yaml"])
        return evaluate_run(RunDirectory.open(folder / "run"), **options)

    return call


def g():
    return torch.Generator().manual_seed(0)


CALLS = [
    Typed("report of nothing", "report nowhere", "is not a run: it holds no config.yaml"),
    Typed("report of a file", "report notes.txt", "is not a run", {"notes.txt": "mine"}),
    Typed("report of an empty folder", "report run", "is not a run", {"run/notes.txt": ""}),
    Typed("report of the folder above the runs", "report .", "is not a run", BEGUN),
    Typed("report of a run that has only begun", "report run", "has no results yet", BEGUN),
    Typed("report of a config instead of its folder", "report run/config.yaml", "is not a run", BEGUN),
    Typed("evaluate nothing", "evaluate nowhere", "is not a run: it holds no config.yaml"),
    Typed("evaluate a file", "evaluate notes.txt", "is not a run", {"notes.txt": "mine"}),
    Typed("evaluate a run that has only begun", "evaluate run", "has no model yet", BEGUN),
    Typed("evaluate a run in the plane", "evaluate run", "takes runs on images, but this run's data is moons", PLANE),
    Typed("evaluate a config that is no YAML", "evaluate run", "cannot be read as YAML", {"run/config.yaml": "a: [1"}),
    Typed("evaluate a config that is a list", "evaluate run", "must hold sections", {"run/config.yaml": "- 1"}),
    Typed(
        "evaluate a config that is bytes", "evaluate run", "cannot be read as YAML", {"run/config.yaml": b"\xff\xfe"}
    ),
    Typed("a part that is not there", "evaluate run --part prbe", "did you mean 'probe'", BEGUN),
    Typed("an empty part", "evaluate run --part ''", "unknown part of an evaluation", BEGUN),
    Typed("strangers that are not there", "evaluate run --ood cifar11", "did you mean 'cifar10'", BEGUN),
    Typed("strangers by a path", "evaluate run --ood ../secret", "unknown data set", BEGUN),
    Typed("a probe that is not there", "evaluate run --probe adam", "unknown probe 'adam'", BEGUN),
    Typed("weights that are not there", "evaluate run --inception no.pt", "inception must name a file", BEGUN),
    Typed("weights that are a folder", "evaluate run --inception run", "inception must name a file", BEGUN),
    Called("one sample", evaluated(samples=1), "samples must be at least 2"),
    Called("fewer than no samples", evaluated(samples=-3), "samples must be at least 2"),
    Called("a limit of nothing", evaluated(limit=0), "limit must be at least 1"),
    Called("a recipe that is not there", evaluated(recipe="adam"), "unknown probe"),
    Called("samples of another dimension", lambda _: mmd_test(torch.zeros(5, 2), torch.zeros(5, 3), g()), "(m, d)"),
    Called("a single sample to compare", lambda _: mmd_test(torch.zeros(1, 2), torch.zeros(5, 2), g()), "2 points"),
    Called("images as points", lambda _: nearest_neighbour_test(torch.zeros(4, 1, 8, 8), torch.zeros(4, 2)), "(n, d)"),
    Called("nothing to compare", lambda _: nearest_neighbour_test(torch.zeros(0, 2), torch.zeros(4, 2)), "2 points"),
    Called("more clusters than points", lambda _: kmeans_clusters(np.zeros((3, 2)), 10**9, 0), "choose a smaller k"),
    Called("no clusters", lambda _: kmeans_clusters(np.zeros((3, 2)), 0, 0), "1 to n clusters"),
    Called("labels of other points", lambda _: clustering_metrics(np.zeros(3), np.zeros(4)), "same points"),
    Called("no labels at all", lambda _: clustering_metrics(np.zeros(0), np.zeros(0)), "same points"),
    Called("batches of no points", lambda _: batch_nmi(np.zeros(0), np.zeros(0), generator=g()), "same points"),
    Called("features of two widths", lambda _: frechet_distance(torch.zeros(5, 2), torch.zeros(5, 3)), "one width"),
    Called("scores that are not finite", lambda _: auroc(torch.tensor([1.0]), torch.tensor([torch.nan])), "finite"),
    Called(
        "more neighbours than points",
        lambda _: knn_accuracy(torch.eye(3), torch.arange(3), torch.eye(3), torch.arange(3), k=9),
        "lower k",
    ),
    Called("precision of too few images", lambda _: precision_recall(torch.eye(3), torch.eye(3), k=3), "3"),
]
