"""The loop: stages in order, restarts of some of them, one step after the other."""

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

from gedi.data import is_sharded
from gedi.densities.density import Density
from gedi.errors import UserError
from gedi.moves.move import Move, Proposal
from gedi.nn import Model
from gedi.objectives.objective import Few
from gedi.processes import Processes
from gedi.random import Streams
from gedi.training.batches import Batches
from gedi.training.course import Course, Leg
from gedi.training.guard import Finding, Guard, GuardSettings, Trouble, figures_of_terms
from gedi.training.sharding import gather, gathered
from gedi.training.stage import Stage
from gedi.training.state import State, size
from gedi.training.step import Batch, JointPass, Result, make_batch
from gedi.training.streams import RunStreams
from gedi.training.walks import Walks
from gedi.types import Points

Record = dict[str, Any]
_TOLD = 8  # points of a batch whose labels are told: so few that they tip no shares


@dataclass(frozen=True)
class TrainerSettings:
    """What the loop needs beyond the stages.

    Attributes:
        n_init: at most this many tries at a stage whose terms shape clusters.
        good_enough: the selection loss at which no further try is made; None makes them all.
        log_every: iterations between log lines.
        guard: what is trouble, and what is done about it.
    """

    n_init: int = 1
    good_enough: float | None = None
    log_every: int = 50
    guard: GuardSettings = field(default_factory=GuardSettings)


