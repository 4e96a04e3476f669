"""One preset for many tables, beside four usual ways to cluster them. Labels only count afterwards."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn import datasets
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.metrics import normalized_mutual_info_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from gedi.config import parse
from gedi.data import Dataset, Scaling
from gedi.fitting import fit
from gedi.graph import spectrum
from gedi.presets import preset
from gedi.proposing import propose
from gedi.random import Streams
from gedi.settings import Settings, merge
from gedi.tables.written import grid, rows_of, write

GEDI = "GEDI"
_NEAR = 0.03  # of the best peer's NMI


class Table(NamedTuple):
    """Rows (n, d) and their classes (n,)."""

    rows: np.ndarray
    classes: np.ndarray


class Outcome(NamedTuple):
    """One way's clusters of one table: agreement with the classes, time, and what it says of itself.

    ``number`` is how many clusters the graph of the points speaks for; those asked for are as many as classes.
    """

    nmi: float
    seconds: float
    word: str = ""
    kept: float | None = None
    number: int | None = None


def _known(load: Callable[[], Any]) -> Callable[[int], Table]:
    def make(seed: int) -> Table:
        found = load()
        return Table(found.data, found.target)

    return make


def _moons(points: int | tuple[int, int]) -> Callable[[int], Table]:
    return lambda seed: Table(*datasets.make_moons(points, noise=0.06, random_state=seed))


def _circles(points: int | tuple[int, int]) -> Callable[[int], Table]:
    return lambda seed: Table(*datasets.make_circles(points, noise=0.05, factor=0.4, random_state=seed))


def _mixture(columns: int) -> Callable[[int], Table]:
    """Five groups whose distance, in their own widths, does not depend on the number of columns."""

    def make(seed: int) -> Table:
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(5, columns)) * 4.8 / np.sqrt(columns)
        classes = rng.integers(0, 5, 2000)
        return Table(centres[classes] + rng.normal(size=(2000, columns)) * 1.2 / np.sqrt(columns), classes)

    return make


def _turned_moons(seed: int) -> Table:
    rng = np.random.default_rng(seed)
    rows, classes = datasets.make_moons(2000, noise=0.05, random_state=seed)
    plane = np.linalg.qr(rng.normal(size=(10, 10)))[0][:2]
    return Table(rows @ plane + 0.02 * rng.normal(size=(2000, 10)), classes)


def _unequal_blobs(seed: int) -> Table:
    return Table(
        *datasets.make_blobs(
            [1000, 300, 100, 50],
            centers=[[0, 0], [3, 0], [0, 3], [3, 3]],
            cluster_std=[0.5, 0.4, 0.3, 0.3],
            random_state=seed,
        )
    )


def _with_outliers(seed: int) -> Table:
    """Moons, and one row in a hundred anywhere in a box three times as wide; these are not counted as a class."""
    rows, classes = _moons(1000)(seed)
    rng = np.random.default_rng(seed)
    middle, half = (rows.max(axis=0) + rows.min(axis=0)) / 2, (rows.max(axis=0) - rows.min(axis=0)) / 2
    strange = middle + 3 * half * rng.uniform(-1, 1, (10, 2))
    return Table(np.concatenate([rows, strange]), np.concatenate([classes, np.full(10, -1)]))


def _stretched(seed: int) -> Table:
    rows, classes = _moons(1000)(seed)
    return Table(rows * [1, 100], classes)


#: Every table by its name, made for a seed.
DATA: dict[str, Callable[[int], Table]] = {
    "iris": _known(datasets.load_iris),
    "wine": _known(datasets.load_wine),
    "breast cancer": _known(datasets.load_breast_cancer),
    "digits, 64 columns": _known(datasets.load_digits),
    "5 Gaussians, 10 columns": _mixture(10),
    "5 Gaussians, 50 columns": _mixture(50),
    "5 Gaussians, 200 columns": _mixture(200),
    "moons in 10 columns": _turned_moons,
    "moons, 200": _moons(200),
    "moons, 300": _moons(300),
    "moons, 500": _moons(500),
    "circles, 200": _circles(200),
    "circles, 300": _circles(300),
    "circles, 500": _circles(500),
    "moons 80/20": _moons((800, 200)),
    "moons 90/10": _moons((900, 100)),
    "circles 80/20": _circles((800, 200)),
    "circles 90/10": _circles((900, 100)),
    "unequal blobs": _unequal_blobs,
    "moons, 1 % outliers": _with_outliers,
    "moons, an axis times 100": _stretched,
}
#: The usual ways, given the number of classes; HDBSCAN finds its own.
PEERS: dict[str, Callable[[int, int], Any]] = {
    "k-means": lambda k, seed: KMeans(k, n_init=10, random_state=seed),
    "mixture": lambda k, seed: GaussianMixture(k, n_init=3, random_state=seed, reg_covar=1e-3),
    "spectral": lambda k, seed: SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed),
    "HDBSCAN": lambda k, seed: HDBSCAN(copy=True),
}


#: What the parts are worth: the same preset with less of it.
_STILL = {"stage1": {"terms": {"agreement": {"look": "view"}}}}  # looks are the point's own noise
ALONE, STILL = "proposal alone", "without walks"


def write_table(*, seeds: range, out: Path, only: Sequence[str] = ()) -> str:
    """Cluster every table by every way, and write figures as they come; returns the Markdown."""
    chosen = rows_of("clustering", DATA, only)
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, list[Outcome]]] = {}
    for name in chosen:
        found[name] = outcomes(DATA[name], seeds)
        write(out, "clustering", text := markdown(found), found, Outcome._fields)
    return text


def outcomes(make: Callable[[int], Table], seeds: range) -> dict[str, list[Outcome]]:
    """Every way on a table, once for each seed, which the data and the way follow from."""
    found: dict[str, list[Outcome]] = {way: [] for way in (GEDI, ALONE, STILL, *PEERS)}
    for seed in seeds:
        table = make(seed)
        clusters = len(set(table.classes.tolist()) - {-1})
        found[GEDI].append(_ours(table, clusters, seed))
        found[ALONE].append(_proposal(table, clusters, seed))
        found[STILL].append(_ours(table, clusters, seed, _STILL))
        for way, peer in PEERS.items():
            found[way].append(_theirs(table, partial(peer, clusters, seed)))
    return found


def _theirs(table: Table, make: Callable[[], Any]) -> Outcome:
    """A peer on the columns as they are and on standardised ones: the better counts, so labels choose for it."""
    began, figures = time.perf_counter(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of graphs in pieces and searches cut short: what they lead to is measured
        for rows in (table.rows, StandardScaler().fit_transform(table.rows)):
            figures.append(_nmi(table.classes, make().fit_predict(rows)))
    return Outcome(max(figures), (time.perf_counter() - began) / 2)


def _proposal(table: Table, clusters: int, seed: int) -> Outcome:
    """What training begins from, on the rows that it visits."""
    began, config = time.perf_counter(), parse(preset("table"))
    rows = torch.as_tensor(table.rows, dtype=torch.float32)
    points = Scaling.of(rows, config.data.columns)(rows)
    found = propose(config, Dataset("points", points, points), clusters, Streams(seed))
    nmi = _nmi(table.classes[found.numbers.numpy()], found.parts.numpy())
    return Outcome(nmi, time.perf_counter() - began, number=spectrum(found.graph).clusters)


def _ours(table: Table, clusters: int, seed: int, changes: Settings | None = None) -> Outcome:
    began = time.perf_counter()
    settings = merge({"preset": "table", "seed": seed}, changes or {})
    fitted = fit(table.rows.astype(np.float32), settings, clusters=clusters)
    labels = fitted.predict(table.rows.astype(np.float32)).numpy()
    seconds = time.perf_counter() - began
    verdict = fitted.verdict or {}
    kept = verdict.get("checks", {}).get("information_kept", {}).get("value")
    return Outcome(_nmi(table.classes, labels), seconds, verdict.get("word", ""), kept)


def _nmi(classes: np.ndarray, labels: np.ndarray) -> float:
    real = classes >= 0
    return float(normalized_mutual_info_score(classes[real], labels[real]))


def markdown(found: Mapping[str, Mapping[str, Sequence[Outcome]]]) -> str:
    """A line for each table, and how many are near the best of the peers."""
    names = [
        "data",
        *(f"{way}, NMI" for way in (GEDI, ALONE, STILL, *PEERS)),
        "clusters, proposed",
        "information kept",
        "verdict",
        "seconds",
        "peers' seconds",
    ]
    lines, near, misled = [], 0, 0
    for row, ways in found.items():
        mean = {way: float(np.mean([o.nmi for o in runs])) for way, runs in ways.items()}
        best = max(mean[way] for way in PEERS)
        near += mean[GEDI] >= best - _NEAR
        misled += sum(o.word == "trusted" and o.nmi < best / 2 for o in ways[GEDI])
        words = [o.word for o in ways[GEDI]]
        kept = [o.kept for o in ways[GEDI] if o.kept is not None]
        lines.append(
            [
                row,
                *(f"{mean[way]:.2f}" for way in (GEDI, ALONE, STILL, *PEERS)),
                ", ".join(str(o.number) for o in ways[ALONE] if o.number is not None),
                f"{np.mean(kept):.3f}" if kept else "",
                ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words)),
                f"{np.mean([o.seconds for o in ways[GEDI]]):.1f}",
                f"{sum(np.mean([o.seconds for o in ways[way]]) for way in PEERS):.1f}",
            ]
        )
    said = (
        f"Within {_NEAR} of the best of the four on {near} of {len(found)} tables; trusted, with less than half of the "
        f"best: {misled}. Means over the seeds. Peers see the columns as they are and standardised, and "
        "the better counts."
    )
    return "\n".join([*grid(names, lines), "", said, ""])
