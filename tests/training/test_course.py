"""The way through the stages: in order, as many as there are, some of them tried several times."""

import math
from types import SimpleNamespace

import pytest
import torch

from gedi.config import override, parse
from gedi.fitting import prepare, train
from gedi.presets import preset
from gedi.processes import Processes
from gedi.training import Course

PLAIN, TRIED, AGAIN = (
    SimpleNamespace(name=name, clusters_from=clusters, iterations=10)
    for name, clusters in (("stage1", ()), ("stage2", ("swapped",)), ("stage3", ("swapped",)))
)


def course(*stages, n_init=2, good_enough=None):
    return Course(stages, n_init, good_enough, Processes())


def through(course, losses):
    """Every leg with its streams, and what is gone on from after each; tries end with these losses."""
    losses, found = iter(losses), []
    while not course.over:
        leg = course.leg
        course.begin()
        course.next()
        loss = None if leg.restart is None else next(losses)
        best = None if loss is None else course.tried(loss, lambda loss=loss: f"state of {loss}")
        found.append((leg.stage.name, leg.restart, best))
    return found


def test_stages_come_in_order_and_only_those_that_shape_clusters_are_tried_several_times():
    assert [(leg.stage.name, leg.restart) for leg in course(PLAIN, TRIED, n_init=3).legs] == [
        ("stage1", None), ("stage2", 0), ("stage2", 1), ("stage2", 2),
    ]  # fmt: skip
    assert course().over
    assert [leg.record(7) for leg in course(PLAIN, TRIED, n_init=1).legs] == [
        {"stage": "stage1", "iteration": 7},
        {"stage": "stage2", "iteration": 7, "restart": 0},
    ]


def test_the_best_try_is_gone_on_from_once_all_are_over():
    walk = course(PLAIN, TRIED, n_init=3)
    assert through(walk, [3.0, 1.0, 2.0])[1:] == [
        ("stage2", 0, None), ("stage2", 1, None), ("stage2", 2, "state of 1.0"),
    ]  # fmt: skip
    assert walk.selection_losses == [3.0, 1.0, 2.0]
    assert walk.trunk is None
    assert walk.best is None


def test_no_further_try_is_made_once_one_is_good_enough():
    walk = course(TRIED, n_init=5, good_enough=1.0)
    assert through(walk, [3.0, 1.0]) == [("stage2", 0, None), ("stage2", 1, "state of 1.0")]
    assert walk.over


def test_each_stage_has_tries_losses_and_streams_of_its_own():
    """A later stage may end at a higher loss than the one before: its terms are others."""
    walk = course(PLAIN, TRIED, AGAIN)
    assert through(walk, [0.2, 0.1, 5.0, 4.0])[1:] == [
        ("stage2", 0, None), ("stage2", 1, "state of 0.1"), ("stage3", 0, None), ("stage3", 1, "state of 4.0"),
    ]  # fmt: skip
    assert walk.selection_losses == [5.0, 4.0]
    assert [leg.streams for leg in walk.legs] == [
        None, "restart/0", "restart/1", "stage3/restart/0", "stage3/restart/1",
    ]  # fmt: skip
    assert [leg.fresh_heads for leg in walk.legs] == [False, True, True, False, False]


def test_only_the_last_stage_that_is_tried_may_be_good_enough():
    walk = course(TRIED, AGAIN, PLAIN, n_init=3, good_enough=1.0)
    tries = through(walk, [0.5, 0.4, 0.3, 2.0, 0.9])
    assert [(name, restart) for name, restart, _ in tries] == [
        ("stage2", 0), ("stage2", 1), ("stage2", 2), ("stage3", 0), ("stage3", 1), ("stage1", None),
    ]  # fmt: skip


def test_a_try_may_be_lost_if_another_follows_or_one_came_through():
    walk = course(TRIED, AGAIN)
    walk.begin()
    assert walk.can_lose
    walk.next()
    walk.tried(math.inf, dict)
    walk.begin()
    assert not walk.can_lose
    walk.next()
    walk.tried(1.0, dict)
    walk.begin()
    assert walk.can_lose
    walk.next()
    walk.tried(math.inf, dict)
    walk.begin()
    assert not walk.can_lose  # that one of the stage before came through is no help


def test_a_place_is_saved_and_gone_on_from(tmp_path):
    walk, again = course(PLAIN, TRIED), course(PLAIN, TRIED)
    walk.begin()
    walk.next()
    walk.trunk = {"model": {"w": torch.ones(2)}}
    walk.begin()
    walk.next()
    walk.tried(2.0, lambda: {"model": {"w": torch.zeros(2)}})
    torch.save(walk.state_dict(), tmp_path / "course.pt")
    again.load_state_dict(torch.load(tmp_path / "course.pt", weights_only=True))
    assert (again.at, again.begun, again.selection_losses) == (2, False, [2.0])
    assert torch.equal(again.trunk["model"]["w"], torch.ones(2))
    assert through(again, [3.0])[0][:2] == ("stage2", 1)