class Trainer:
    """Trains a model through its stages.

    Args:
        model: the network; trained in place.
        train: the data, (n, *shape), on the fabric's device; indexing gives points.
        density: the likelihood model, bound to the run; stages have the same.
        stages: in order; see :class:`~gedi.training.course.Course` for how they are tried.
        streams: the run's random streams.
        fabric: device, precision and processes, launched. Batches and chains are shared out among the processes;
            every process must call what this class offers, and every one ends with the same model.
        settings: see :class:`TrainerSettings`.
        on_log: called with a record of figures every ``log_every`` iterations, of every move, and of every
            intervention of the guard.
        group_size, groups: the first ``groups * group_size`` points come in groups, which batches never cut.
        labels: only for a stage with the supervised term.
        proposed: the cluster proposed for each point, for a stage that begins from it.
        answers: what was observed of each group, where the constraint has several queries.
        few: points whose labels are told, for a stage with a term that looks at them.

    Attributes:
        processes: this process among all.
        course: where training is among its stages.
        state: all that a step changes.
        seconds: spent in each stage.
        last_good: when :meth:`fit` gave up, the iteration of the leg that the state was put back to; None where there
            is no good model.
        samples: what the density has left of them, once training is finished; None where it keeps none.
    """

    def __init__(
        self,
        model: Model,
        train: Points,
        density: Density,
        stages: Sequence[Stage],
        streams: Streams,
        fabric: Fabric,
        settings: TrainerSettings,
        on_log: Callable[[Record], None] = lambda record: None,
        *,
        group_size: int = 1,
        groups: int = 0,
        labels: Tensor | None = None,
        proposed: Tensor | None = None,
        answers: Tensor | None = None,
        few: Few | None = None,
    ) -> None:
        self.processes = Processes(fabric.global_rank, fabric.world_size)
        self.model, self.density, self.train, self.labels = model, density, train, labels
        self.group_size, self.groups, self.proposed, self.answers = group_size, groups, proposed, answers
        self.few = few
        for stage in stages:
            _check(stage, train, self._new_batches, self.processes)
        self.settings, self.on_log, self.fabric = settings, on_log, fabric
        self.course = Course(stages, settings.n_init, settings.good_enough, self.processes)
        self.streams = RunStreams(streams, self.processes)
        self.guard = Guard(settings.guard, self.processes)
        self.batches = self._new_batches(stages[0].batch_size if stages else group_size)
        self.network = fabric.setup_module(JointPass(model, self.processes))
        self.optimizer = fabric.setup_optimizers(torch.optim.Adam(model.parameters(), fused=True))
        self.state = State(self.network.module, self.optimizer, self.processes, fabric.device)
        self.walks = Walks(train, density, self.network.module, self.processes, fabric)
        self.state.density = density.begin(self.streams.shared["buffer"])
        self.seconds: dict[str, float] = {}
        self.last_good: int | None = None
        self.samples: Tensor | None = None

    def fit(self, stop_after: int | None = None) -> None:
        """Run every leg, or at most ``stop_after`` iterations of them; those undone by the guard count too."""
        self.network.train()
        done = 0
        while not self.course.over:
            leg = self.course.leg
            if not self.course.begun:
                self._begin(leg)
            with _timed(self.seconds, leg.stage.name):
                while self.state.iteration < leg.stage.iterations and done != stop_after:
                    done += 1
                    try:
                        self.step(leg)
                    except Trouble as trouble:
                        self._intervene(leg, trouble.finding)
            if self.state.iteration < leg.stage.iterations:
                return
            self._end(leg)
        self.network.eval()

    def step(self, leg: Leg) -> None:
        """One step: moves that are due, batch with its looks and draws, one pass, terms, update, record."""
        stage = self.guard.soften(leg.stage)
        progress = self.state.iteration / stage.iterations
        watching = self.guard.due(self.state.iteration + 1, stage.iterations)
        self._make_moves(leg, stage)
        batch = self._next_batch(stage, progress)
        result = self._passed(stage, batch, watching)
        loss = self._update(stage, result, progress)
        self._record(leg, stage, batch, result, loss)
        if watching:
            self._watch(leg, stage, batch, result)

    def finish(self) -> None:
        """Training is over: every process gets the whole model, on the CPU, and the samples of all."""
        with gathered(self.state.module):
            self.model = copy.deepcopy(self.model) if self.processes.size > 1 else self.model
        self.model.cpu().eval()
        kept = self.density.kept(self.state.density)
        self.samples = None if kept is None else self.processes.whole(kept.rows, kept.total).cpu()

    def state_dict(self) -> Record:
        """All state: with it and the same data a run goes on bit for bit, with as many processes.

        It is the same in every process, so that a run may go on with another number of them.
        """
        return {name: part.state_dict() for name, part in self._parts().items()} | {
            "batch_size": self.batches.batch_size,
            "seconds": dict(self.seconds),
        }

    def load_state_dict(self, state: Record) -> None:
        """Go on from a saved state, of a run with as many processes or with another number of them."""
        self.batches = self._new_batches(state["batch_size"])
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.seconds = dict(state["seconds"])

    def _parts(self) -> dict[str, Any]:
        """Everything with a state of its own; walks come after the state, from whose network they are frozen."""
        return {
            "course": self.course,
            "streams": self.streams,
            "batches": self.batches,
            "state": self.state,
            "walks": self.walks,
            "guard": self.guard,
            "precision": self.fabric.strategy.precision,  # the scale of float16's gradients
        }

    def _new_batches(self, batch_size: int) -> Batches:
        """Batches of whole groups; a size that would cut one is refused."""
        return Batches(len(self.train), batch_size, group_size=self.group_size, groups=self.groups)

    def _begin(self, leg: Leg) -> None:
        stage, state = leg.stage, self.state
        self.streams.select(leg.streams)
        if leg.restart is not None:
            if self.course.trunk is None:
                self.course.trunk = state.copy()
            state.restore(self.course.trunk)
        if leg.fresh_heads:
            with gathered(state.module, write=True):
                self.model.redraw_heads(self.streams.shared["head"])
        if stage.fresh_optimiser:
            self.optimizer.state.clear()
        for group in self.optimizer.param_groups:
            group["betas"] = stage.optimiser.betas
        self.batches = self._new_batches(stage.batch_size)
        state.begin({name: term.begin() for name, term in stage.terms.items()}, averaged=stage.average > 0)
        self.walks.begin(stage)
        self.guard.begin(state.copy() if self.settings.guard.attempts and state.is_finite() else None)
        self.course.begin()

    def _end(self, leg: Leg) -> None:
        self.state.take_average()
        self.course.next()
        tail, self.state.iteration = self.state.tail, 0
        if leg.restart is None:
            return
        # the first process's word counts: machines may round differently
        loss = self.processes.of_first(lambda: float(torch.stack(tail).mean()) if tail else math.inf)
        best = self.course.tried(loss, self.state.copy)
        if best is not None:
            self.state.restore(best)

    def _make_moves(self, leg: Leg, stage: Stage) -> None:
        """Use a proposal of the first process if it is better, and log it either way."""
        for move in stage.moves.values():
            if not move.due(self.state.iteration, stage.iterations):
                continue
            total = float(self.processes.highest(size(self.model.parameters())))
            if not math.isfinite(total):
                raise Trouble(leg.stage.name, self.state.iteration, Finding("weights", total))
            with gathered(self.state.module):
                found = self.processes.of_first(partial(_propose, self, move, stage))
            if found.improves:
                self.state.replace_prototypes(found.to(self.fabric.device), stage.terms)
            self.on_log(leg.record(self.state.iteration) | {"event": move.kind, **found.record()})

    def _next_batch(self, stage: Stage, progress: float) -> Batch:
        """The next points of this process, other looks at them, and what the density draws."""
        index = self.batches.next(self.streams.shared["batch"])
        told = self._told(stage, index.device)
        if told is not None and self.few is not None:
            index = torch.cat([index, self.few.rows[told]])
        own = self.batches.part(index, self.processes)
        x = self.train[own]
        gather(self.state.module)
        once = self.batches.visits_once(stage.iterations)
        with self.fabric.autocast():  # walks and chains at the precision of the network's own passes
            walked = self.walks.of(stage, self.state.iteration, own, x, self.streams.own, visits_once=once)
            batch, self.state.density = make_batch(
                stage,
                self.model,
                x,
                walked,
                self.state.density,
                self.streams.own,
                progress,
                self.batches.grouped // self.processes.size,
                None if self.labels is None else self.labels[index],
                None if self.proposed is None else self.proposed[index],
                None if self.answers is None else self.answers[self.batches.groups_of(index)],
                None if told is None or self.few is None else self.few.labels[told],
            )
        return batch

    def _told(self, stage: Stage, device: torch.device) -> Tensor | None:
        """Which of the points whose labels are told come with the next batch."""
        if self.few is None or not any(term.needs_few for term in stage.terms.values()):
            return None
        n = len(self.few.rows)
        return torch.randperm(n, generator=self.streams.shared["few"], device=device)[:_TOLD]

    def _passed(self, stage: Stage, batch: Batch, watching: bool) -> Result:
        try:
            result: Result = self.network(batch, lambda: (stage, self.state.objectives), watching)
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]  # of the negative-free term, at bad numbers
            finding = Finding("factor of the covariance", math.nan)
            raise Trouble(stage.name, self.state.iteration, finding) from None
        return result

    def _update(self, stage: Stage, result: Result, progress: float) -> Tensor:
        """The weighted sum of the terms, and one step of the optimiser down it."""
        weights = stage.weights(progress)
        loss = torch.stack([weight * result.terms[name] for name, weight in weights.items()]).sum()
        for group in self.optimizer.param_groups:
            group["lr"] = stage.optimiser.rate(self.state.iteration, stage.iterations)
        self.optimizer.zero_grad()
        self.fabric.backward(loss)
        self.optimizer.step()
        self.state.update_average(stage.average)
        return loss

    def _record(self, leg: Leg, stage: Stage, batch: Batch, result: Result, loss: Tensor) -> None:
        """The step is over: count it, and log it now and then."""
        self.state.objectives = result.carried
        self.state.iteration += 1
        if stage.clusters_from and batch.progress >= 0.9:
            self.state.tail.append(torch.stack([result.terms[name].detach() for name in stage.clusters_from]).sum())
        if self.state.iteration % self.settings.log_every and self.state.iteration != stage.iterations:
            return
        record = leg.record(self.state.iteration) | {"loss": loss.item()}
        record |= {name: term.item() for name, term in result.terms.items()}
        record |= self.processes.mean(dict(batch.draw.info))
        bad = [name for name, value in record.items() if isinstance(value, float) and not math.isfinite(value)]
        if bad:
            raise Trouble(leg.stage.name, self.state.iteration, Finding(", ".join(bad), record[bad[0]]))
        self.on_log(record)

    def _watch(self, leg: Leg, stage: Stage, batch: Batch, result: Result) -> None:
        """Look at the training; where all is well it is kept as a place to go back to."""
        figures = figures_of_terms(stage, result.terms, batch.progress) | result.figures | self.state.sizes()
        with gathered(self.state.module):
            figures |= stage.density.watched(self.model, batch.draw)
        worst = self.processes.highest(torch.stack([figure.float() for figure in figures.values()]))
        numbers = worst.tolist()  # one wait for the device
        finding = self.guard.look(dict(zip(figures, numbers, strict=True)))
        if finding is not None:
            raise Trouble(leg.stage.name, self.state.iteration, finding)
        if self.guard.clean and self.state.iteration < stage.iterations:
            self.guard.keep(self.state.copy())

    def _intervene(self, leg: Leg, finding: Finding) -> None:
        """Go back to a good state, let the density begin anew and go on softer, or give up; log it either way."""
        record = leg.record(self.state.iteration) | {"event": "guard", **finding.record()}
        back = self.guard.go_back()
        if back is None:
            self._give_up(leg, finding, record)
            return
        self._return_to(leg, back)
        self.state.density = self.density.begin(self.streams.shared["guard"])
        attempt = {
            "back_to": self.state.iteration,
            "attempt": self.guard.interventions,
            "of": self.settings.guard.attempts,
        }
        self.on_log(record | attempt | {"softened": self.guard.softened(leg.stage)})

    def _give_up(self, leg: Leg, finding: Finding, record: Record) -> None:
        """Leave the last good model. A try is only lost; without any that is kept, it is the end."""
        guard, found_at = self.guard, self.state.iteration
        if guard.settings.attempts == 0 or guard.last is None:
            raise Trouble(leg.stage.name, found_at, finding)
        self._return_to(leg, guard.last)
        good = self.state.iteration
        self.on_log(record | {"back_to": good, "given_up": True})
        if self.course.can_lose:
            self.state.iteration, self.state.tail = leg.stage.iterations, []  # no selection loss: infinite
            return
        self.state.take_average()
        self.network.eval()
        self.last_good = good
        outcome = f"gave up after {guard.interventions} softer attempts, the model is that of iteration {good}; "
        raise Trouble(leg.stage.name, found_at, finding, outcome)

    def _return_to(self, leg: Leg, snapshot: Any) -> None:
        self.state.restore(snapshot)
        self.walks.forget(leg.stage)


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - began


def _check(stage: Stage, train: Points, batches: Callable[[int], Batches], processes: Processes) -> None:
    """Refuse what the data cannot give."""
    if stage.batch_size > len(train):
        raise UserError(
            f"{stage.name}.batch_size must be at most the number of training points, "
            f"got {stage.batch_size} for {len(train)} points; use {len(train)} or fewer"
        )
    if stage.walk is not None and not stage.walk.every_step and is_sharded(train):
        raise UserError(
            f"walks from every training point at once need all of them in memory, which shards are not for: "
            f"walk.refresh must be 1 (walk each batch), got {stage.walk.refresh}"
        )
    batches(stage.batch_size).part(torch.arange(stage.batch_size), processes)  # one that can be shared out, uncut


def _propose(trainer: Trainer, move: Move, stage: Stage) -> Proposal:
    assert stage.view is not None
    grouped, generator = trainer.groups * trainer.group_size, trainer.streams.shared[move.kind]
    view = stage.view.at(trainer.state.iteration / stage.iterations)
    return move.propose(trainer.model, trainer.train, grouped, view, generator).to("cpu")
