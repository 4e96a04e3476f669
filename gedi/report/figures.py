"""Pictures of a run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from gedi.evaluation.density import grid, log_normaliser
from gedi.graph import OF_ONE_PART, Spectrum
from gedi.sampling import Box
from gedi.training.stage import Walk, radial_energy
from gedi.types import EnergyFn

COLOURS = [
    "#2b6cb0",
    "#dd6b20",
    "#2f855a",
    "#b83280",
    "#6b46c1",
    "#b7791f",
    "#319795",
    "#9b2c2c",
    "#4a5568",
    "#d53f8c",
]
_GRID = 160
_DPI = 110


def new_figure(columns: int, rows: int = 1, size: float = 3.4) -> tuple[Figure, list[Axes]]:
    """A figure of equal panels that needs no display."""
    figure = Figure(figsize=(size * columns, (size + 0.25) * rows), layout="constrained", dpi=_DPI)
    FigureCanvasAgg(figure)
    return figure, [figure.add_subplot(rows, columns, i + 1) for i in range(rows * columns)]


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def scatter(ax: Axes, x: Tensor, labels: Tensor | None, title: str, box: Box) -> None:
    """Points in the plane, coloured by label."""
    colours = COLOURS[8] if labels is None else np.array(COLOURS)[labels.numpy() % len(COLOURS)]
    ax.scatter(x[:, 0], x[:, 1], s=4, c=colours, linewidths=0)
    _plain(ax, title, box)


@torch.no_grad()
def landscape(ax: Axes, energy: EnergyFn, box: Box, walk: Walk | None, starts: Tensor, title: str) -> None:
    """The log density over its box, with walks drawn on it as training makes them, relaxation and all."""
    low, high = box.low, box.high
    log_p = (-energy(grid(low, high, _GRID)) - log_normaliser(energy, low, high)).view(_GRID, _GRID)
    top = float(log_p.max())
    ax.imshow(
        log_p.clamp_min(top - 12).t().numpy(),
        origin="lower",
        extent=(float(low[0]), float(high[0]), float(low[1]), float(high[1])),
        cmap="Greys",
        aspect="equal",
    )
    if walk is not None and walk.steps > 0 and walk.energy != "graph":  # whose steps are from point to point
        walked = radial_energy if walk.energy == "radial" else energy
        every = max(1, walk.steps // 100)
        paths = walk(walked, starts, torch.Generator().manual_seed(0), every=every)
        for i in range(len(starts)):
            colour = COLOURS[i % len(COLOURS)]
            ax.plot(paths[:, i, 0], paths[:, i, 1], color=colour, linewidth=1.3)
            ax.plot(starts[i, 0], starts[i, 1], "o", color=colour, markersize=4, markeredgecolor="white")
    _plain(ax, title, box)


def training_curves(records: Sequence[dict[str, Any]], path: Path) -> Path:
    """Every term against the iteration, a panel for each leg; where the guard went back, the curve begins again."""
    legs: dict[str, list[dict[str, Any]]] = {}
    renamed: dict[str, list[int]] = {}
    guarded: dict[str, list[tuple[int, str]]] = {}
    for record in records:
        name = record["stage"] + (f", try {record['restart'] + 1}" if "restart" in record else "")
        if "event" not in record:
            legs.setdefault(name, []).append(record)
        elif record["event"] == "guard":
            legs.setdefault(name, []).append({"iteration": np.nan})  # a gap in the curve
            guarded.setdefault(name, []).append((record["iteration"], record["cause"]))
        elif record["prototypes"] != "kept":
            renamed.setdefault(name, []).append(record["iteration"])
    figure, axes = new_figure(max(len(legs), 1), size=4.2)
    skipped = ("stage", "iteration", "restart", "loss")
    for ax, (name, lines) in zip(axes, legs.items(), strict=False):
        terms = dict.fromkeys(key for line in lines for key in line if key not in skipped)
        for i, term in enumerate(terms):
            ax.plot(
                [line["iteration"] for line in lines],
                [line.get(term, np.nan) for line in lines],
                label=term.replace("_", " "),
                color=COLOURS[i % len(COLOURS)],
            )
        for i, iteration in enumerate(renamed.get(name, ())):
            ax.axvline(iteration, color="#cbd5e0", zorder=0, label=None if i else "symbols aligned")
        for iteration, cause in guarded.get(name, ()):
            ax.axvline(iteration, color=COLOURS[7], linestyle=":", zorder=0, label=f"guard: {cause}")
        ax.set_yscale("symlog", linthresh=0.01)
        ax.set_xlabel("iteration")
        ax.set_title(name)
        ax.legend(fontsize=7, frameon=False)
    return save(figure, path)


def spectral_gaps(gaps: Tensor, path: Path) -> Path:
    """The gap in a graph's spectrum after each number of clusters; the number it speaks for stands out."""
    spectrum = Spectrum(torch.empty(0), gaps)
    figure, (ax,) = new_figure(1, size=4.2)
    numbers = range(2, len(gaps) + 1)
    shades = [COLOURS[1] if number == spectrum.clusters else "#cbd5e0" for number in numbers]
    ax.bar(numbers, gaps[1:].tolist(), color=shades)
    ax.axhline(OF_ONE_PART, color="#4a5568", linewidth=0.8, linestyle=":")
    ax.set_xticks(numbers)
    ax.tick_params(labelsize=7)
    ax.set_xlabel("number of clusters")
    ax.set_ylabel("gap, logarithm of a ratio of rates")
    clear = float(gaps[spectrum.clusters - 1]) > OF_ONE_PART
    why = "the last gap above what one part has" if clear else "the largest gap, no more than one part has"
    ax.set_title(f"{spectrum.clusters} clusters: {why}", fontsize=9)
    return save(figure, path)


def _plain(ax: Axes, title: str, box: Box) -> None:
    ax.set_title(title, fontsize=11)
    ax.set_xlim(float(box.low[0]), float(box.high[0]))
    ax.set_ylim(float(box.low[1]), float(box.high[1]))
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_aspect("equal")
    for side in ax.spines.values():
        side.set_color("#cbd5e0")
