"""A term with state of its own: saved, rolled back, begun anew by every try, and the same after a resume."""

import math
from dataclasses import replace
from typing import ClassVar, Literal

import pytest
import torch
import torch.nn.functional as F

from gedi.config import override, parse
from gedi.errors import DivergenceError
from gedi.fitting import prepare, train
from gedi.objectives.objective import Objective
from gedi.presets import preset
from gedi.settings import Share
from gedi.training.restoring import Misfit, refuse_misfit

TINY = [
    "data.n_train=300", "data.n_test=100", "stage1.iterations=10", "stage2.iterations=20", "walk.steps=3",
    "density.buffer=300", "log_every=2", "guard.every=5", "n_init=2", "good_enough=0",
]  # fmt: skip


class Centred(Objective):
    """Shares of the clusters, as a running mean remembers them, stay equal."""

    decay: Share = 0.9

    kind: ClassVar[str] = "centred"
    shapes: ClassVar[Literal["clusters", "embedding"]] = "clusters"

    def begin(self):
        return {"mean": torch.full((self._context.clusters,), 1 / self._context.clusters), "steps": 0}

    def __call__(self, seen, carried=None):
        now = seen.both().softmax(dim=1).mean(dim=0)
        mean = self.decay * carried["mean"] + (1 - self.decay) * now
        return F.kl_div(mean.log(), torch.full_like(mean, 1 / len(mean)), reduction="sum")

    def after(self, seen, carried):
        now = seen.both().softmax(dim=1).mean(dim=0)
        assert not now.requires_grad
        return {"mean": torch.lerp(now, carried["mean"], self.decay), "steps": carried["steps"] + 1}


def prepared(*settings, term=Centred):
    """A run whose second stage has the term besides its own."""
    run = prepare(parse(override(preset("circles"), [*TINY, *settings])))
    legs = run.trainer.course.legs
    stage = legs[-1].stage
    bound = term(weight=1.0).bind(stage.terms["swapped"]._context)
    now = replace(stage, terms={**stage.terms, "centred": bound})
    run.trainer.course.legs = [replace(leg, stage=now) if leg.stage is stage else leg for leg in legs]
    run.trainer.course._last_tried = now
    run.trainer.on_log = (log := []).append
    return run, log


def carried(run):
    return run.trainer.state.objectives["centred"]


def weights(run):
    return torch.cat([x.flatten() for x in run.trainer.model.state_dict().values()])


def test_the_state_begins_with_the_stage_goes_on_with_every_step_and_counts_in_the_loss():
    run, log = prepared("n_init=1", "stage2.average=0")
    run.trainer.fit(stop_after=9)
    assert run.trainer.state.objectives == {}  # the stage before has no terms
    run.trainer.fit(stop_after=1)
    assert carried(run)["steps"] == 0
    run.trainer.fit(stop_after=1)
    assert carried(run)["steps"] == 1
    first = carried(run)["mean"].clone()
    run.trainer.fit(stop_after=6)
    assert carried(run)["steps"] == 7
    assert not torch.equal(carried(run)["mean"], first)
    assert carried(run)["mean"].sum().item() == pytest.approx(1)
    assert not carried(run)["mean"].requires_grad
    train(run)
    weights_of = run.trainer.course.legs[-1].stage.weights(0.5)
    for record in (r for r in log if r["stage"] == "stage2"):
        assert record["loss"] == pytest.approx(sum(w * record[name] for name, w in weights_of.items()), rel=1e-5)


def test_terms_without_state_carry_none_beside_it():
    run, _ = prepared()
    run.trainer.fit(stop_after=13)
    others = {name: x for name, x in run.trainer.state.objectives.items() if name != "centred"}
    assert others == {"negative_free": None, "swapped": None, "swapped_walk": None}


def test_it_is_in_the_checkpoint_and_in_every_copy_of_the_state():
    run, _ = prepared("guard.attempts=3")
    run.trainer.fit(stop_after=10 + 20 + 7)
    state = run.trainer.state_dict()
    saved = state["state"]["objectives"]["centred"]
    assert saved["steps"] == 7
    assert torch.equal(saved["mean"], carried(run)["mean"])
    assert state["course"]["best"]["objectives"]["centred"]["steps"] == 20
    assert state["guard"]["good"]["objectives"]["centred"]["steps"] == 5
    assert state["guard"]["beginning"]["objectives"]["centred"]["steps"] == 0
    refuse_misfit(run.trainer, state)  # and it fits


