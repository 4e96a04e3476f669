"""The guard: looks at a training now and then, and says when it goes wrong. It only reads.

The loop asks it every few iterations; what it finds is raised as :class:`Trouble`, and the loop goes back
to a snapshot that a look found clean, softens the stage and goes on, or gives up.
"""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gedi.densities.density import DRIFT, EXTENT, GAP
from gedi.errors import DivergenceError
from gedi.processes import Processes
from gedi.training.stage import Stage
from gedi.training.step import CLUSTERS
from gedi.training.tree import Tree, joined_tree, own_tree

Record = dict[str, Any]

_COLLAPSED = 1.1  # effective clusters; two with shares 98 : 2 count as 1.1
_REMEMBERED = 20  # looks that the usual size of a figure is told by
_SIZE = "size of the terms"
_SLOWER = "lower the learning rate, or sample with density.metropolis=true and density.step_size=null"
_ADVICE = {
    DRIFT: "lower density.step_size, or tie it to the noise with density.step_size=null",
    EXTENT: "keep chains in the box with density.clamp=true, or lower density.step_size",
    CLUSTERS: "lower the learning rate, try another seed, or give the balance of the clusters more weight",
}


@dataclass(frozen=True)
class GuardSettings:
    """What is trouble, and what is done about it.

    Attributes:
        attempts: interventions in one way through a stage before giving up; 0 only stops at numbers that are not
            finite.
        every: iterations between looks.
        soften: each intervention multiplies learning rate and step size of the chains by this.
        penalty: each intervention adds this share of the generative term's weight to that of the squared energies.
        gap: limit of ``|E(data) - E(samples)|``, in nats.
        drift: limit of one move's drift ``alpha |score|``, in diagonals of the box.
        extent: limit of the chains' distance from the box (root mean square), in diagonals of it.
        growth: energy gap and terms are out of hand at this many times their usual size (the median so far, their
            first size or 1, whichever is largest),
        patience: after this number of looks in a row; one cluster for all points has to last as long.
    """

    attempts: int = 5
    every: int = 50
    soften: float = 0.25
    penalty: float = 0.003
    gap: float = 1e4
    drift: float = 1.0
    extent: float = 1.0
    growth: float = 30.0
    patience: int = 3


@dataclass(frozen=True)
class Finding:
    """What is wrong: a figure, its value, and the limit it broke (None: it must be finite).

    Example:
        >>> print(Finding("energy gap", 20000.0, 10000.0))
        energy gap 2e+04, the limit is 1e+04
    """

    cause: str
    value: float
    limit: float | None = None

    def __str__(self) -> str:
        if self.limit is None:
            return f"{self.cause} not finite"
        return f"{self.cause} {self.value:.3g}, the limit is {self.limit:.3g}"

    @property
    def advice(self) -> str:
        """What to do about it."""
        return _ADVICE.get(self.cause, _SLOWER)

    def record(self) -> Record:
        """For the log; numbers that JSON has no name for are written as text."""
        return {
            "cause": self.cause,
            "value": self.value if math.isfinite(self.value) else str(self.value),
            "limit": "finite" if self.limit is None else self.limit,
        }


class Trouble(DivergenceError):
    """A training that goes wrong; the loop may still save it."""

    def __init__(self, stage: str, iteration: int, finding: Finding, outcome: str = "") -> None:
        self.finding = finding
        super().__init__(f"{stage} diverged by iteration {iteration}: {finding}; {outcome}{finding.advice}")


