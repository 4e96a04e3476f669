"""The way through the stages: one after the other, some of them tried several times."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gedi.processes import Processes
from gedi.training.stage import Stage
from gedi.training.tree import Tree, joined_tree, own_tree


@dataclass(frozen=True)
class Leg:
    """One way through one stage: a restarted stage has several legs.

    Attributes:
        stage: which one.
        restart: which try at it; None for a stage that is not tried several times.
        streams: name of the random streams of the try; None for those of the run.
        fresh_heads: whether the cluster head is drawn anew: no stage before has shaped clusters.
    """

    stage: Stage
    restart: int | None = None
    streams: str | None = None
    fresh_heads: bool = False

    def record(self, iteration: int) -> dict[str, Any]:
        """How a line of the log begins."""
        which = {} if self.restart is None else {"restart": self.restart}
        return {"stage": self.stage.name, "iteration": iteration, **which}


class Course:
    """Where training is among its legs, and the copies of the state that restarts need.

    A stage with terms that shape clusters is tried up to ``n_init`` times, each time from the end of the stage before;
    the try with the lowest selection loss is kept. No label takes part. Only the last such stage may be good enough.

    Args:
        stages: in order.
        n_init: at most this many tries.
        good_enough: the selection loss at which no further try is made; None makes them all.
        processes: that share what is spread.

    Attributes:
        at: which leg.
        begun: whether it has.
        trunk: where restarts branch off.
        best: the state of the best try so far.
        selection_losses: of every try so far at the stage, or at the last one that was tried.
    """

    def __init__(self, stages: Sequence[Stage], n_init: int, good_enough: float | None, processes: Processes) -> None:
        self.n_init, self.good_enough, self._processes = n_init, good_enough, processes
        self.legs = [leg for number in range(len(stages)) for leg in _legs(stages, number, n_init)]
        self._last_tried = next((stage for stage in reversed(stages) if stage.clusters_from), None)
        self.at, self.begun = 0, False
        self.trunk: Tree = None
        self.best: Tree = None
        self.selection_losses: list[float] = []

    @property
    def over(self) -> bool:
        """Whether every leg is."""
        return self.at == len(self.legs)

    @property
    def leg(self) -> Leg:
        """The leg that training is in."""
        return self.legs[self.at]

    def begin(self) -> None:
        """The leg begins."""
        self.begun = True
        if self.leg.restart == 0:
            self.selection_losses = []

    def change(self, stage: Stage) -> None:
        """The leg, and every other try at its stage, go on as this one."""
        before = self.leg.stage
        self.legs = [replace(leg, stage=stage) if leg.stage is before else leg for leg in self.legs]
        self._last_tried = stage if self._last_tried is before else self._last_tried

    def keep_heads(self) -> None:
        """No leg draws the cluster head anew: it is one that was trained before."""
        self.legs = [replace(leg, fresh_heads=False) for leg in self.legs]

    def next(self) -> None:
        """The leg is over."""
        self.at, self.begun = self.at + 1, False

    def tried(self, loss: float, state: Callable[[], Tree]) -> Tree | None:
        """A try is over; the state to go on from, once it was the last. ``state`` makes a copy of the try's."""
        leg = self.legs[self.at - 1]
        if not self.selection_losses or loss < min(self.selection_losses):
            self.best = state()
        self.selection_losses.append(loss)
        enough = leg.stage is self._last_tried and self.good_enough is not None and loss <= self.good_enough
        if not enough and leg.restart != self.n_init - 1:
            return None
        best, self.trunk, self.best = self.best, None, None
        while not self.over and self.leg.stage is leg.stage:
            self.at += 1
        return best

    @property
    def can_lose(self) -> bool:
        """Whether this try may be given up: another follows, or one that came through is kept."""
        restart = self.leg.restart
        return restart is not None and (restart + 1 < self.n_init or any(map(math.isfinite, self.selection_losses)))

    def state_dict(self) -> dict[str, Any]:
        """Where training is, the same in every process."""
        trees = {name: joined_tree(getattr(self, name), self._processes) for name in ("trunk", "best")}
        return {"at": self.at, "begun": self.begun, "selection_losses": list(self.selection_losses), **trees}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self.at, self.begun, self.selection_losses = state["at"], state["begun"], list(state["selection_losses"])
        self.trunk, self.best = (own_tree(state[name], self._processes) for name in ("trunk", "best"))


def _legs(stages: Sequence[Stage], number: int, n_init: int) -> list[Leg]:
    """The ways through one of the stages; of those that are tried, each has random streams of its own."""
    stage, before = stages[number], stages[:number]
    if not stage.clusters_from:
        return [Leg(stage)]
    first = not any(earlier.clusters_from for earlier in before)
    where = "" if first else f"{stage.name}/"
    return [Leg(stage, restart, f"{where}restart/{restart}", first) for restart in range(n_init)]
