"""Strangers told from the rows that were learnt from, beside five usual ways. No stranger is seen before."""

import importlib
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from gedi.fitting import fit
from gedi.settings import Settings
from gedi.tables.outlier_data import DATA, Case, Make
from gedi.tables.written import grid, rows_of, write
from gedi.usual import how_usual

GEDI, LEARNT = "GEDI", "GEDI, denoiser"
_MOST = 10_000  # rows that a peer learns from: some grow with the square of them
_NEIGHBOUR = 5
_RIDGE = 1e-6  # of the mean variance, in the Gaussian's covariance
_IMAGES = {28: "mnist"}  # the preset of a denoiser, by the height of images
#: The kernel density owes nothing to training, so that the clusters are left out.
_KERNEL: Settings = {"preset": "table", "density": {"kind": "kernel"}, "stage1": {"iterations": 1}}
_NO_CLUSTERS = {"agreement": {"weight": 0}, "balance": {"weight": 0}, "proposed": {"weight": 0}}
_DENOISER: Settings = {
    "preset": "table",
    "density": {"kind": "denoiser"},
    "stage1": {"iterations": 2000, "terms": _NO_CLUSTERS, "density": {"denoising": 1.0}},
}
_SHORT = {"stage2": {"iterations": 1, "batch_size": 2}}  # of images: the denoiser is stage 1

Score = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


class Outcome(NamedTuple):
    """How well one way tells strangers: the mean over the questions of a row, and its time."""

    auroc: float
    seconds: float


def _gaussian(train: np.ndarray, x: np.ndarray, seed: int) -> np.ndarray:
    """The squared Mahalanobis distance."""
    covariance = np.atleast_2d(np.cov(train.T))
    covariance += np.eye(len(covariance)) * (_RIDGE * np.trace(covariance) / len(covariance))
    away = x - train.mean(axis=0)
    distances: np.ndarray = (np.linalg.solve(covariance, away.T).T * away).sum(axis=1)
    return distances


def _neighbour(train: np.ndarray, x: np.ndarray, seed: int) -> np.ndarray:
    distances: np.ndarray = NearestNeighbors(n_neighbors=_NEIGHBOUR).fit(train).kneighbors(x)[0][:, -1]
    return distances


def _of(make: Callable[[int], Any]) -> Score:
    return lambda train, x, seed: -make(seed).fit(train).score_samples(x)


#: The usual ways: the higher, the stranger.
PEERS: dict[str, Score] = {
    "one Gaussian": _gaussian,
    "5th neighbour": _neighbour,
    "LOF": _of(lambda seed: LocalOutlierFactor(novelty=True)),
    "isolation forest": _of(lambda seed: IsolationForest(random_state=seed)),
    "one-class SVM": _of(lambda seed: OneClassSVM()),
}


def _of_pyod(name: str) -> Score:
    def score(train: np.ndarray, x: np.ndarray, seed: int) -> np.ndarray:
        model = getattr(importlib.import_module(f"pyod.models.{name.lower()}"), name)()
        scores: np.ndarray = model.fit(train).decision_function(x)
        return scores

    return score


def peers() -> dict[str, Score]:
    """The usual ways, and two of PyOD where it is there with all that it needs."""
    try:
        importlib.import_module("pyod.models.ecod")
    except ImportError:
        return PEERS
    return {**PEERS, **{name: _of_pyod(name) for name in ("ECOD", "COPOD")}}


def write_table(*, seeds: range, out: Path, data_dir: Path | None = None, only: Sequence[str] = ()) -> str:
    """Ask every question of every way, and write figures as they come; returns the Markdown."""
    chosen = rows_of("outliers", DATA, only)
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, list[Outcome]]] = {}
    for name in chosen:
        found[name] = outcomes(DATA[name], seeds, data_dir)
        write(out, "outliers", text := markdown(found), found, Outcome._fields)
    return text


