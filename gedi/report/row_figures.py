"""What clusters of wide rows are: where they lie, how large they are, and which columns tell them apart."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from gedi.report.figures import COLOURS, new_figure, save

_COLUMNS, _CLUSTERS = 10, 15  # shown at most
_LONGEST = 18  # letters of a name
_NOTHING = 1e-6  # of a column's spread
_FAR = 2.0  # standard deviations from the mean at which a colour is full


def clusters_of_rows(points: Tensor, rows: Tensor | None, found: Tensor, names: Sequence[str], path: Path) -> Path:
    """Rows on the two axes along which they vary most; beside them what is typical of each cluster.

    Args:
        points: as the network sees them, (n, d).
        rows: the same in their own units, (n, columns); None: no column means anything by itself.
        found: their clusters, (n,).
        names: of the columns; none: their numbers.
        path: of the picture.
    """
    figure, axes = new_figure(1 if rows is None else 2, size=4.6)
    _axes_of(axes[0], points, found)
    if rows is not None:
        _typical(axes[1], rows.double(), found, names)
    return save(figure, path)


def _axes_of(ax: Axes, points: Tensor, found: Tensor) -> None:
    centred = (points - points.mean(dim=0)).double()
    if points.shape[1] > 1:
        along = torch.linalg.eigh(centred.t() @ centred)[1][:, -2:].flip(1)
        share = float((centred @ along).square().sum() / centred.square().sum().clamp_min(1e-12))
        at, said = centred @ along, f"on two axes, with {100 * share:.0f}% of how rows vary"
    else:
        at, said = torch.cat([centred, torch.zeros_like(centred)], dim=1), "along the only column"
    ax.scatter(at[:, 0], at[:, 1], s=5, c=np.array(COLOURS)[found.numpy() % len(COLOURS)], linewidths=0)
    ax.set_title(f"clusters found, {said}", fontsize=9)
    ax.set_xticks([])
    ax.set_yticks([])


def _typical(ax: Axes, rows: Tensor, found: Tensor, names: Sequence[str]) -> None:
    """Means of the columns that tell the clusters apart most, coloured by how far they are from the mean of all."""
    clusters = found.unique().tolist()[:_CLUSTERS]  # type: ignore[no-untyped-call]
    spread = rows.std(dim=0, correction=0)
    means = torch.stack([rows[found == cluster].mean(dim=0) for cluster in clusters])
    means = torch.where(means.abs() > _NOTHING * spread, means, 0.0)
    apart = (means - rows.mean(dim=0)) / torch.where(spread > 0, spread, 1.0)
    shares = torch.stack([(found == cluster).double().mean() for cluster in clusters])
    telling = (shares[:, None] * apart.square()).sum(dim=0).argsort(descending=True, stable=True)[:_COLUMNS]
    ax.imshow(apart[:, telling].t().numpy(), cmap="RdBu_r", vmin=-_FAR, vmax=_FAR, aspect="auto", alpha=0.8)
    for row, column in enumerate(telling.tolist()):
        for place in range(len(clusters)):
            ax.text(place, row, f"{float(means[place, column]):.3g}", ha="center", va="center", fontsize=7)
    called = [str(names[column]) if len(names) else f"column {column}" for column in telling.tolist()]
    ax.set_yticks(range(len(called)), [name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..." for name in called])
    ax.set_xticks(range(len(clusters)), [f"{c}\n{100 * s:.0f}%" for c, s in zip(clusters, shares, strict=True)])
    for place, label in enumerate(ax.get_xticklabels()):
        label.set_color(COLOURS[clusters[place] % len(COLOURS)])
    ax.tick_params(labelsize=7, length=0)
    ax.set_title("means in each cluster, of columns that tell most", fontsize=9)
