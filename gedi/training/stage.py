"""What a stage of training is: frozen settings, nothing that changes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from gedi.logic import Constraint
from gedi.sampling import Initial, Langevin, Teleport
from gedi.types import Clustered
from gedi.views.manifold import Direction

#: Which energy a walk follows: the one the stage began with, the live one, or the control ``|x|^2 / 2``.
WalkEnergy = Literal["stage1", "live", "radial"]


class StepOutputs(NamedTuple):
    """Everything a term may look at. What no term of the stage needs is None or missing."""

    data: Clustered | None
    views: dict[str, Clustered]
    energy_data: Tensor | None
    energy_negatives: Tensor | None
    noised_score: Tensor | None
    noise: Tensor | None
    progress: float
    grouped: int = 0  # so many rows, the first, come in groups
    labels: Tensor | None = None  # only the supervised upper bound looks


Term = Callable[[StepOutputs], Tensor]
Augment = Callable[[Tensor, torch.Generator], Tensor]


@dataclass(frozen=True)
class Weight:
    """The weight of a term: 0 until ``start`` of the stage, then rising over ``ramp`` of it."""

    value: float
    start: float = 0.0
    ramp: float = 0.0

    def at(self, progress: float) -> float:
        """The weight at a share of the stage."""
        if progress < self.start:
            return 0.0
        return self.value * (min(1.0, (progress - self.start) / self.ramp) if self.ramp > 0 else 1.0)


@dataclass(frozen=True)
class Negatives:
    """How samples from the model are drawn in each step."""

    chains: int
    langevin: Langevin
    initial: Initial  # where re-initialised chains begin
    teleport: Teleport
    teleports: int = 0
    reinit: float = 0.0
    data_noise: float = 0.0  # noise on the data they are held against; images have no density without


@dataclass(frozen=True)
class Naming:
    """When symbols are aligned with a constraint: at shares ``moments`` of the stage."""

    constraint: Constraint
    moments: tuple[float, ...]
    restarts: int = 200
    decode: bool = True  # prototypes may also be drawn anew, from finer clusters

    def due(self, iteration: int, iterations: int) -> bool:
        """Whether this iteration begins with an alignment."""
        return due(self.moments, iteration, iterations)


def due(moments: tuple[float, ...], iteration: int, iterations: int) -> bool:
    """Whether an iteration is at one of the moments, which are shares of the stage.

    Example:
        >>> due((0.5,), 50, 100), due((0.5,), 51, 100)
        (True, False)
    """
    return iteration in {round(moment * iterations) for moment in moments}


@dataclass(frozen=True)
class Walk:
    """How manifold walks are made.

    ``refresh`` 0 walks every training point once, at the start of the stage; k > 0 walks them again every
    k iterations. With ``live`` energy and ``refresh`` 1 only the batch is walked, every step (the paper); so it is
    where there are so many points that none comes twice.
    """

    energy: WalkEnergy
    steps: int
    radius: float
    direction: Direction
    corrector: float
    inertia: float
    refresh: int
    relax: Langevin | None = None  # moves back to the data after every step
    composed: bool = False  # the augmented view is taken of the walk's end; else the end is a view of its own

    @property
    def every_step(self) -> bool:
        """Whether each batch is walked on its own."""
        return self.refresh == 1


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
        terms: name -> (weight, term). Only what they need is computed.
        optimiser: learning rate and its course.
        view_noise: width of the noise on the augmented view, or None for no such view.
        augment: what else is done to the augmented view.
        augment_both: the data are clustered through an augmentation of their own too, not as they are.
        naming: alignment of symbols, or None.
        merging: shares of the stage at which prototypes are merged from finer clusters.
        fresh_optimiser: begin without the moments of the stage before. A density's gradients are large, and a
            short stage after it would crawl until Adam has forgotten them.
        walk: the manifold view, or None.
        negatives: samples from the model, or None.
        denoising: width of the blur of score matching, or None.
        average: decay of the weights' running average, which replaces them at the stage's end; 0 is off.
        clusters_from: terms whose sum tells good restarts from bad; empty for stages that are not
            restarted.
    """

    name: str
    iterations: int
    batch_size: int
    terms: Mapping[str, tuple[Weight, Term]]
    optimiser: Optimiser
    view_noise: float | None = None
    augment: Augment | None = None
    augment_both: bool = False
    naming: Naming | None = None
    merging: tuple[float, ...] = ()
    fresh_optimiser: bool = False
    walk: Walk | None = None
    negatives: Negatives | None = None
    denoising: float | None = None
    average: float = 0.0
    clusters_from: tuple[str, ...] = field(default=())

    def values(self, out: StepOutputs) -> dict[str, Tensor]:
        """The value of each term, unweighted."""
        return {name: term(out) for name, (_, term) in self.terms.items()}