def outcomes(make: Make, seeds: range, data_dir: Path | None = None) -> dict[str, list[Outcome]]:
    """Every way on the questions of a row, once for each seed, which the data and the way follow from."""
    asked: dict[str, Callable[[Case, int], list[np.ndarray]]] = {GEDI: _kernel, LEARNT: _denoiser}
    asked |= {way: partial(_theirs, peer) for way, peer in peers().items()}
    found: dict[str, list[Outcome]] = {way: [] for way in asked}
    for seed in seeds:
        cases = list(make(seed, data_dir))
        for way, ask in asked.items():
            began = time.perf_counter()
            best = [max(_auroc(case, scores) for scores in ask(case, seed)) for case in cases]
            found[way].append(Outcome(float(np.mean(best)), (time.perf_counter() - began) / len(cases)))
    return found


def _auroc(case: Case, scores: np.ndarray) -> float:
    return float(roc_auc_score(np.repeat([0, 1], [len(case.usual), len(case.strange)]), scores))


def _theirs(peer: Score, case: Case, seed: int) -> list[np.ndarray]:
    """A peer on the columns as they are and on standardised ones: the better counts, so labels choose for it."""
    few = np.random.default_rng(seed).permutation(len(case.train))[:_MOST]
    train, x = case.train[few].astype(float), np.concatenate([case.usual, case.strange]).astype(float)
    scaled = StandardScaler().fit(train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows that come twice: what they lead to is measured
        return [peer(train, x, seed), peer(scaled.transform(train), scaled.transform(x), seed)]


def _kernel(case: Case, seed: int) -> list[np.ndarray]:
    """By the default density of tables; of images too, whose pixels are columns."""
    return _scores(case, {**_KERNEL, "seed": seed}, lambda rows: torch.from_numpy(rows).float())


def _denoiser(case: Case, seed: int) -> list[np.ndarray]:
    """By a learnt density; of images one that knows which pixels are near each other."""
    if case.height is None:
        return _scores(case, {**_DENOISER, "seed": seed}, lambda rows: torch.from_numpy(rows).float())
    shape = (-1, 1, case.height, case.train.shape[1] // case.height)
    settings = {"preset": _IMAGES[case.height], "seed": seed, **_SHORT}
    return _scores(case, settings, lambda rows: torch.from_numpy(rows).view(shape))


def _scores(case: Case, settings: Settings, points: Callable[[np.ndarray], torch.Tensor]) -> list[np.ndarray]:
    fitted = fit(points(case.train), settings, clusters=None if settings["preset"] == "table" else 10)
    return [-how_usual(fitted, points(np.concatenate([case.usual, case.strange]))).beside.double().numpy()]


def markdown(found: Mapping[str, Mapping[str, Sequence[Outcome]]]) -> str:
    """A line for each row, and on how many of them ours is best or second."""
    theirs = [way for way in next(iter(found.values())) if way not in (GEDI, LEARNT)]
    ways = (GEDI, LEARNT, *theirs)
    names = ["learnt from: strangers", *ways, "seconds", "denoiser's seconds", "peers' seconds"]
    lines = []
    first = dict.fromkeys((GEDI, LEARNT), 0)
    for row, by in found.items():
        mean = {way: round(float(np.mean([o.auroc for o in runs])), 3) for way, runs in by.items()}
        for ours in first:
            first[ours] += sum(mean[peer] > mean[ours] for peer in theirs) < 2
        seconds = {way: float(np.mean([o.seconds for o in runs])) for way, runs in by.items()}
        times = (seconds[GEDI], seconds[LEARNT], sum(seconds[way] for way in theirs))
        lines.append([row, *(f"{mean[way]:.3f}" for way in ways), *(f"{time:.1f}" for time in times)])
    said = (
        f"AUROC, means over the seeds. Best or second beside the {len(theirs)} others: {GEDI} on {first[GEDI]} of "
        f"{len(found)}, the learnt density on {first[LEARNT]}. Peers see the columns as they are and standardised, and "
        f"the better counts; they learn from at most {_MOST} rows."
    )
    return "\n".join([*grid(names, lines), "", said, ""])