@pytest.mark.parametrize("stop", [7, 10, 11, 23, 30, 31, 44])
def test_a_run_that_is_stopped_and_loaded_ends_bit_for_bit_as_one_that_is_not(stop, tmp_path):
    (whole, log), (first, begun), (second, ended) = prepared(), prepared(), prepared()
    train(whole)
    first.trainer.fit(stop_after=stop)
    torch.save(first.trainer.state_dict(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    refuse_misfit(second.trainer, state)
    second.trainer.load_state_dict(state)
    train(second)
    assert torch.equal(weights(whole), weights(second))
    assert torch.equal(carried(whole)["mean"], carried(second)["mean"])
    assert carried(whole)["steps"] == carried(second)["steps"]
    assert begun + ended == log
    assert whole.trainer.course.selection_losses == second.trainer.course.selection_losses


def test_every_try_begins_with_it_anew_and_the_best_one_s_is_kept():
    run, _ = prepared("n_init=3")
    begun, ended = [], []
    step = run.trainer.step

    def watched(leg):
        if leg.restart is not None and run.trainer.state.iteration == 0:
            begun.append((leg.restart, carried(run)["steps"], carried(run)["mean"].clone()))
        step(leg)
        if leg.restart is not None and run.trainer.state.iteration == leg.stage.iterations:
            ended.append(carried(run)["mean"].clone())

    run.trainer.step = watched
    train(run)
    assert [(restart, steps) for restart, steps, _ in begun] == [(0, 0), (1, 0), (2, 0)]
    assert all(torch.equal(mean, torch.full((2,), 0.5)) for _, _, mean in begun)
    losses = run.trainer.course.selection_losses
    assert len({tuple(mean.tolist()) for mean in ended}) == 3  # the tries are not the same
    assert torch.equal(carried(run)["mean"], ended[losses.index(min(losses))])


def test_it_counts_among_what_tells_good_tries_from_bad():
    run, log = prepared("n_init=1", "log_every=1")
    train(run)
    names = run.trainer.course.legs[-1].stage.clusters_from
    assert names == ("swapped", "swapped_walk", "centred")
    last = [r for r in log if r["stage"] == "stage2" and r["iteration"] > 18]  # the last tenth
    expected = sum(r[name] for r in last for name in names) / len(last)
    assert run.trainer.course.selection_losses == pytest.approx([expected], rel=1e-5)


def spoil(run, at, times=1):
    """The prototypes are spoilt just before an iteration of the first try, this many times."""
    step, left = run.trainer.step, [times]

    def spoilt(leg):
        if leg.restart == 0 and run.trainer.state.iteration == at and left[0]:
            left[0] -= 1
            with torch.no_grad():
                run.trainer.model.prototypes.weight.fill_(math.nan)
        step(leg)

    run.trainer.step = spoilt


def test_the_guard_rolls_it_back_with_everything_else():
    run, log = prepared("n_init=1", "log_every=100")
    kept = []
    keep, back = run.trainer.guard.keep, run.trainer._return_to
    run.trainer.guard.keep = lambda state: (kept.append(state["objectives"].get("centred")), keep(state))
    returned = []
    run.trainer._return_to = lambda *args: (back(*args), returned.append({**carried(run)}))
    spoil(run, at=7)
    train(run)
    (event,) = [record for record in log if record.get("event") == "guard"]
    assert (event["iteration"], event["back_to"]) == (8, 5)  # the covariance has no factor any more
    assert returned[0]["steps"] == 5
    good = next(one for one in kept if one and one["steps"] == 5)
    assert torch.equal(returned[0]["mean"], good["mean"])
    assert carried(run)["steps"] == 20
    assert carried(run)["mean"].isfinite().all()


def test_trouble_in_it_alone_is_found_by_its_name():
    run, _ = prepared("n_init=1", "log_every=100", "guard.attempts=1")
    step = run.trainer.step

    def spoilt(leg):
        if leg.restart == 0 and run.trainer.state.iteration == 9:
            carried(run)["mean"].fill_(math.nan)
        step(leg)

    run.trainer.step = spoilt
    with pytest.raises(DivergenceError, match=r"stage2 diverged by iteration 10: centred not finite"):
        train(run)
    assert run.trainer.last_good == 5
    assert carried(run)["mean"].isfinite().all()


@pytest.mark.parametrize("stop", [12, 18, 22])
def test_a_run_that_was_rolled_back_goes_on_the_same_after_a_stop(stop, tmp_path):
    """Before the trouble, after the way back, and later on."""
    runs = [prepared("n_init=1", "log_every=100") for _ in range(3)]
    (whole, log), (first, begun), (second, ended) = runs
    for run, _ in runs:
        spoil(run, at=3, times=1)
    train(whole)
    first.trainer.fit(stop_after=stop)
    torch.save(first.trainer.state_dict(), tmp_path / "state.pt")
    second.trainer.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    if stop > 12:
        del second.trainer.step  # it was spoilt already
    train(second)
    assert torch.equal(weights(whole), weights(second))
    assert torch.equal(carried(whole)["mean"], carried(second)["mean"])
    assert begun + ended == log
    assert any("event" in record for record in log)


@pytest.mark.parametrize(
    "wrong",
    [None, {}, {"mean": torch.ones(2)}, {"mean": torch.ones(3), "steps": 1}, {"mean": torch.ones(2), "steps": 1.0}],
)
def test_a_checkpoint_with_another_form_of_it_is_refused(wrong):
    run, _ = prepared()
    run.trainer.fit(stop_after=15)
    state = run.trainer.state_dict()
    state["state"]["objectives"]["centred"] = wrong
    with pytest.raises(Misfit, match=r"state\.objectives\.centred"):
        refuse_misfit(run.trainer, state)


class Blind(Centred):
    """One that needs no look but the data themselves."""

    @property
    def looks(self):
        return ()

    def __call__(self, seen, carried=None):
        return -seen.data.logits.log_softmax(dim=1).mean() * carried["mean"].sum()

    def after(self, seen, carried):
        return {**carried, "steps": carried["steps"] + 1}


def test_a_term_that_needs_no_other_look_trains_alone():
    run, log = prepared("n_init=1", term=Blind)
    legs = run.trainer.course.legs
    alone = replace(legs[-1].stage, terms={"centred": legs[-1].stage.terms["centred"]}, walk=None, density_weights={})
    run.trainer.course.legs = [legs[0], replace(legs[-1], stage=alone)]
    train(run)
    assert carried(run)["steps"] == 20
    assert all("centred" in record for record in log if record["stage"] == "stage2")
