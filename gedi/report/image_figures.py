"""Pictures of images: grids, clusters, walks, energies.

Images are (n, channels, height, width): three channels are colours, any other number is averaged to grey. ``low`` and
``high`` are the values drawn black and white, and what lies beyond is cut; ``low`` above ``high`` draws the negative,
as ink on paper.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from torch import Tensor

from gedi.report.figures import COLOURS, new_figure, save

_TILE = 56  # pixels on paper that an image's side should have, about
_GAP = 6  # between images
_FRAME = 3  # around an image, inside the gap
_MARGIN = 12
_BINS = 60


def image_grid(
    images: Tensor, path: Path, columns: int = 8, title: str = "", low: float | None = None, high: float | None = None
) -> Path:
    """Images row by row.

    Example:
        >>> image_grid(torch.rand(20, 3, 32, 32), getfixture("tmp_path") / "grid.png", title="noise").name
        'grid.png'
    """
    return _sheet([_mosaic(_rows(_tiles(images, low, high), columns))], [title], path)


def cluster_gallery(
    images: Tensor,
    predicted: Tensor,
    labels: Tensor | None,
    names: Sequence[Any],
    path: Path,
    columns: int = 16,
    classes: Sequence[Any] | None = None,
    low: float | None = None,
    high: float | None = None,
) -> Path:
    """A row of images for each cluster.

    Args:
        images: (n, channels, height, width).
        predicted: the cluster of each, (n,).
        labels: the truth, (n,); those wrong are framed. None frames nothing.
        names: of the clusters, a row each.
        path: of the PNG.
        columns: images in a row at most.
        classes: names of the labels, if clusters have no meaning of their own: a row then bears its commonest class,
            and images of other classes are framed. None takes labels and clusters for the same symbols.
        low, high: the values drawn black and white; the range of the images if None.
    """
    tiles = _tiles(images, low, high)
    rows: list[list[np.ndarray]] = []
    framed: list[list[bool]] = []
    heads = [str(name) for name in names]
    for d in range(len(names)):
        members = (predicted == d).nonzero()[:, 0]
        shown = members[:columns]
        right = d
        if labels is not None and classes is not None and len(members):
            right = int(torch.bincount(labels[members]).argmax())
            heads[d] += f": {classes[right]}"
        rows.append([tiles[i] for i in shown.tolist()])
        framed.append([] if labels is None else (labels[shown] != right).tolist())
    title = "what it calls by each name" if classes is None else "what it put together"
    if labels is not None:
        title += " (framed: wrong)" if classes is None else " (framed: not of the row's class)"
    return _sheet([_mosaic(rows, columns, framed, tiles.shape[1:3])], [title], path, heads)


def walk_strip(
    paths: Tensor,
    path: Path,
    title: str = "walks on the density, from the left",
    columns: int = 12,
    low: float | None = None,
    high: float | None = None,
) -> Path:
    """Walks of images, a row each, in the range of their starts.

    ``paths`` is (steps, n, channels, height, width); of more steps than columns some are left out, never the two ends.
    """
    low, high = _range(paths[0], low, high)
    at = torch.linspace(0, len(paths) - 1, min(columns, len(paths))).round().long()
    tiles = _tiles(paths[at].transpose(0, 1).flatten(0, 1), low, high)
    return _sheet([_mosaic(_rows(tiles, len(at)))], [title], path)


def sample_comparison(
    data: Tensor,
    samples_fresh: Tensor,
    samples_buffer: Tensor | None,
    path: Path,
    columns: int = 8,
    low: float | None = None,
    high: float | None = None,
) -> Path:
    """Data beside samples that began at noise and those of persistent chains, if any, in the data's range."""
    low, high = _range(data, low, high)
    shown = {"data": data, "samples, from noise": samples_fresh}
    if samples_buffer is not None:
        shown["samples, from the buffer"] = samples_buffer
    return _sheet([_mosaic(_rows(_tiles(x, low, high), columns)) for x in shown.values()], list(shown), path)


def energy_histogram(
    energies: Mapping[str, Tensor], path: Path, auroc: Mapping[str, float] | None = None, title: str = ""
) -> Path:
    """How dense the model finds several data sets: histograms of ``-E(x)``, each of area one.

    Args:
        energies: ``E(x)`` of each data set, (n,); that of the training first.
        path: of the PNG.
        auroc: of telling a data set from the first, for those that have one.
        title: above it.
    """
    scores = {name: -values.detach().double().cpu().numpy() for name, values in energies.items()}
    together = np.concatenate(list(scores.values()))
    low, high = np.quantile(together, [0.002, 0.998])  # a stray point would squeeze everything else
    edges = np.histogram_bin_edges(together.clip(low, high), _BINS)
    figure, (ax,) = new_figure(1, size=4.2)
    for i, (name, values) in enumerate(scores.items()):
        note = f" (AUROC {auroc[name]:.2f})" if auroc and name in auroc else ""
        height = np.histogram(values.clip(low, high), edges, density=True)[0]
        colour = COLOURS[i % len(COLOURS)]
        ax.stairs(height, edges, fill=True, color=colour, alpha=0.25)
        ax.stairs(height, edges, color=colour, linewidth=1.4, label=name + note)
    ax.set_xlabel("log density up to a constant, $-E(x)$")
    ax.set_yticks([])
    ax.set_ylim(0, ax.get_ylim()[1] * (1.02 + 0.08 * len(scores)))  # room for the legend
    ax.set_title(title, fontsize=11)
    ax.legend(fontsize=8, frameon=False, loc="upper left")
    for edge in ("top", "left", "right"):
        ax.spines[edge].set_visible(False)
    return save(figure, path)


