"""The loop: stages in order, restarts of the last one, and all state in one dictionary."""

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

from gedi.data import chunks, is_sharded
from gedi.errors import UserError
from gedi.nn import Energy, Model
from gedi.processes import Processes
from gedi.random import Streams
from gedi.sampling import Initial, ReplayBuffer
from gedi.training.batches import Batches
from gedi.training.guard import (
    Finding,
    Guard,
    GuardSettings,
    Trouble,
    figures_of_chains,
    figures_of_terms,
    size,
    watched_values,
)
from gedi.training.merging import merge_prototypes, some_of
from gedi.training.naming import align_prototypes
from gedi.training.proposal import Proposal
from gedi.training.sharding import copied, gather, gathered, like, load_model, load_optimiser, scatter, whole
from gedi.training.stage import Augment, Stage, due
from gedi.training.step import Batch, JointPass, augmented, make_batch, radial_energy, walk_from
from gedi.types import EnergyFn, Points

State = dict[str, Any]
_WALKED = 20_000  # points walked at a time: more would only take memory


@dataclass(frozen=True)
class TrainerSettings:
    """What the loop needs beyond the stages.

    Attributes:
        n_init: at most this many tries at a stage that has ``clusters_from``.
        good_enough: the selection loss at which no further try is made; None makes them all.
        buffer: number of persistent chains.
        log_every: iterations between log lines.
        guard: what is trouble, and what is done about it.
    """

    n_init: int = 1
    good_enough: float | None = None
    buffer: int = 10_000
    log_every: int = 50
    guard: GuardSettings = field(default_factory=GuardSettings)


@dataclass(frozen=True)
class Leg:
    """One way through one stage: a restarted stage has several legs."""

    stage: Stage
    restart: int | None = None


