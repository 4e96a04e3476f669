"""What a measure is: figures of a trained model, what they say, and what they need."""

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from gedi.building import walk_settings
from gedi.config import Config
from gedi.data import Dataset, chunks, is_sharded, spread
from gedi.densities.density import Density
from gedi.evaluation import kmeans_clusters
from gedi.graph import Spectrum, WalkGraph, spectrum
from gedi.logic import Constraint
from gedi.methods import has_clusters, has_density
from gedi.nn import Model
from gedi.random import Streams
from gedi.sampling import Box
from gedi.training import Walk
from gedi.types import Clustered, EnergyFn, Points

SAMPLES = 1000  # of a density, held against at most as many test points: of sets of one size chance is a half
CHAINS = 64  # images that are sampled anew
AT_A_TIME = 1000  # points that go through the network together


class Trained:
    """A trained model with its data: what measures look at. What several of them need is computed once.

    Args:
        model: trained.
        config: with its method's changes.
        density: bound to the run.
        data: its test part is judged.
        box: where samples live.
        streams: everything drawn follows from them.
        constraint: the rule, where there is one.
        chains: the persistent chains of training, where there are any.
        few: how many images of which symbol had a label that training looked at.
    """

    def __init__(
        self,
        model: Model,
        config: Config,
        density: Density,
        data: Dataset,
        box: Box,
        streams: Streams,
        constraint: Constraint | None = None,
        chains: Tensor | None = None,
        few: Mapping[int, int] | None = None,
    ) -> None:
        self.model, self.config, self.density, self.data = model.eval(), config, density, data
        self.box, self.streams, self.constraint, self.chains = box, streams, constraint, chains
        self.few = few or {}
        self.images = len(data.test.shape) == 4
        self.has_clusters, self.has_density = has_clusters(config), has_density(config)

    @cached_property
    def seen(self) -> Clustered:
        """What the cluster side says of the test points."""
        return seen_of(self.model, self.data.test)

    @cached_property
    def predicted(self) -> Tensor:
        """The cluster of each test point; for a method without a cluster head k-means speaks."""
        return self.seen.logits.argmax(dim=1) if self.has_clusters else self._by_kmeans()

    @cached_property
    def some(self) -> Tensor:
        """Numbers of the test rows that a density is held against: all of them, or as many as are sampled."""
        return chosen(self.data.test, SAMPLES, self.streams["judged"])

    @cached_property
    def energy(self) -> EnergyFn:
        """Of the density."""
        return self.density.energy(self.model)

    @cached_property
    def samples(self) -> Tensor:
        """Points of the density that owe nothing to training."""
        n = CHAINS if self.images else min(SAMPLES, len(self.some))
        return self.density.sample(self.model, n, self.streams["assess"])

    @property
    def has_graph(self) -> bool:
        """Whether a kernel density's points are there to be joined by a graph, and the settings walk on it."""
        return self.config.walk.energy == "graph" and self.density.kind == "kernel"

    @cached_property
    def graph(self) -> WalkGraph:
        """Of the points that the kernel density stands on."""
        assert self.model.density is not None
        points = self.model.density.points
        assert isinstance(points, Tensor)
        return WalkGraph.of(points)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Of that graph."""
        return spectrum(self.graph)

    @property
    def walk(self) -> Walk:
        """As the settings have it."""
        return walk_settings(self.config)

    def _by_kmeans(self) -> Tensor:
        """Clusters of the embeddings if the method trains any, else of the latents."""
        terms = [term for stage in self.config.stages.values() for term in stage.terms.values()]
        features = self.seen.embedding if any(term.shapes == "embedding" for term in terms) else self.seen.latent
        clusters = self.config.model.clusters or self.data.clusters
        assert isinstance(clusters, int)
        few, seed = min(clusters, len(features)), self.config.seed % 2**32  # k-means takes no larger one
        return torch.as_tensor(kmeans_clusters(features.cpu().numpy(), few, seed)).long()


class Measure:
    """Some figures of a trained model. A subclass is one file and nothing else.

    Attributes:
        kind: what it is called.
        about: what each of its figures says, by its name, for the report.
        order: measures draw from the run's streams one after the other, in this order.
    """

    kind: ClassVar[str]
    about: ClassVar[dict[str, str]]
    order: ClassVar[int] = 100

    def applies(self, trained: Trained) -> bool:
        """Whether there is what it needs."""
        return True

    def __call__(self, trained: Trained) -> dict[str, float]:
        """Its figures, by their names."""
        raise TypeError(f"{type(self).__name__} must define __call__(trained)")


@torch.no_grad()
def seen_of(model: Model, x: Points) -> Clustered:
    """What the cluster side says of many points, a part at a time; the density is not asked."""
    parts = (model.clustered(part)[:3] for part in chunks(x, AT_A_TIME))
    return Clustered(*map(torch.cat, zip(*parts, strict=True)))


def chosen(points: Points, most: int, generator: torch.Generator) -> Tensor:
    """Indices of all points, or of ``most`` of them at random; of shards, whose reads cost, a few from everywhere."""
    if is_sharded(points):
        return spread(len(points), min(most, SAMPLES))
    if len(points) <= most:
        return torch.arange(len(points))
    return torch.randperm(len(points), generator=generator)[:most].sort().values