TINY = [
    "data.n_train=300", "data.n_test=100", "stage1.iterations=10", "stage2.iterations=12", "walk.steps=3",
    "density.buffer=300", "log_every=2", "guard.every=5", "n_init=2", "good_enough=0",
]  # fmt: skip
THIRD = "stage3={iterations: 11, learning_rate: 1.0e-3, betas: [0.9, 0.99], batch_size: 64, "
CLUSTERS = THIRD + "density: {generative: 0.1}, terms: {agreement: {weight: 1}, balance: {weight: 2}}}"
DENSITY = THIRD + "average: 0.9, density: {generative: 1, denoising: 1}}"


def prepared(*settings):
    run = prepare(parse(override(preset("circles"), [*TINY, *settings])))
    run.trainer.on_log = (log := []).append
    return run, log


def weights(run):
    return torch.cat([x.flatten() for x in run.trainer.model.state_dict().values()])


def test_three_stages_train_in_order_each_on_its_terms():
    run, log = prepared(CLUSTERS)
    train(run)
    seen = list(dict.fromkeys((record["stage"], record.get("restart")) for record in log))
    assert seen == [("stage1", None), ("stage2", 0), ("stage2", 1), ("stage3", 0), ("stage3", 1)]
    terms = {stage: set(next(r for r in log if r["stage"] == stage)) for stage in ("stage1", "stage2", "stage3")}
    common = {"stage", "iteration", "loss", "acceptance"}
    assert terms["stage1"] == common | {"generative", "denoising"}
    assert terms["stage2"] == common | {
        "restart", "generative", "denoising", "negative_free", "swapped", "swapped_walk",
    }  # fmt: skip
    assert terms["stage3"] == common | {"restart", "generative", "agreement", "balance"}
    last = [record["iteration"] for record in log if record["stage"] == "stage3" and record["restart"] == 1]
    assert last[-1] == 11
    assert set(run.trainer.seconds) == {"stage1", "stage2", "stage3"}
    assert len(run.trainer.course.selection_losses) == 2


def test_a_third_stage_goes_on_from_the_best_try_of_the_second_with_its_head():
    run, _ = prepared(CLUSTERS)
    run.trainer.fit(stop_after=10 + 2 * 12)
    best = run.trainer.model.state_dict()
    kept = {name: x.clone() for name, x in best.items()}
    two, _ = prepared()
    train(two)
    for name, x in two.trainer.model.state_dict().items():
        assert torch.equal(kept[name], x), name
    trainer = run.trainer
    trainer._begin(trainer.course.leg)
    assert all(torch.equal(kept[name], x) for name, x in trainer.model.state_dict().items())


def test_tries_at_a_third_stage_differ_from_one_another_and_from_those_before():
    run, log = prepared(CLUSTERS)
    train(run)
    first = {
        (record["stage"], record["restart"]): record["loss"]
        for record in reversed(log)
        if record["stage"] == "stage3" and record["iteration"] == 2
    }
    assert len(set(first.values())) == 2
    assert len(set(run.trainer.course.selection_losses)) == 2


def test_a_stage_after_the_clusters_may_train_the_density_alone():
    run, log = prepared(DENSITY)
    run.trainer.fit(stop_after=10 + 2 * 12)
    heads = {name: x.clone() for name, x in run.trainer.model.state_dict().items() if name.startswith("pro")}
    train(run)
    assert [record["iteration"] for record in log if record["stage"] == "stage3"] == [2, 4, 6, 8, 10, 11]
    now = run.trainer.model.state_dict()
    assert all(torch.equal(x, now[name]) for name, x in heads.items())
    assert len(run.trainer.course.selection_losses) == 2


@pytest.mark.parametrize("third", [CLUSTERS, DENSITY])
@pytest.mark.parametrize("stop", [10, 30, 34, 35, 40, 46, 50])
def test_three_stages_that_are_stopped_and_loaded_end_bit_for_bit_as_ones_that_are_not(third, stop, tmp_path):
    (whole, log), (first, begun), (second, ended) = prepared(third), prepared(third), prepared(third)
    train(whole)
    first.trainer.fit(stop_after=stop)
    torch.save(first.trainer.state_dict(), tmp_path / "state.pt")
    second.trainer.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    train(second)
    assert torch.equal(weights(whole), weights(second))
    assert begun + ended == log
    assert whole.trainer.course.selection_losses == second.trainer.course.selection_losses


def test_stages_are_in_the_order_of_their_numbers_and_one_alone_is_enough():
    settings = parse(override(preset("circles"), [DENSITY.replace("stage3", "stage10"), CLUSTERS]))
    assert list(settings.stages) == ["stage1", "stage2", "stage3", "stage10"]
    run, log = prepared("stage1.iterations=0")
    train(run)
    assert {record["stage"] for record in log} == {"stage2"}