class Trainer:
    """Trains a model through its stages.

    Args:
        model: the network; trained in place.
        train: the data, (n, *shape), on the fabric's device; indexing gives points.
        stages: in order. Stages with ``clusters_from`` are tried up to ``n_init`` times, each time from the
            end of the stage before and with a new head; the try with the lowest selection loss is kept.
            No label takes part.
        streams: the run's random streams.
        initial: where chains begin.
        fabric: device, precision and processes, launched. Batches and chains are shared out among the processes;
            every process must call what this class offers, and every one ends with the same model.
        settings: see :class:`TrainerSettings`.
        on_log: called with a record of figures every ``log_every`` iterations, of every alignment, and of every
            intervention of the guard.
        group_size, groups: the first ``groups * group_size`` points come in groups, which batches never cut.
        labels: only for a stage with the supervised term.

    Attributes:
        processes: this process among all.
        last_good: when :meth:`fit` gave up, the iteration of the leg that the model and the chains were put back
            to; None where there is no good model.
    """

    def __init__(
        self,
        model: Model,
        train: Points,
        stages: Sequence[Stage],
        streams: Streams,
        initial: Initial,
        fabric: Fabric,
        settings: TrainerSettings,
        on_log: Callable[[State], None] = lambda record: None,
        *,
        group_size: int = 1,
        groups: int = 0,
        labels: Tensor | None = None,
    ) -> None:
        for stage in stages:
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
        self.processes = Processes(fabric.global_rank, fabric.world_size)
        self.legs = [
            Leg(stage, restart)
            for stage in [_own_part(stage, self.processes) for stage in stages]
            for restart in (range(settings.n_init) if stage.clusters_from else [None])
        ]
        self.model = model
        self.train = train
        self.group_size, self.groups = group_size, groups
        self.labels = labels
        for stage in stages:
            batches = self._new_batches(stage.batch_size)  # refuses a batch that would cut a group,
            batches.part(torch.arange(stage.batch_size), self.processes)  # or cannot be shared out
        self.root_streams = streams
        self._use_streams(streams)
        self.settings = settings
        self.on_log = on_log
        self.fabric = fabric
        self.network = fabric.setup_module(JointPass(model, self.processes))
        self.optimizer = fabric.setup_optimizers(torch.optim.Adam(model.parameters(), fused=True))
        self.initial = initial
        self.buffer = ReplayBuffer(self._new_chains("buffer"))
        self.guard = Guard(settings.guard)
        self.last_good: int | None = None

        self.leg = 0
        self.begun = False  # whether the leg has
        self.iteration = 0
        self._absent: list[State] = []  # streams of processes that a run had which went on with fewer
        self.batches = self._new_batches(stages[0].batch_size if stages else group_size)
        self.average: list[Tensor] = []
        self.walker: Energy | None = None
        self.walked: Tensor | None = None
        self.trunk: State | None = None  # where restarts branch off
        self.best: State | None = None
        self.selection_losses: list[float] = []
        self.seconds: dict[str, float] = {}  # spent in each stage
        self._tail: list[Tensor] = []  # selection losses of the last tenth of the current leg

    def fit(self, stop_after: int | None = None) -> None:
        """Run every leg, or at most ``stop_after`` iterations of them; those undone by the guard count too."""
        self.network.train()
        done = 0
        while self.leg < len(self.legs):
            leg = self.legs[self.leg]
            if not self.begun:
                self._begin(leg)
            with self._timed(leg.stage.name):
                while self.iteration < leg.stage.iterations and done != stop_after:
                    done += 1
                    try:
                        self.step(leg)
                    except Trouble as trouble:
                        self._intervene(leg, trouble.finding)
            if self.iteration < leg.stage.iterations:
                return
            self._end(leg)
        self.network.eval()

    def step(self, leg: Leg) -> None:
        """One step: batch, views, samples, forward, terms, backward, update, record."""
        stage = self.guard.soften(leg.stage)
        progress = self.iteration / stage.iterations
        watching = self.guard.due(self.iteration + 1, stage.iterations)
        if due(stage.merging, self.iteration, stage.iterations):
            self._merge(leg)
        if stage.naming is not None and stage.naming.due(self.iteration, stage.iterations):
            self._align(leg)
        for group in self.optimizer.param_groups:
            group["lr"] = stage.optimiser.rate(self.iteration, stage.iterations)

        index = self.batches.next(self.streams["batch"])
        own = self.batches.part(index, self.processes)
        x = self.train[own]
        gather(self._module)
        walked = self._walk(stage, own, x)
        with self.fabric.autocast():  # chains at the precision of the network's own passes
            batch, info = make_batch(
                stage,
                x,
                walked,
                self.model.energy,
                self.buffer,
                self.own_streams,
                progress,
                self.batches.grouped // self.processes.size,
                None if self.labels is None else self.labels[index],
            )

        try:
            values = self.network(batch, partial(watched_values, stage) if watching else stage.values)
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]  # of the negative-free term, at bad numbers
            raise Trouble(stage.name, self.iteration, Finding("factor of the covariance", math.nan)) from None
        terms = {name: values[name] for name in stage.terms}
        loss = torch.stack([weight.at(progress) * terms[name] for name, (weight, _) in stage.terms.items()]).sum()

        self.optimizer.zero_grad()
        self.fabric.backward(loss)
        self.optimizer.step()
        self._update_average(stage)

        self.iteration += 1
        if stage.clusters_from and progress >= 0.9:
            self._tail.append(torch.stack([terms[name].detach() for name in stage.clusters_from]).sum())
        if self.iteration % self.settings.log_every == 0 or self.iteration == stage.iterations:
            self._log(leg, loss, terms, info)
        if watching:
            self._watch(leg, stage, batch, values)

    def finish(self) -> None:
        """Training is over: every process gets the whole model, on the CPU, and the chains of all."""
        with gathered(self._module):
            self.model = copy.deepcopy(self.model) if self.processes.size > 1 else self.model
        self.model.cpu().eval()
        self.buffer.chains = self.processes.whole(self.buffer.chains, self.settings.buffer)

    def state_dict(self) -> State:
        """All state: with it and the same data a run goes on bit for bit, with as many processes.

        It is the same in every process, so that a run may go on with another number of them.
        """
        streams = self.processes.of_all(self.own_streams.state_dict())[1:]  # the first one's are the shared ones
        return {
            **self._of_all(self._branch()),
            "leg": self.leg,
            "begun": self.begun,
            "iteration": self.iteration,
            "streams": self.streams.state_dict(),
            "root_streams": self.root_streams.state_dict(),
            "own_streams": [*streams, *self._absent],
            "batches": self.batches.state_dict(),
            "batch_size": self.batches.batch_size,
            "average": copied(self.average),
            "walker": None if self.walker is None else self._energy_state(self.walker),
            "walked": self.walked,
            "trunk": self.trunk and self._of_all(self.trunk),
            "best": self.best and self._of_all(self.best),
            "selection_losses": self.selection_losses,
            "tail": self._tail,
            "seconds": dict(self.seconds),
            "guard": self.guard.state_dict(self._of_all),
            "precision": self.fabric.strategy.precision.state_dict(),  # the scale of float16's gradients
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state, of a run with as many processes or with another number of them."""
        self.leg, self.begun, self.iteration = state["leg"], state["begun"], state["iteration"]
        self.root_streams.load_state_dict(state["root_streams"])
        if self.leg < len(self.legs):
            self._select_streams(self.legs[self.leg])
        self.streams.load_state_dict(state["streams"])
        others, rank = state["own_streams"], self.processes.rank
        if 0 < rank <= len(others):
            self.own_streams.load_state_dict(others[rank - 1])
        self._absent = others[self.processes.size - 1 :]
        self._restore(self._of_this(state))
        self.batches = self._new_batches(state["batch_size"])
        self.batches.load_state_dict(self.fabric.to_device(state["batches"]))
        self.average = self._averages(state["average"])
        self.walker = None
        if state["walker"] is not None:
            self.walker = self._energy_now()
            self.walker.encoder.load_state_dict(state["walker"]["encoder"])
            self.walker.direction.copy_(state["walker"]["direction"])
        self.walked = None if state["walked"] is None else self.fabric.to_device(state["walked"])
        self.trunk, self.best = (state[name] and self._of_this(state[name]) for name in ("trunk", "best"))
        self.selection_losses, self._tail = state["selection_losses"], self.fabric.to_device(state["tail"])
        self.seconds = dict(state["seconds"])
        self.guard.load_state_dict(state["guard"], self._of_this)
        self.fabric.strategy.precision.load_state_dict(state["precision"])

    def _begin(self, leg: Leg) -> None:
        stage = leg.stage
        self._select_streams(leg)
        if leg.restart is not None:
            if self.trunk is None:
                self.trunk = self._branch()
            self._restore(self.trunk)
            with gathered(self._module, write=True):
                self.model.redraw_heads(self.streams["head"])
        if stage.fresh_optimiser:
            self.optimizer.state.clear()
        for group in self.optimizer.param_groups:
            group["betas"] = stage.optimiser.betas
        self.batches = self._new_batches(stage.batch_size)
        self.average = [p.detach().clone() for p in self.model.parameters()] if stage.average else []
        self.walker = self._energy_now() if stage.walk and stage.walk.energy == "stage1" else None
        self.walked = None
        self._tail = []
        self.guard.begin(self._snapshot() if self.settings.guard.attempts and self._finite() else None)
        self.begun = True

    def _end(self, leg: Leg) -> None:
        self._take_average()
        self.iteration = 0
        self.begun = False
        self.leg += 1
        if leg.restart is None:
            return
        # the first process's word counts: machines may round differently
        loss = self.processes.of_first(lambda: float(torch.stack(self._tail).mean()) if self._tail else math.inf)
        if not self.selection_losses or loss < min(self.selection_losses):
            self.best = self._branch()
        self.selection_losses.append(loss)
        good_enough = self.settings.good_enough is not None and loss <= self.settings.good_enough
        if good_enough or leg.restart == self.settings.n_init - 1:
            assert self.best is not None
            self._restore(self.best)
            self.trunk = self.best = None
            while self.leg < len(self.legs) and self.legs[self.leg].stage is leg.stage:
                self.leg += 1

    def _new_batches(self, batch_size: int) -> Batches:
        return Batches(len(self.train), batch_size, group_size=self.group_size, groups=self.groups)

    def _align(self, leg: Leg) -> None:
        """Give the clusters the names that fit the constraint best, if its loss drops. No label takes part."""

        def search() -> Proposal:
            assert leg.stage.naming is not None
            grouped = self.train[: self.groups * self.group_size]
            return align_prototypes(self.model, grouped, leg.stage.naming, self._look(leg), self.streams["align"])

        self._propose(leg, "align", search)

    def _merge(self, leg: Leg) -> None:
        """Merge the clusters from finer ones, if the cluster loss drops. No label takes part."""

        def search() -> Proposal:
            some = self.train[some_of(len(self.train), self.streams["merge"])]
            return merge_prototypes(self.model, some, self._look(leg), self.streams["merge"])

        self._propose(leg, "merge", search)

    def _look(self, leg: Leg) -> Augment:
        return lambda x, generator: augmented(leg.stage, x, generator)

    def _propose(self, leg: Leg, event: str, search: Callable[[], Proposal]) -> None:
        """Use a proposal of the first process if it is better, and log it either way."""
        self._refuse_bad_weights(leg)
        with gathered(self._module):
            found = self.processes.of_first(lambda: search().to("cpu"))
        if found.improves:
            self._replace_prototypes(found.to(self.fabric.device))
        record: State = {"stage": leg.stage.name, "iteration": self.iteration}
        if leg.restart is not None:
            record["restart"] = leg.restart
        self.on_log(record | {"event": event, **found.record()})

    def _refuse_bad_weights(self, leg: Leg) -> None:
        total = float(self.processes.highest(size(self.model.parameters())))
        if not math.isfinite(total):
            raise Trouble(leg.stage.name, self.iteration, Finding("weights", total))

    @torch.no_grad()
    def _replace_prototypes(self, found: Proposal) -> None:
        """New prototypes, and all that is kept beside them."""
        prototypes = self.model.prototypes.weight
        assert isinstance(prototypes, Tensor)
        new, order = found.prototypes, found.permutation
        for moment in self.optimizer.state.get(prototypes, {}).values():
            if moment.shape == prototypes.shape:
                old = whole(moment)
                moment.copy_(like(torch.zeros_like(old) if order is None else old[order], moment))
        for average, parameter in zip(self.average, self.model.parameters(), strict=False):
            if parameter is prototypes:
                average.copy_(like(new if order is None else whole(average)[order], average))
        prototypes.copy_(like(new, prototypes))

    def _walk(self, stage: Stage, own: Tensor, x: Tensor) -> Tensor | None:
        walk = stage.walk
        if walk is None:
            return None
        # of many points each comes once at most, and most never: then each is walked when its turn comes
        if walk.every_step or self.batches.visits_once(stage.iterations):
            return walk_from(walk, self._walk_energy(stage), x, self.own_streams["walk"])
        if self.walked is None or (walk.refresh and self.iteration % walk.refresh == 0):
            share = self.train[self.processes.rank :: self.processes.size]
            energy, generator = self._walk_energy(stage), self.own_streams["walk"]
            ends = torch.cat([walk_from(walk, energy, part, generator) for part in chunks(share, _WALKED)])
            self.walked = self.processes.whole(ends, len(self.train))
        return self.walked[own]

    def _walk_energy(self, stage: Stage) -> EnergyFn:
        assert stage.walk is not None
        if stage.walk.energy == "radial":
            return radial_energy
        return self.walker if self.walker is not None else self.model.energy

    def _update_average(self, stage: Stage) -> None:
        if self.average:
            decay = min(stage.average, (self.iteration + 1) / (self.iteration + 10))
            torch._foreach_lerp_(self.average, [p.detach() for p in self.model.parameters()], 1 - decay)

    def _log(self, leg: Leg, loss: Tensor, terms: dict[str, Tensor], info: dict[str, float]) -> None:
        record: State = {"stage": leg.stage.name, "iteration": self.iteration}
        if leg.restart is not None:
            record["restart"] = leg.restart
        record |= {"loss": loss.item()} | {name: term.item() for name, term in terms.items()}
        record |= self.processes.mean(info)
        bad = [name for name, value in record.items() if isinstance(value, float) and not math.isfinite(value)]
        if bad:
            raise Trouble(leg.stage.name, self.iteration, Finding(", ".join(bad), record[bad[0]]))
        self.on_log(record)

    def _watch(self, leg: Leg, stage: Stage, batch: Batch, values: dict[str, Tensor]) -> None:
        """Look at the training; where all is well it is kept as a place to go back to."""
        figures = figures_of_terms(stage, values, batch.progress) | self._sizes()
        if stage.negatives is not None and batch.negatives is not None:
            with gathered(self._module):
                energy = None if batch.noised is not None else self.model.energy
                figures |= figures_of_chains(stage.negatives, batch.negatives, energy)
        worst = self.processes.highest(torch.stack([figure.float() for figure in figures.values()]))
        numbers = worst.tolist()  # one wait for the device
        finding = self.guard.look(dict(zip(figures, numbers, strict=True)))
        if finding is not None:
            raise Trouble(leg.stage.name, self.iteration, finding)
        if self.guard.clean and self.iteration < stage.iterations:
            self.guard.keep(self._snapshot())

    def _sizes(self) -> dict[str, Tensor]:
        moments = [x for state in self.optimizer.state.values() for name, x in state.items() if name != "step"]
        sizes = {
            "weights": size([*self.model.state_dict().values(), *self.average]),
            "gradients' moments": size(moments),
            "chains": size([self.buffer.chains]),
        }
        return {name: total.to(self.fabric.device) for name, total in sizes.items()}  # of nothing it is on the CPU

    def _finite(self) -> bool:
        return bool(self.processes.highest(torch.stack(list(self._sizes().values()))).isfinite().all())

    def _intervene(self, leg: Leg, finding: Finding) -> None:
        """Go back to a good state, begin the chains anew and go on softer, or give up; log it either way."""
        found_at, guard = self.iteration, self.guard
        back = guard.go_back()
        record: State = {"stage": leg.stage.name, "iteration": found_at}
        if leg.restart is not None:
            record["restart"] = leg.restart
        record |= {"event": "guard", **finding.record()}
        if back is None:
            self._give_up(leg, finding, record)
            return
        self._return_to(leg, back)
        self.buffer.chains = self._new_chains("guard")
        attempt = {"back_to": self.iteration, "attempt": guard.interventions, "of": guard.settings.attempts}
        self.on_log(record | attempt | {"softened": guard.softened(leg.stage)})

    def _give_up(self, leg: Leg, finding: Finding, record: State) -> None:
        """Leave the last good model. A try is only lost; without any that is kept, it is the end."""
        guard, found_at = self.guard, self.iteration
        if guard.settings.attempts == 0 or guard.last is None:
            raise Trouble(leg.stage.name, found_at, finding)
        self._return_to(leg, guard.last)
        good = self.iteration
        self.on_log(record | {"back_to": good, "given_up": True})
        others = leg.restart is not None and (
            leg.restart + 1 < self.settings.n_init or any(map(math.isfinite, self.selection_losses))
        )
        if others:
            self.iteration, self._tail = leg.stage.iterations, []  # no selection loss: infinite
            return
        self._take_average()
        self.network.eval()
        self.last_good = good
        outcome = f"gave up after {guard.interventions} softer attempts, the model is that of iteration {good}; "
        raise Trouble(leg.stage.name, found_at, finding, outcome)

    def _snapshot(self) -> State:
        """What an intervention goes back to."""
        return {**self._branch(), "average": copied(self.average), "iteration": self.iteration, "tail": len(self._tail)}

    def _return_to(self, leg: Leg, snapshot: State) -> None:
        self._restore(snapshot)
        self.average = self._averages(snapshot["average"])
        self.iteration = snapshot["iteration"]
        self._tail = self._tail[: snapshot["tail"]]
        if leg.stage.walk is not None and leg.stage.walk.refresh:
            self.walked = None  # by an energy that is no more

    def _take_average(self) -> None:
        if self.average:
            with torch.no_grad():
                for parameter, average in zip(self.model.parameters(), self.average, strict=True):
                    parameter.copy_(average)
            self.average = []

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - began

    def _select_streams(self, leg: Leg) -> None:
        restart = leg.restart
        self._use_streams(self.root_streams if restart is None else self.root_streams.child(f"restart/{restart}"))

    def _use_streams(self, streams: Streams) -> None:
        """Streams that all processes draw the same from, and those of this one; one process has only one kind."""
        rank = self.processes.rank
        self.streams = streams
        self.own_streams = streams.child(f"rank/{rank}") if rank else streams

    def _new_chains(self, stream: str) -> Tensor:
        return self.processes.own(self.initial.sample(self.settings.buffer, self.streams[stream]))

    @property
    def _module(self) -> JointPass:
        """The network without Fabric's wrapping, as it may be spread over processes."""
        module: JointPass = self.network.module
        return module

    def _energy_now(self) -> Energy:
        """The energy as it is, apart from further training."""
        with gathered(self._module):
            return self.model.energy.snapshot()

    def _averages(self, whole_ones: list[Tensor]) -> list[Tensor]:
        parameters = self.model.parameters()
        return [like(x.to(p.device, copy=True), p) for x, p in zip(whole_ones, parameters, strict=False)]

    def _branch(self) -> State:
        """What a restart goes back to."""
        return {
            "model": copied(self.model.state_dict()),
            "optimizer": copied(self.optimizer.state_dict()),
            "chains": self.buffer.chains.clone(),
        }

    def _restore(self, branch: State) -> None:
        scatter(self._module)  # a step that was broken off leaves the weights whole
        load_model(self.model, branch["model"])
        load_optimiser(self.optimizer, copied(branch["optimizer"]))
        self.buffer.chains = branch["chains"].to(self.fabric.device, copy=True)

    def _of_all(self, branch: State) -> State:
        """A branch with the chains of every process."""
        return {**branch, "chains": self.processes.whole(branch["chains"], self.settings.buffer)}

    def _of_this(self, branch: State) -> State:
        """A branch with this process's share of the chains."""
        return {**branch, "chains": self.processes.own(branch["chains"])}

    @staticmethod
    def _energy_state(energy: Energy) -> State:
        return {"encoder": energy.encoder.state_dict(), "direction": energy.direction}


def _own_part(stage: Stage, processes: Processes) -> Stage:
    """A stage with one process's share of the chains; batches are shared out one by one."""
    negatives = stage.negatives
    if negatives is None or processes.size == 1:
        return stage
    if negatives.chains % processes.size:
        chains = negatives.chains - negatives.chains % processes.size or processes.size
        raise UserError(
            f"sampling.chains must give each of {processes.size} processes as many, got {negatives.chains}; "
            f"use {chains}"
        )
    return replace(stage, negatives=replace(negatives, chains=negatives.chains // processes.size))