class Guard:
    """Judges figures, keeps snapshots, and counts interventions.

    Two snapshots are kept: of the leg's beginning, and of the last clean look. Trouble leads to the latter; if it
    comes back before another clean look, to the beginning.

    Args:
        settings: see :class:`GuardSettings`.
        processes: that share what is spread in snapshots.

    Example:
        >>> guard = Guard(GuardSettings(gap=100.0))
        >>> guard.look({"energy gap": 3.0}), guard.clean
        (None, True)
        >>> print(guard.look({"energy gap": 101.0}))
        energy gap 101, the limit is 100
    """

    def __init__(self, settings: GuardSettings, processes: Processes | None = None) -> None:
        self.settings = settings
        self._processes = processes or Processes()
        self._seen: dict[str, list[float]] = {}  # the figures of past looks that were as usual
        self._suspicion: dict[str, int] = {}  # looks in a row
        self.begin(None)

    def begin(self, snapshot: Tree | None) -> None:
        """A new leg, from a snapshot of its beginning (None: there is nothing to go back to)."""
        self.interventions = 0
        self.beginning = snapshot
        self.good: Tree | None = None
        self.returned = False  # whether trouble has led back since the last clean look
        self._forget()

    def due(self, iteration: int, iterations: int) -> bool:
        """Whether to look after this number of iterations; always at the end of a stage."""
        return self.settings.attempts > 0 and (iteration % self.settings.every == 0 or iteration == iterations)

    @property
    def clean(self) -> bool:
        """Whether nothing was even suspicious in the last look."""
        return not any(self._suspicion.values())

    def look(self, figures: Mapping[str, float]) -> Finding | None:
        """What is wrong with these figures, if anything is. Every one must be finite; some have limits."""
        s = self.settings
        for cause, value in figures.items():
            if not math.isfinite(value):
                return Finding(cause, value)
        for cause, limit in ((GAP, s.gap), (DRIFT, s.drift), (EXTENT, s.extent)):
            if figures.get(cause, 0.0) > limit:
                return Finding(cause, figures[cause], limit)
        for cause in (GAP, _SIZE):
            if cause in figures and (outgrown := self._outgrown(cause, figures[cause])) is not None:
                return Finding(cause, figures[cause], outgrown)
        if self._lasting(CLUSTERS, figures.get(CLUSTERS, math.inf) < _COLLAPSED):
            return Finding(CLUSTERS, figures[CLUSTERS], _COLLAPSED)
        return None

    def keep(self, snapshot: Tree) -> None:
        """A snapshot of a state that was found clean."""
        self.good, self.returned = snapshot, False

    @property
    def last(self) -> Tree | None:
        """The last good snapshot."""
        return self.good or self.beginning

    def go_back(self) -> Tree | None:
        """The snapshot to go on from, softer than before; None when it is time to give up."""
        if self.interventions >= self.settings.attempts:
            return None
        back = self.beginning if self.returned else self.last
        if back is not None:
            self.interventions += 1
            self.returned = True
            self._forget()
        return back

    def soften(self, stage: Stage) -> Stage:
        """The stage as the interventions so far have left it; the sampler's temperature stays."""
        if not self.interventions:
            return stage
        factor = self.settings.soften**self.interventions
        return replace(
            stage,
            optimiser=replace(stage.optimiser, learning_rate=stage.optimiser.learning_rate * factor),
            density=stage.density.softer(factor),
            density_weights=stage.density.softer_weights(
                stage.density_weights, self.settings.penalty * self.interventions
            ),
        )

    def softened(self, stage: Stage) -> Record:
        """For the log: what the interventions have changed, as it is now."""
        now = self.soften(stage)
        return {"learning_rate": now.optimiser.learning_rate, **now.density.report(now.density_weights)}

    def state_dict(self) -> Record:
        """Everything the next look and the next intervention depend on, the same in every process."""
        return {
            "interventions": self.interventions,
            "beginning": joined_tree(self.beginning, self._processes),
            "good": joined_tree(self.good, self._processes),
            "returned": self.returned,
            "seen": {cause: list(values) for cause, values in self._seen.items()},
            "suspicion": dict(self._suspicion),
        }

    def load_state_dict(self, state: Record) -> None:
        """Go on from a saved state."""
        self.interventions, self.returned = state["interventions"], state["returned"]
        self.beginning, self.good = (own_tree(state[name], self._processes) for name in ("beginning", "good"))
        self._seen = {cause: list(values) for cause, values in state["seen"].items()}
        self._suspicion = dict(state["suspicion"])

    def _forget(self) -> None:
        """A stage that begins, or begins again, has sizes of its own."""
        self._seen, self._suspicion = {}, {}

    def _outgrown(self, cause: str, value: float) -> float | None:
        """The limit, if a figure has been beyond it for as many looks as patience allows."""
        seen = self._seen.setdefault(cause, [])
        usual = max(1.0, seen[0], statistics.median(seen)) if seen else math.inf
        limit = self.settings.growth * usual
        if value <= limit:
            seen.append(value)
            if len(seen) > _REMEMBERED:
                del seen[1]  # the first one stays: a size that a stage begins with is never too large
        return limit if self._lasting(cause, value > limit) else None

    def _lasting(self, cause: str, suspicious: bool) -> bool:
        self._suspicion[cause] = self._suspicion.get(cause, 0) + 1 if suspicious else 0
        return self._suspicion[cause] >= self.settings.patience


def figures_of_terms(stage: Stage, terms: Mapping[str, Tensor], progress: float) -> dict[str, Tensor]:
    """The values, and the sum of the sizes of terms in force; weights are left out, since they may ramp."""
    found = {name: value.detach() for name, value in terms.items()}
    in_force = [found[name].abs() for name, weight in stage.weights(progress).items() if weight > 0]
    return found | ({_SIZE: torch.stack(in_force).sum()} if in_force else {})
