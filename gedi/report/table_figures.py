"""Figures of whole tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from gedi.building import walk_settings
from gedi.directory import RunDirectory
from gedi.evaluation import matched
from gedi.methods import with_method
from gedi.report import figures
from gedi.report.page import symbol_gallery

Scores = Mapping[tuple[str, str, int | None], Sequence[float]]


def labels(
    runs: Mapping[tuple[str, str], RunDirectory], data: Sequence[str], methods: Sequence[str], path: Path
) -> Path:
    """Ground truth beside the clusters each method found, a row for each data set."""
    figure, axes = figures.new_figure(1 + len(methods), len(data))
    for i, row in enumerate(data):
        panels = axes[i * (1 + len(methods)) :]
        for j, method in enumerate(methods):
            run = runs.get((row, method))
            if run is None:  # every try diverged
                panels[1 + j].set_axis_off()
                continue
            points, box = run.points(), run.fitted().box
            nmi = run.results()["metrics"]["nmi"]
            figures.scatter(panels[0], points["test"], points["shown_labels"], f"{row}: ground truth", box)
            found = torch.from_numpy(matched(points["shown_labels"].numpy(), points["shown"].numpy()))
            figures.scatter(panels[1 + j], points["test"], found, f"{method} (NMI {nmi:.2f})", box)
    return figures.save(figure, path)


def clusters(runs: Mapping[str, RunDirectory], path: Path) -> Path:
    """The clusters that each run found, a panel each, called by its name."""
    figure, axes = figures.new_figure(5, -(-len(runs) // 5), size=2.4)
    for ax in axes:
        ax.set_axis_off()
    for ax, (name, run) in zip(axes, runs.items(), strict=False):
        ax.set_axis_on()
        points, nmi = run.points(), run.results()["metrics"]["nmi"]
        found = torch.from_numpy(matched(points["shown_labels"].numpy(), points["shown"].numpy()))
        figures.scatter(ax, points["test"], found, f"{name} (NMI {nmi:.2f})", run.fitted().box)
    return figures.save(figure, path)


def gallery(runs: Mapping[tuple[str, str], RunDirectory], data: Sequence[str], method: str, path: Path) -> Path:
    """A column for each data set: the clusters found, the log density with walks on it, samples from it."""
    figure, axes = figures.new_figure(len(data), 3, size=2.6)
    for i, row in enumerate(data):
        run = runs.get((row, method))
        if run is None:
            continue
        fitted = run.fitted()
        points = run.points()
        test, walk = points["test"], walk_settings(with_method(run.config()))
        starts = test[torch.linspace(0, len(test) - 1, 6).long()]
        top, middle, bottom = (axes[i + k * len(data)] for k in range(3))
        figures.scatter(top, test, points["shown"], f"{row}: NMI {run.results()['metrics']['nmi']:.2f}", fitted.box)
        figures.landscape(middle, fitted.energy, fitted.box, walk, starts, "density, walks")
        figures.scatter(bottom, points["samples"], None, "samples", fitted.box)
    return figures.save(figure, path)


def symbols(run: RunDirectory, path: Path) -> Path:
    """The test images that a run calls by each name."""
    return symbol_gallery(run, path)


def against_steps(
    scores: Scores,
    data: Sequence[str],
    curves: Sequence[str],
    levels: Sequence[str],
    steps: Sequence[int],
    path: Path,
) -> Path:
    """NMI against T: a curve for each of ``curves``, a level line for methods that do not walk."""
    figure, axes = figures.new_figure(len(data), size=4.0)
    for ax, row in zip(axes, data, strict=True):
        for i, name in enumerate(curves):
            points = [(t, scores[row, name, t]) for t in steps if (row, name, t) in scores]
            if points:
                ax.errorbar(
                    [t for t, _ in points],
                    [np.mean(values) for _, values in points],
                    [float(np.std(values, ddof=1)) if len(values) > 1 else np.nan for _, values in points],
                    marker="o",
                    capsize=3,
                    label=name,
                    color=figures.COLOURS[i],
                )
        for i, name in enumerate(levels, start=len(curves)):
            if (row, name, None) in scores:
                ax.axhline(
                    float(np.mean(scores[row, name, None])),
                    linestyle="--",
                    label=name,
                    color=figures.COLOURS[i],
                )
        ax.set_ylim(-0.05, 1.05)
        ax.set_xlabel("T")
        ax.set_ylabel("NMI")
        ax.set_title(row)
        ax.legend(fontsize=8, frameon=False)
    return figures.save(figure, path)
