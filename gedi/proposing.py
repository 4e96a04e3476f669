"""What the graph of a table's points proposes before any training: clusters, their shares, lengths and steps."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from torch import Tensor

from gedi.config import Config
from gedi.data import Dataset, is_sharded, spread
from gedi.errors import UserError
from gedi.graph import (
    WalkGraph,
    cut_shares,
    information_kept_by_cut,
    longest_walk,
    normalised_cut,
    some_of,
    spectrum,
)
from gedi.nn import Model
from gedi.random import Streams

MOST_CLUSTERS = 15  # that the graph proposes where nobody says how many
_VISITED = 2500  # points, where no kernel density says how many it stands on
_SHARPEST = 4.0  # of the first layer, for points of unit spread
_RIDGE = 1e-3  # of a mixture's covariances
_ROUNDS = 10  # in which a proposal may settle along the graph


@dataclass(frozen=True)
class Proposal:
    """A clustering of the points that training visits, and what follows from their distances.

    Attributes:
        numbers: of the training points visited, (m,).
        graph: of these points.
        parts: the cluster proposed for each, (m,).
        source: what proposed it.
        information: what a walk step keeps of each proposal, by its source.
        steps: of walks, most of which stay in their part.
    """

    numbers: Tensor
    graph: WalkGraph
    clusters: int
    parts: Tensor
    source: str
    information: dict[str, float]
    steps: int

    @property
    def shares(self) -> Tensor:
        """Of the clusters; none is quite 0."""
        shares = cut_shares(self.parts, self.clusters).clamp_min(1 / (2 * len(self.parts)))
        return (shares / shares.sum()).float()

    @property
    def length(self) -> float:
        """How far apart near points are in each column, on average."""
        return float(self.graph.scales.median()) / math.sqrt(self.graph.points.shape[1])

    def settled(self, config: Config) -> Config:
        """The settings with what follows from the points: number of clusters, steps of walks, noise and the like."""
        sharpness = None if config.model.sharpness is None else min(_SHARPEST, config.model.sharpness / self.length)
        stages = {
            name: stage.model_copy(update={"batch_size": min(stage.batch_size, len(self.parts))})
            for name, stage in config.stages.items()
        }
        return config.model_copy(
            update={
                "model": config.model.model_copy(update={"sharpness": sharpness, "clusters": self.clusters}),
                "augment": config.augment.model_copy(update={"noise": config.augment.noise * self.length}),
                "walk": config.walk.model_copy(update={"steps": self.steps}),
                "stages": stages,
            }
        )

    def visited(self, data: Dataset) -> Dataset:
        """The data with only those training points that are visited."""
        labels = None if data.train_labels is None else data.train_labels[self.numbers]
        groups = len(self.numbers) // data.group_size if data.groups else 0
        return replace(data, train=data.train[self.numbers], train_labels=labels, groups=groups)


def unsettled(config: Config) -> Config:
    """The settings without what follows from the points, if anything does: those of one run are then the same."""
    if not has_graph(config):
        return config
    sharpness = None if config.model.sharpness is None else 1.0
    stages = {name: stage.model_copy(update={"batch_size": 1}) for name, stage in config.stages.items()}
    return config.model_copy(
        update={
            "model": config.model.model_copy(update={"sharpness": sharpness, "clusters": None}),
            "augment": config.augment.model_copy(update={"noise": 1.0}),
            "walk": config.walk.model_copy(update={"steps": 1}),
            "stages": stages,
        }
    )


def has_graph(config: Config) -> bool:
    """Whether lengths follow from the graph of the points: for every method alike, walking or not."""
    return config.walk.energy == "graph"


def clusters_asked(config: Config, data: Dataset) -> int | None:
    """How many the settings or else the labels say; None leaves it to the graph's spectrum."""
    asked = config.model.clusters
    if asked != "auto":
        return asked or data.clusters
    if not has_graph(config):
        raise UserError("model.clusters=auto asks the graph of a table's points, of walk.energy=graph: give a number")
    return None


