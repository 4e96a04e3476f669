"""What a stage of training is: frozen settings and bound parts, nothing that changes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from gedi.densities.density import Density
from gedi.graph import WalkGraph
from gedi.moves.move import Augment, Move
from gedi.objectives.objective import Objective
from gedi.precision import full_precision
from gedi.sampling import Langevin
from gedi.types import EnergyFn
from gedi.views import denoise_walk, gaussian_noise, latent_walk, manifold_walk, noise_as_long
from gedi.views.manifold import Direction

#: Which energy a walk follows: the one the stage began with, the live one, or a control: ``|x|^2 / 2``, or noise that
#: is as long as the walk on the one the stage began with; or it goes from training point to training point on their
#: graph.
WalkEnergy = Literal["stage1", "live", "radial", "noise", "graph"]


@dataclass(frozen=True)
class View:
    """How the augmented view of points is made: ``augment``, then noise of width ``noise``.

    ``both`` clusters the data through an augmentation of their own too, not as they are. Before the share ``start`` of
    the stage there is noise alone.
    """

    noise: float
    augment: Augment | None = None
    both: bool = False
    start: float = 0.0

    def at(self, progress: float) -> "View":
        """The view as it is at a share of the stage."""
        return self if progress >= self.start else replace(self, augment=None)

    @full_precision  # coordinates in half precision would be tenths of pixels off
    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """The augmented view of a batch."""
        return gaussian_noise(self.without_noise(x, generator), self.noise, generator)

    @full_precision
    def without_noise(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """The batch augmented, and nothing added."""
        return x if self.augment is None else self.augment(x, generator)


@dataclass(frozen=True)
class Walk:
    """How manifold walks are made.

    ``refresh`` 0 walks every training point once, when walks begin (at the share ``start`` of the stage); k > 0 walks
    them again every k iterations. With ``live`` energy and ``refresh`` 1 only the batch is walked, every step (the
    paper); so it is where there are so many points that none comes twice.
    """

    energy: WalkEnergy
    steps: int
    radius: float | None  # None: the density's own choice, of walks that denoise
    direction: Direction | Literal["denoise", "latent"]
    corrector: float
    inertia: float
    refresh: int
    relax: Langevin | None = None  # moves back to the data after every step
    composed: bool = False  # the augmented view is taken of the walk's end; else the end is a look of its own
    share: float = 1.0  # of the points that walk, the others stay; not on a graph
    start: float = 0.0  # share of the stage before which points stay where they are
    graph: WalkGraph | None = None  # of the training points, in their order; walks go along it

    @property
    def every_step(self) -> bool:
        """Whether each batch is walked on its own."""
        return self.refresh == 1

    @property
    def frozen(self) -> bool:
        """Whether the energy that the stage began with is kept for it."""
        return self.energy in ("stage1", "noise")

    def first(self, iterations: int) -> int:
        """The iteration at which walks begin, of a stage of so many."""
        return round(self.start * iterations)

    def __call__(self, energy: EnergyFn, x: Tensor, generator: torch.Generator, every: int = 0) -> Tensor:
        """The end of a walk from each point, or its path, at every ``every``-th step."""
        ends = self._walked(energy, x, generator, every)
        return noise_as_long(x, ends, generator) if self.energy == "noise" else ends

    def _walked(self, energy: EnergyFn, x: Tensor, generator: torch.Generator, every: int) -> Tensor:
        if self.direction == "denoise":
            return denoise_walk(energy, x, generator, steps=self.steps, width=self.radius, every=every)
        relax = self.relax
        assert self.radius is not None
        if self.direction == "latent":
            return latent_walk(energy, x, generator, steps=self.steps, width=self.radius, every=every)
        return manifold_walk(
            energy,
            x,
            generator,
            steps=self.steps,
            radius=self.radius,
            direction=self.direction,
            corrector=self.corrector,
            inertia=self.inertia,
            relax=None if relax is None else lambda e, x, g: relax.run(e, x, g)[0],
            every=every,
        )


@dataclass(frozen=True)
class Optimiser:
    """Adam with warm-up and cosine decay to ``final`` of the learning rate (1 keeps it constant)."""

    learning_rate: float
    betas: tuple[float, float]
    warmup: int
    final: float

    def rate(self, iteration: int, iterations: int) -> float:
        """The learning rate of one iteration."""
        cosine = 0.5 * (1 + math.cos(math.pi * iteration / iterations))
        return (
            self.learning_rate
            * min(1.0, (iteration + 1) / max(self.warmup, 1))
            * (self.final + (1 - self.final) * cosine)
        )


@dataclass(frozen=True)
class Stage:
    """One stage of training.

    Attributes:
        name: what the logs call it.
        iterations: number of optimiser steps.
        batch_size: points a step.
        optimiser: learning rate and its course.
        density: the likelihood model, bound to the run.
        density_weights: of its terms; those of weight 0 are left out.
        density_start: share of the stage before which they are not trained.
        terms: the objectives, bound to the run, by the name that the log gives them. Only what they need is computed.
        moves: global steps, bound to the run.
        view: how the augmented view is made; needed where a term or a move looks at it.
        walk: the manifold walk, or None.
        average: decay of the weights' running average, which replaces them at the stage's end; 0 is off.
        fresh_optimiser: begin without the moments of the stage before. A density's gradients are large, and a
            short stage after it would crawl until Adam has forgotten them.
    """

    name: str
    iterations: int
    batch_size: int
    optimiser: Optimiser
    density: Density
    density_weights: Mapping[str, float] = field(default_factory=dict)
    density_start: float = 0.0
    terms: Mapping[str, Objective] = field(default_factory=dict)
    moves: Mapping[str, Move] = field(default_factory=dict)
    view: View | None = None
    walk: Walk | None = None
    average: float = 0.0
    fresh_optimiser: bool = False

    @property
    def looks(self) -> frozenset[str]:
        """The looks at the data that its terms need."""
        return frozenset(look for term in self.terms.values() for look in term.looks)

    @property
    def clusters_from(self) -> tuple[str, ...]:
        """Terms whose sum tells good restarts from bad; a stage without any is not restarted."""
        return tuple(name for name, term in self.terms.items() if term.shapes == "clusters")

    @property
    def looks_at_labels(self) -> bool:
        """Whether a term does: only the upper bound."""
        return any(term.needs_labels for term in self.terms.values())

    @property
    def looks_at_few(self) -> bool:
        """Whether a term or a move looks at the few labels that are told."""
        return any(term.needs_few for term in self.terms.values()) or any(
            move.needs_few for move in self.moves.values()
        )

    def shares_out(self, progress: float) -> bool:
        """Whether a term in force gives every cluster its share: one cluster for all points is then an accident."""
        return any(term.shares_out and term.at(progress) > 0 for term in self.terms.values())

    def density_at(self, progress: float) -> Mapping[str, float]:
        """The weights of the density's terms at a share of the stage."""
        return self.density_weights if progress >= self.density_start else {}

    def weights(self, progress: float) -> dict[str, float]:
        """The weight of every term at a share of the stage, in the order they are summed."""
        given = self.density_at(progress)
        density = {name: given[name] for name in self.density.terms if given.get(name)}
        return density | {name: term.at(progress) for name, term in self.terms.items()}


def radial_energy(x: Tensor) -> Tensor:
    """The control: score ``-x`` with no model at all. Circles fall to it; moons do not."""
    return x.flatten(1).square().sum(dim=1) / 2
