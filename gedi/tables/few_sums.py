"""How few sums name the digits: clusters learnt once from images alone, then named by many draws of triplets."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gedi.data.addition import digit_source, draw_triplets
from gedi.directory import RunDirectory
from gedi.errors import UserError
from gedi.evaluation import matched
from gedi.fitted import Fitted
from gedi.logic import sums_to
from gedi.naming import name_clusters
from gedi.report import figures
from gedi.tables.engine import run_cell
from gedi.tables.spec import Cell
from gedi.tables.written import grid, rows_of, write

ROWS = {name: name for name in ("mnist", "digits")}
TRIPLETS = (5, 10, 15, 20, 30, 100)
DRAWS = 20  # of triplets, for each seed and number
_SURE = 0.9


class Outcome(NamedTuple):
    """The clusters of one seed, named by one draw of triplets; accuracy is without matching, on the test images.

    ``names`` is how many of the ten are those that the test images' labels match best, ``matched`` the accuracy of
    these, ``confidence`` that of the least sure name, and ``tied`` how many other namings fit all but as well.
    """

    seed: int
    draw: int
    accuracy: float
    matched: float
    names: int
    confidence: float
    tied: int


def write_table(*, seeds: range, out: Path, data_dir: Path | None = None, only: Sequence[str] = ()) -> str:
    """Train what is missing, name the clusters, and write figures as they come; returns the Markdown."""
    chosen = rows_of("few-sums", ROWS, only)
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, list[Outcome]]] = {}
    text = ""
    for row in chosen:
        found[row] = {str(n): [] for n in TRIPLETS}
        for seed in seeds:
            for n, outcomes in named(clusters_of(row, seed, out, data_dir), row, seed, data_dir).items():
                found[row][n] += outcomes
            write(out, "few-sums", text := markdown(found), found, Outcome._fields)
    curve(found, out / "few-sums.png")
    return text


def clusters_of(row: str, seed: int, out: Path, data_dir: Path | None = None) -> Fitted:
    """Clusters of images, by the preset of that name; a finished run is not made again."""
    cell = Cell(row, "clusters", seed)
    said = run_cell(cell, "laptop", out, data_dir)
    directory = RunDirectory(out / "cells" / cell.folder)
    if not (directory.path / "model").is_dir():
        raise UserError(f"{row}, seed {seed}: {said}")
    return directory.fitted()


def named(
    fitted: Fitted, row: str, seed: int, data_dir: Path | None = None, draws: int = DRAWS
) -> dict[str, list[Outcome]]:
    """The clusters named by every draw of every number of triplets of training images.

    Labels draw the triplets and judge the names, and are seen by neither the clusters nor the search.
    """
    images = digit_source(row, data_dir)
    train_labels, test_labels = images.labels()
    predicted = fitted.predict(images.test)
    symbols = torch.from_numpy(matched(test_labels.numpy(), predicted.numpy()))
    best = float((symbols == test_labels).float().mean())
    place = _places(predicted, symbols)
    rule = sums_to(2, range(10))
    found: dict[str, list[Outcome]] = {}
    for n in TRIPLETS:
        for draw in range(draws):
            triplets = draw_triplets(train_labels, n, np.random.default_rng([seed, n, draw]))
            alignment = name_clusters(fitted, images.train[triplets.flatten()], rule, seed=draw).alignment
            symbol = torch.argsort(alignment.permutation)  # of each cluster
            outcome = Outcome(
                seed,
                draw,
                float((symbol[predicted] == test_labels).float().mean()),
                best,
                int((symbol == place).sum()),
                float(alignment.confidence.min()),
                len(alignment.ties),
            )
            found.setdefault(str(n), []).append(outcome)
    return found


def _places(predicted: Tensor, symbols: Tensor) -> Tensor:
    """The symbol that each cluster is matched to; -1 for one that holds no image."""
    place = torch.full((10,), -1)
    place[predicted] = symbols
    return place


def markdown(found: Mapping[str, Mapping[str, Sequence[Outcome]]]) -> str:
    """A line for each number of triplets."""
    names = [
        "clusters of", "triplets", "accuracy", "worst draw", "draws with all ten names", "names right",
        "clusters matched", "said to be sure", "sure and wrong", "draws",
    ]  # fmt: skip
    lines = []
    for row, by in found.items():
        for n, runs in by.items():
            if not runs:
                continue
            accuracy = [o.accuracy for o in runs]
            sure = [o for o in runs if o.confidence >= _SURE]
            lines.append(
                [
                    row,
                    n,
                    f"{np.mean(accuracy):.3f} (median {np.median(accuracy):.3f})",
                    f"{min(accuracy):.3f}",
                    f"{sum(o.names == 10 for o in runs)}/{len(runs)}",
                    f"{np.mean([o.names for o in runs]) / 10:.3f}",
                    f"{np.mean([o.matched for o in runs]):.3f}",
                    f"{len(sure)}/{len(runs)}",
                    f"{sum(o.names < 10 for o in sure)}",
                    f"{len({o.draw for o in runs})} for each of {len({o.seed for o in runs})} seeds",
                ]
            )
    said = (
        "Clusters are learnt once a seed, from all training images and no rule. Draws are of triplets of training "
        "images; accuracy is on the whole test set and without matching: the symbol must be the digit. Clusters "
        "matched is what the same clusters reach with every name right. Sure: the least sure of the ten names is at "
        f"least {_SURE}."
    )
    return "\n".join([*grid(names, lines), "", said, ""])


def curve(found: Mapping[str, Mapping[str, Sequence[Outcome]]], path: Path) -> Path:
    """Accuracy against the number of triplets: each draw a point, lines through the medians and the means."""
    figure, axes = figures.new_figure(len(found), 1, size=3.6)
    for ax, (row, by) in zip(axes, found.items(), strict=True):
        numbers = [int(n) for n, runs in by.items() if runs]
        rng = np.random.default_rng(0)
        for n in numbers:
            y = [o.accuracy for o in by[str(n)]]
            ax.plot(n * np.exp(rng.normal(0, 0.03, len(y))), y, "o", color="0.6", markersize=3, alpha=0.6)
        for of, style in ((np.median, "-"), (np.mean, "--")):
            ax.plot(numbers, [of([o.accuracy for o in by[str(n)]]) for n in numbers], style, label=of.__name__)
        ax.set_xscale("log")
        ax.set_xticks(numbers, [str(n) for n in numbers])
        ax.minorticks_off()
        ax.set_ylim(0, 1.02)
        ax.set_title(f"clusters of {row}, named by triplets")
        ax.set_xlabel("triplets")
        ax.set_ylabel("accuracy, without matching")
        ax.legend(frameon=False, loc="lower right")
    return figures.save(figure, path)