def needs_graph(config: Config) -> bool:
    """Whether a term of the config walks on the graph of the points, or begins from what it proposes."""
    stages = [stage for stage in config.stages.values() if stage.iterations]
    asked = any("walk" in stage.looks or (config.walk.composed and "view" in stage.looks) for stage in stages)
    begun = any(term.kind == "proposed" and term.weight > 0 for stage in stages for term in stage.terms.values())
    return has_graph(config) and (asked or begun)


def propose(config: Config, data: Dataset, clusters: int | None, streams: Streams) -> Proposal:
    """Clusters of the training points, or of as many of them as are visited.

    The graph's cut, k-means and a mixture of Gaussians compete: each settles along the graph, then what a walk step
    keeps of it counts. Labels take no part.

    Args:
        config: with its method's changes.
        data: its training part.
        clusters: how many; None lets the graph's spectrum say.
        streams: everything drawn follows from them.
    """
    if needs_graph(config) and config.density.kind != "kernel":
        raise UserError(
            f"walks on the graph need density.kind=kernel, whose points it joins, got {config.density.kind}"
        )
    if len(data.train.shape) != 2:
        raise UserError(f"the graph is of rows of a table, got points of shape {tuple(data.train.shape[1:])}")
    if data.groups and data.groups * data.group_size < len(data.train):
        raise UserError("the graph visits whole groups: data with points in none need walk.energy=stage1 or live")
    n, most = len(data.train), getattr(config.density, "points", _VISITED)
    if n < 4:
        raise UserError(f"the graph needs at least 4 training points, got {n}")
    generator = streams["graph"]
    numbers = spread(n, most) if is_sharded(data.train) else _some_groups(n, most, data, generator)
    graph = WalkGraph.of(data.train[numbers])
    found = clusters or spectrum(graph, MOST_CLUSTERS).clusters
    rows, seed = graph.points.numpy(), int(torch.randint(2**31, (), generator=generator))
    by = {"cut": normalised_cut(graph, found, generator).parts if found > 1 else torch.zeros(len(graph)).long()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer different points than parts: the cut stands
        # a part's rows tell a whole covariance only where they are more than the columns
        shape = "full" if len(rows) >= found * rows.shape[1] else "diag"
        mixture = GaussianMixture(found, covariance_type=shape, n_init=3, random_state=seed, reg_covar=_RIDGE)
        by["k-means"] = torch.from_numpy(KMeans(found, n_init=10, random_state=seed).fit_predict(rows)).long()
        by["mixture"] = torch.from_numpy(mixture.fit_predict(rows)).long()
    kept = {source: information_kept_by_cut(graph, settle(graph, parts, found)) for source, parts in by.items()}
    best = max(kept, key=lambda source: kept[source])
    return Proposal(numbers, graph, found, by[best], best, kept, longest_walk(graph, by[best]))


def _some_groups(n: int, most: int, data: Dataset, generator: torch.Generator) -> Tensor:
    """Numbers of all points, or of ``most`` at random; points in groups come with their whole group."""
    size = data.group_size if data.groups else 1
    chosen = some_of(n // size, max(1, most // size), generator)
    return (chosen[:, None] * size + torch.arange(size)).flatten()


def settle(graph: WalkGraph, parts: Tensor, clusters: int) -> Tensor:
    """Each point goes to the part that its walk steps lead to most, again and again until none moves."""
    for _ in range(_ROUNDS):
        inside = torch.nn.functional.one_hot(parts, clusters).double()
        after = torch.from_numpy(graph.transition @ inside.numpy()).argmax(dim=1)
        if torch.equal(after, parts) or len(after.unique()) < len(parts.unique()):  # type: ignore[no-untyped-call]
            return parts
        parts = after
    return parts


def graph_walk(model: Model, config: Config, seed: int) -> Callable[[Tensor], Tensor]:
    """Walks that go on from the nearest of the points that the model keeps: (n, d) -> (n, d)."""
    kept = model.density.points  # type: ignore[union-attr]
    assert isinstance(kept, Tensor)
    graph, generator = WalkGraph.of(kept), Streams(seed)["walk"]

    def walk(x: Tensor) -> Tensor:
        nearest = torch.cdist(x.double(), kept.double()).argmin(dim=1)
        return kept[graph.walk(nearest, config.walk.steps, generator)]

    return walk
