"""The loop: determinism, resume, restarts, stages."""

import math

import pytest
import torch

from gedi.config import override, parse
from gedi.errors import DivergenceError, UserError
from gedi.fitting import prepare, train
from gedi.presets import preset
from gedi.training import Walk, walks

TINY = [
    "data.n_train=300",
    "data.n_test=100",
    "stage1.iterations=30",
    "stage2.iterations=20",
    "walk.steps=5",
    "density.buffer=500",
    "log_every=10",
]


def prepared(*settings, name="circles"):
    return prepare(parse(override(preset(name), [*TINY, *settings])))


def weights(run):
    return torch.cat([p.detach().flatten() for p in run.trainer.model.state_dict().values()])


def chains(run):
    return run.trainer.state.density["chains"].rows


def test_the_same_seed_gives_the_same_run_bit_for_bit():
    a, b, other = prepared("seed=3"), prepared("seed=3"), prepared("seed=4")
    for run in (a, b, other):
        train(run)
    assert torch.equal(weights(a), weights(b))
    assert torch.equal(chains(a), chains(b))
    assert not torch.equal(weights(a), weights(other))


@pytest.mark.parametrize("stop", [1, 17, 30, 41, 63])
@pytest.mark.parametrize("method", ["gedi", "no-nf-2-enc"])
def test_a_run_that_is_stopped_and_loaded_ends_bit_for_bit_as_one_that_is_not(stop, method, tmp_path):
    settings = (f"method={method}", "n_init=2", "good_enough=0")
    whole = prepared(*settings)
    train(whole)
    first = prepared(*settings)
    first.trainer.fit(stop_after=stop)
    torch.save(first.trainer.state_dict(), tmp_path / "state.pt")
    second = prepared(*settings)
    second.trainer.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    train(second)
    assert torch.equal(weights(whole), weights(second))
    assert torch.equal(chains(whole), chains(second))
    assert whole.trainer.course.selection_losses == second.trainer.course.selection_losses


def test_restarts_share_stage_one_and_the_lowest_loss_is_kept():
    run = prepared("n_init=3", "good_enough=0")
    stages = []
    run.trainer.on_log = lambda record: stages.append((record["stage"], record.get("restart")))
    train(run)
    assert sorted(set(stages), key=str) == [("stage1", None), ("stage2", 0), ("stage2", 1), ("stage2", 2)]
    losses = run.trainer.course.selection_losses
    assert len(losses) == 3
    single = prepared("n_init=3", "good_enough=0")
    best = losses.index(min(losses))
    course = single.trainer.course
    course.legs, course.n_init = [course.legs[0], course.legs[1 + best]], best + 1
    train(single)
    assert torch.equal(weights(run), weights(single))


def test_no_further_try_is_made_once_one_is_good_enough():
    run = prepared("n_init=3", "good_enough=100")
    train(run)
    assert len(run.trainer.course.selection_losses) == 1


def test_stage_one_leaves_the_head_alone_and_stage_two_moves_everything():
    run = prepared("n_init=1")
    before = {name: p.clone() for name, p in run.trainer.model.named_parameters()}
    run.trainer.fit(stop_after=29)
    changed = {name for name, p in run.trainer.model.named_parameters() if not torch.equal(p, before[name])}
    energy = {name for name in before if name.startswith(("encoder", "density"))}
    # a constant added to the energy changes no density, so the last bias gets no gradient
    assert changed == energy - {"encoder.layers.2.bias"}
    train(run)
    assert all(not torch.equal(p, before[name]) for name, p in run.trainer.model.named_parameters())


@pytest.mark.parametrize(
    ("method", "terms"),
    [
        ("gedi", {"generative", "denoising", "negative_free", "swapped", "swapped_walk"}),
        ("no-nf", {"generative", "denoising", "swapped", "swapped_walk"}),
        ("no-nf-no-train-1", {"generative", "denoising", "swapped", "swapped_walk"}),
        ("no-nf-2-enc", {"generative", "denoising", "swapped", "swapped_walk"}),
        ("swav", {"swapped"}),
        ("jem", {"generative"}),
    ],
)
def test_each_method_trains_its_terms_and_no_others(method, terms):
    run = prepared(f"method={method}", "n_init=1")
    stage = run.trainer.course.legs[-1].stage
    assert set(stage.weights(0.5)) == terms
    stages = {leg.stage.name for leg in run.trainer.course.legs}
    assert ("stage1" in stages) == (method not in ("swav", "no-nf-no-train-1"))
    train(run)
    assert torch.isfinite(weights(run)).all()


def test_two_encoders_keep_the_clusters_out_of_the_energy():
    run = prepared("method=no-nf-2-enc", "n_init=1", "stage2.density={generative: 0, denoising: 0}")
    run.trainer.fit(stop_after=30)
    energy = [p.clone() for p in run.trainer.model.density.encoder.parameters()]
    train(run)
    assert all(map(torch.equal, energy, run.trainer.model.density.encoder.parameters()))


