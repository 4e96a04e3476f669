"""One preset for many tables, beside usual ways to cluster them. Labels only count afterwards."""

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
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
from gedi.tables.clustering_data import DATA, Parted, Table, parted
from gedi.tables.clustering_text import ALONE, GEDI, STILL, Outcome, markdown
from gedi.tables.deep_peer import deep_peers
from gedi.tables.written import rows_of, write

#: The usual ways, given the number of classes; HDBSCAN finds its own.
PEERS: dict[str, Callable[[int, int], Any]] = {
    "k-means": lambda k, seed: KMeans(k, n_init=10, random_state=seed),
    "mixture": lambda k, seed: GaussianMixture(k, n_init=3, random_state=seed, reg_covar=1e-3),
    "spectral": lambda k, seed: SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed),
    "HDBSCAN": lambda k, seed: HDBSCAN(copy=True),
}
#: What the parts are worth: the same preset with less of it.
_STILL = {"stage1": {"terms": {"agreement": {"look": "view"}}}}  # looks are the point's own noise


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
    peers = {**PEERS, **deep_peers()}
    found: dict[str, list[Outcome]] = {way: [] for way in (GEDI, ALONE, STILL, *peers)}
    for seed in seeds:
        table = parted(make(seed), seed)
        clusters = len(set(table.learnt.classes.tolist()) - {-1})
        found[GEDI].append(_ours(table, clusters, seed))
        found[ALONE].append(_proposal(table.learnt, clusters, seed))
        found[STILL].append(_ours(table, clusters, seed, _STILL))
        for way, peer in peers.items():
            found[way].append(_theirs(table, partial(peer, clusters, seed)))
    return found


def _theirs(table: Parted, make: Callable[[], Any]) -> Outcome:
    """A peer on the columns as they are and on standardised ones: the better counts, so labels choose for it."""
    tries = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of graphs in pieces and searches cut short: what they lead to is measured
        scaler = StandardScaler().fit(table.learnt.rows)
        for seen in (lambda rows: rows, scaler.transform):
            peer, began = make(), time.process_time()
            labels = peer.fit_predict(seen(table.learnt.rows))
            seconds = time.process_time() - began
            unseen = peer.predict(seen(table.unseen.rows)) if hasattr(peer, "predict") else None
            tries.append(_outcome(table, labels, unseen, seconds))
    best = max(tries, key=lambda one: one.nmi)
    return best._replace(seconds=float(np.mean([one.seconds for one in tries])))


def _proposal(table: Table, clusters: int, seed: int) -> Outcome:
    """What training begins from, on the rows that it visits."""
    began, config = time.process_time(), parse(preset("table"))
    rows = torch.as_tensor(table.rows, dtype=torch.float32)
    points = Scaling.of(rows, config.data.columns)(rows)
    found = propose(config, Dataset("points", points, points), clusters, Streams(seed))
    visited = Table(table.rows[found.numbers.numpy()], table.classes[found.numbers.numpy()])
    nmi, ari = _agreement(visited.classes, found.parts.numpy())
    return Outcome(nmi, ari, time.process_time() - began, number=spectrum(found.graph).clusters)


def _ours(table: Parted, clusters: int, seed: int, changes: Settings | None = None) -> Outcome:
    began = time.process_time()
    settings = merge({"preset": "table", "seed": seed}, changes or {})
    fitted = fit(table.learnt.rows.astype(np.float32), settings, clusters=clusters)
    labels, unseen = (fitted.predict(part.rows.astype(np.float32)).numpy() for part in table)
    seconds = time.process_time() - began
    verdict = fitted.verdict or {}
    kept = verdict.get("checks", {}).get("information_kept", {}).get("value")
    return _outcome(table, labels, unseen, seconds)._replace(word=verdict.get("word", ""), kept=kept)


def _outcome(table: Parted, labels: np.ndarray, unseen: np.ndarray | None, seconds: float) -> Outcome:
    nmi, ari = _agreement(table.learnt.classes, labels)
    return Outcome(nmi, ari, seconds, None if unseen is None else _agreement(table.unseen.classes, unseen)[0])


def _agreement(classes: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """NMI and ARI, of rows that have a class."""
    real = classes >= 0
    told = classes[real], labels[real]
    return float(normalized_mutual_info_score(*told)), float(adjusted_rand_score(*told))
