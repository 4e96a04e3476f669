"""What a stage of training is: frozen settings, nothing that changes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from torch import Tensor

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


Term = Callable[[StepOutputs], Tensor]


@dataclass(frozen=True)
class Negatives:
    """How samples from the model are drawn in each step."""

    chains: int
    langevin: Langevin
    initial: Initial  # where re-initialised chains begin
    teleport: Teleport
    teleports: int = 0
    reinit: float = 0.0


@dataclass(frozen=True)
class Walk:
    """How manifold walks are made.

    ``refresh`` 0 walks every training point once, at the start of the stage; k > 0 walks them again every
    k iterations. With ``live`` energy and ``refresh`` 1 only the batch is walked, every step (the paper).
    """

    energy: WalkEnergy
    steps: int
    radius: float
    direction: Direction
    corrector: float
    inertia: float
    refresh: int

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
        view_noise: width of the Gaussian view, or None for no such view.
        walk: the manifold view, or None.
        negatives: samples from the model, or None.
        denoising: width of the blur of score matching, or None.
        average: decay of the weights' running average, which replaces them at the stage's end; 0 is off.
        clusters_from: terms whose weighted sum tells good restarts from bad; empty for stages that are not
            restarted.
    """

    name: str
    iterations: int
    batch_size: int
    terms: Mapping[str, tuple[float, Term]]
    optimiser: Optimiser
    view_noise: float | None = None
    walk: Walk | None = None
    negatives: Negatives | None = None
    denoising: float | None = None
    average: float = 0.0
    clusters_from: tuple[str, ...] = field(default=())