def test_walks_follow_the_energy_they_are_told_to():
    frozen = prepared("n_init=1")
    live = prepared("n_init=1", "walk.energy=live", "walk.refresh=5")
    radial = prepared("n_init=1", "walk=radial", "walk.corrector=0")
    ends = []
    for run in (frozen, live, radial):
        run.trainer.fit(stop_after=31)
        early = run.trainer.walks.ends.clone()
        run.trainer.fit(stop_after=10)
        ends.append((early, run.trainer.walks.ends))
    assert torch.equal(*ends[0])
    assert not torch.equal(*ends[1])
    radius = ends[2][0].norm(dim=1)  # walks on -x keep to circles, but for the chords' drift
    assert (radius - radial.trainer.train.norm(dim=1)).abs().max() < 0.03


def test_the_average_replaces_the_weights_at_the_end_of_the_stage():
    run = prepared("n_init=1", "stage1.average=0.9")
    run.trainer.fit(stop_after=29)
    name, live = next((name, p.clone()) for name, p in run.trainer.model.named_parameters())
    running = run.trainer.state.average[0].clone()
    run.trainer.fit(stop_after=2)
    assert (run.trainer.course.trunk["model"][name] - running).norm() < (live - running).norm()


@pytest.mark.parametrize(("fresh", "steps"), [("true", 1), ("false", 11)])
def test_a_stage_may_begin_without_the_moments_of_the_one_before(fresh, steps):
    run = prepared(f"stage2.fresh_optimiser={fresh}", "stage1.iterations=10")
    run.trainer.fit(stop_after=11)
    counts = {int(run.trainer.optimizer.state[p]["step"]) for p in run.trainer.model.encoder.parameters()}
    assert counts == {steps}


def test_chains_begin_where_they_are_told_to():
    uniform, normal = prepared(), prepared("density.initial=normal")
    box = uniform.box
    assert box.contains(chains(uniform)).all()
    assert chains(uniform).std() > chains(normal).std()
    torch.testing.assert_close(chains(normal).std(dim=0), normal.data.train.std(dim=0), rtol=0.15, atol=0)


def test_a_batch_larger_than_the_data_is_refused():
    with pytest.raises(UserError, match="batch_size must be at most the number of training points, got 400"):
        prepared("stage1.batch_size=400")


def test_a_number_that_is_not_finite_stops_the_run_with_its_name():
    run = prepared("n_init=1")
    with torch.no_grad():
        run.trainer.model.density.direction.fill_(math.nan)
    with pytest.raises(DivergenceError, match=r"stage1 diverged by iteration 10: .*generative"):
        train(run)


def test_memory_of_the_trainer_does_not_grow_with_iterations():
    run = prepared("n_init=1")
    run.trainer.fit(stop_after=5)
    sizes = sum(x.numel() for x in _tensors(run.trainer.state_dict()))
    run.trainer.fit(stop_after=20)
    assert sum(x.numel() for x in _tensors(run.trainer.state_dict())) == sizes


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from _tensors(v)
    elif isinstance(value, list | tuple):
        for v in value:
            yield from _tensors(v)


def walked_by(run, monkeypatch):
    """How many points each call walks from, and where."""
    starts = []
    walk = Walk.__call__
    monkeypatch.setattr(Walk, "__call__", lambda s, e, x, g, **kw: starts.append(x) or walk(s, e, x, g, **kw))
    train(run)
    return starts


def test_of_many_points_only_those_that_are_visited_are_walked(monkeypatch):
    """A million points and a thousand batches: walking them all would cost a million walks."""
    run = prepared("data.n_train=3000", "n_init=1", "stage2.batch_size=100", "stage2.iterations=30")
    starts = torch.cat(walked_by(run, monkeypatch))
    assert len(starts) == 3000  # thirty batches of a hundred are all points, once
    assert len(torch.unique(starts, dim=0)) == 3000
    few = prepared("data.n_train=3000", "n_init=1", "stage2.batch_size=100", "stage2.iterations=5")
    assert [len(x) for x in walked_by(few, monkeypatch)] == [100] * 5


def test_points_that_come_again_are_walked_once_and_all_together(monkeypatch):
    run = prepared("data.n_train=300", "n_init=1", "stage2.batch_size=100", "stage2.iterations=4")
    assert [len(x) for x in walked_by(run, monkeypatch)] == [300]
    monkeypatch.setattr(walks, "_WALKED", 120)
    run = prepared("data.n_train=300", "n_init=1", "stage2.batch_size=100", "stage2.iterations=4")
    assert [len(x) for x in walked_by(run, monkeypatch)] == [120, 120, 60]