def _range(images: Tensor, low: float | None, high: float | None) -> tuple[float, float]:
    return float(images.min()) if low is None else low, float(images.max()) if high is None else high


def _tiles(images: Tensor, low: float | None, high: float | None) -> np.ndarray:
    """Images as they are drawn, (n, height, width, 3) in [0, 1], enlarged by a whole number."""
    low, high = _range(images, low, high)
    pixels = images.detach().float().cpu()
    if pixels.shape[1] != 3:
        pixels = pixels.mean(dim=1, keepdim=True).expand(-1, 3, -1, -1)
    zoom = max(1, round(_TILE / max(images.shape[2:])))
    scaled = ((pixels - low) / (high - low or 1)).clamp(0, 1).permute(0, 2, 3, 1).numpy()
    return scaled.repeat(zoom, axis=1).repeat(zoom, axis=2)


def _rows(tiles: np.ndarray, columns: int) -> list[list[np.ndarray]]:
    return [list(tiles[i : i + columns]) for i in range(0, len(tiles), columns)]


def _mosaic(
    rows: Sequence[Sequence[np.ndarray]],
    columns: int | None = None,
    framed: Sequence[Sequence[bool]] | None = None,
    size: tuple[int, int] | None = None,
) -> np.ndarray:
    """Rows of tiles on white paper, (height, width, 3)."""
    height, width = size or rows[0][0].shape[:2]
    columns = columns or max(len(row) for row in rows)
    paper = np.ones((len(rows) * (height + _GAP) + _GAP, columns * (width + _GAP) + _GAP, 3), dtype=np.float32)
    for i, row in enumerate(rows):
        for j, tile in enumerate(row):
            top, left = i * (height + _GAP) + _GAP, j * (width + _GAP) + _GAP
            if framed and framed[i] and framed[i][j]:
                paper[top - _FRAME : top + height + _FRAME, left - _FRAME : left + width + _FRAME] = to_rgb(COLOURS[1])
            paper[top : top + height, left : left + width] = tile
    return paper


def _sheet(mosaics: Sequence[np.ndarray], titles: Sequence[str], path: Path, heads: Sequence[str] = ()) -> Path:
    """Mosaics side by side, pixel for pixel, with a title above each and heads beside the rows of the first."""
    figure, axes = new_figure(len(mosaics))
    figure.set_layout_engine("none")  # which would stretch the pixels
    texts = [ax.set_title(title, fontsize=11) for ax, title in zip(axes, titles, strict=True)]
    across = [max(m.shape[1], _extent(t)[0]) for m, t in zip(mosaics, texts, strict=True)]
    left = _MARGIN + max((_extent(text)[0] for text in _write_heads(axes[0], mosaics[0], heads)), default=0)
    top = _MARGIN + max(_extent(text)[1] for text in texts)
    width = left + sum(across) + _MARGIN * len(mosaics)
    height = top + max(m.shape[0] for m in mosaics) + _MARGIN
    figure.set_size_inches((width + 0.1) / figure.dpi, (height + 0.1) / figure.dpi)  # the file cuts broken pixels off
    for ax, mosaic, room in zip(axes, mosaics, across, strict=True):
        rows, columns = mosaic.shape[:2]
        at = (left + (room - columns) // 2, height - top - rows)
        ax.set_position((at[0] / width, at[1] / height, columns / width, rows / height))
        ax.imshow(mosaic, interpolation="nearest", aspect="auto")
        ax.set_axis_off()
        left += room + _MARGIN
    return save(figure, path)


def _write_heads(ax: Axes, mosaic: np.ndarray, heads: Sequence[str]) -> list[Any]:
    step = (mosaic.shape[0] - _GAP) / max(len(heads), 1)
    return [
        ax.text(-2, _GAP / 2 + step * (d + 0.5), head, ha="right", va="center", fontsize=10)
        for d, head in enumerate(heads)
    ]


def _extent(text: Any) -> tuple[int, int]:
    """Pixels that a text takes, across and down, with a little room; none if it is empty."""
    if not text.get_text():
        return 0, 0
    box = text.get_window_extent()
    return int(box.width) + _GAP, int(box.height) + _GAP
