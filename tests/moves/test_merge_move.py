"""Symbols merged from finer clusters: on points whose groups are known, and inside the loop."""

import copy
import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from torch import nn

from gedi import losses
from gedi.config import override, parse
from gedi.densities.none import NoDensity
from gedi.errors import DivergenceError, UserError
from gedi.fitting import prepare, train
from gedi.moves.merge import Merge, found_shares, merge_prototypes, some_of
from gedi.nn import Model, Prototypes
from gedi.objectives.agreement import Agreement
from gedi.objectives.finer import Finer
from gedi.objectives.objective import Context
from gedi.presets import preset
from gedi.random import Streams
from gedi.training import Optimiser, Stage, Trainer, TrainerSettings, View

FINER, GROUPS = 12, 3
CONTEXT = Context(GROUPS, FINER, 0.1, finer=FINER)
CENTRES = torch.eye(FINER)
TRUTH = torch.tensor([2, 0, 1, 1, 0, 2, 0, 0, 1, 2, 1, 2])  # the group of each finer cluster
MEMBERS = torch.stack([(y == TRUTH).nonzero()[:, 0] for y in range(GROUPS)])  # (3, 4)
#: the middle of each group, as cleanly as a direction can tell it from the others
BEST = F.normalize(F.one_hot(TRUTH).t().float() - 1 / GROUPS, dim=1)
#: two groups under one prototype, and the third split between the other two
MIXED = F.normalize(
    torch.stack([CENTRES[part.flatten()].sum(dim=0) for part in (MEMBERS[:2], MEMBERS[2, :2], MEMBERS[2, 2:])]), dim=1
)


class Head(nn.Module):
    """The points are the embeddings, but for a batch norm that training would move."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(FINER)

    def redraw(self, generator):
        self.norm.reset_parameters()

    def forward(self, latent):
        return F.normalize(self.norm(latent), dim=1)


def model_with(prototypes, finer=CENTRES, temperature=0.1):
    model = Model(
        nn.Identity(),
        Head(),
        Prototypes(FINER, len(prototypes), temperature),
        finer=Prototypes(FINER, len(finer), temperature),
    )
    with torch.no_grad():
        model.prototypes.weight.copy_(prototypes)
        model.finer.weight.copy_(finer)
    return model


def points_of(n=240, spread=0.05, seed=0):
    """Points of twelve tight clusters, and the group of each."""
    g = torch.Generator().manual_seed(seed)
    cluster = torch.arange(n) % FINER
    return CENTRES[cluster] + spread * torch.randn(n, FINER, generator=g), TRUTH[cluster]


def within_the_group(x, generator):
    """A look: the same thing, but in any of the clusters of its group."""
    chosen = torch.randint(MEMBERS.shape[1], (len(x),), generator=generator)
    return CENTRES[MEMBERS[TRUTH[x.argmax(dim=1)], chosen]] + 0.05 * torch.randn(x.shape, generator=generator)


def merged_for(model, points, *, seed=0, augment=within_the_group, balance=4.0):  # of equal shares
    return merge_prototypes(model, points, augment, torch.Generator().manual_seed(seed), balance, finds_shares=False)


def in_the_order_of_the_groups(prototypes):
    """Rows moved so that row y is the one nearest to group y."""
    nearest = (BEST @ prototypes.t()).argmax(dim=1)
    assert sorted(nearest.tolist()) == list(range(GROUPS))
    return prototypes[nearest]


@pytest.mark.parametrize("seed", range(4))
def test_clusters_that_looks_confuse_become_one_symbol(seed):
    points, groups = points_of()
    model = model_with(MIXED)
    found = merged_for(model, points, seed=seed)
    assert found.improves
    assert found.permutation is None
    prototypes = in_the_order_of_the_groups(found.prototypes)
    assert torch.equal((points @ prototypes.t()).argmax(dim=1), groups)
    assert torch.equal((CENTRES @ prototypes.t()).argmax(dim=1), TRUTH)
    torch.testing.assert_close(prototypes.norm(dim=1), torch.ones(GROUPS))
    # looks fall unevenly into the clusters of a group, so each prototype is its group's middle but for that
    middles = F.normalize(F.one_hot(TRUTH).t().float(), dim=1)
    assert (prototypes * middles).sum(dim=1).min() > 0.97
    assert torch.equal(model.prototypes.weight, MIXED)  # proposing changes nothing
    assert found.record() == {
        "cluster_before": found.before, "cluster_after": found.after, "prototypes": "redrawn",
    }  # fmt: skip


def test_merging_does_not_know_of_half_precision_around_it():
    points, _ = points_of()
    with torch.autocast("cpu", torch.bfloat16):
        found = merged_for(model_with(MIXED), points)
    exact = merged_for(model_with(MIXED), points)
    assert (found.before, found.after) == (exact.before, exact.after)
    assert torch.equal(found.prototypes, exact.prototypes)


def test_no_descent_is_needed_where_the_mixed_prototypes_are_a_trap():
    points, groups = points_of()
    assert ((points @ MIXED.t()).argmax(dim=1) == groups).float().mean() < 0.7
    found = merged_for(model_with(MIXED), points)
    assert found.after < found.before - 0.3


class Cut:
    """Stands in for the spectral clustering: keeps what it is given and says what it is told."""

    def __init__(self, groups):
        self.groups = groups

    def __call__(self, clusters, **settings):
        self.clusters, self.settings = clusters, settings
        return self

    def fit_predict(self, affinity):
        self.affinity = affinity
        return self.groups.numpy()


@pytest.mark.parametrize("told", [TRUTH, torch.arange(FINER) % GROUPS])
def test_the_affinity_and_the_prototypes_are_what_the_formulas_say(monkeypatch, told):
    """Sum by sum: over points, ordered pairs of different looks, and clusters."""
    points, _ = points_of(n=36)
    finer = F.normalize(CENTRES + 0.3 * torch.randn(FINER, FINER), dim=1)
    model = model_with(MIXED, finer, temperature=0.3).eval()  # soft, so that every entry counts
    cut = Cut(told)
    monkeypatch.setattr("gedi.moves.merge.SpectralClustering", cut)
    found = merged_for(model, points, seed=5)

    g = torch.Generator().manual_seed(5)
    with torch.no_grad():
        looks = [model.projector(within_the_group(points, g)) for _ in range(4)]
        p = torch.stack([(w @ finer.t() / 0.3).softmax(dim=1) for w in looks]).double()  # (looks, n, finer)
    confused = torch.zeros(FINER, FINER, dtype=torch.float64)
    for a, b in itertools.permutations(range(4), 2):
        for i in range(len(points)):
            confused += torch.outer(p[a, i], p[b, i])
    mass = confused.sum(dim=1)
    affinity = torch.tensor([[confused[j, k] / (mass[j] * mass[k]).sqrt() for k in range(FINER)] for j in range(FINER)])
    assert cut.clusters == GROUPS
    assert cut.settings["affinity"] == "precomputed"
    np.testing.assert_allclose(cut.affinity, affinity, rtol=1e-4)
    assert np.array_equal(cut.affinity, cut.affinity.T)

    mean_look = F.normalize(sum(looks), dim=1).double()
    for y in range(GROUPS):
        total = sum(
            p[a, i, j] * mean_look[i]
            for a in range(4)
            for i in range(len(points))
            for j in range(FINER)
            if told[j] == y
        )
        torch.testing.assert_close(found.prototypes[y], (total / total.norm()).float(), rtol=1e-4, atol=1e-5)


def test_what_is_said_of_before_and_after_is_the_cluster_loss_of_two_looks():
    points, _ = points_of()
    model = model_with(MIXED).eval()
    found = merged_for(model, points, seed=2, balance=3.0)
    g = torch.Generator().manual_seed(2)
    with torch.no_grad():
        one, two = (model.projector(within_the_group(points, g)) for _ in range(2))

    def loss(prototypes):
        a, b = (w @ prototypes.t() / 0.1 for w in (one, two))
        return (losses.agreement(a, b) + 3.0 * losses.balance(torch.cat([a, b]))).item()

    assert found.before == pytest.approx(loss(MIXED), rel=1e-5)
    assert found.after == pytest.approx(loss(found.prototypes), rel=1e-5)


def test_the_length_of_the_old_prototypes_says_nothing():
    points, _ = points_of()
    plain, long = (merged_for(model_with(length * MIXED), points) for length in (1.0, 7.0))
    assert long.before == pytest.approx(plain.before, rel=1e-5)
    assert torch.equal(long.prototypes, plain.prototypes)


def test_better_prototypes_are_kept():
    points, _ = points_of()
    found = merged_for(model_with(BEST), points)
    assert found.after > found.before
    assert not found.improves
    assert found.record()["prototypes"] == "kept"


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_finer_clusters_does_not_matter(seed):
    points, _ = points_of()
    order = torch.randperm(FINER, generator=torch.Generator().manual_seed(seed))
    plain, permuted = (merged_for(model_with(MIXED, finer), points) for finer in (CENTRES, CENTRES[order]))
    torch.testing.assert_close(*(in_the_order_of_the_groups(found.prototypes) for found in (plain, permuted)))
    assert permuted.after == pytest.approx(plain.after, rel=1e-4)


def test_a_proposal_follows_from_its_generator_and_touches_no_other():
    points, _ = points_of()
    model = model_with(MIXED)
    global_torch, global_numpy = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = (merged_for(model, points, seed=seed) for seed in (4, 4, 5))
    assert torch.equal(first.prototypes, again.prototypes)
    assert first[2:] == again[2:]
    assert first.after != other.after
    assert torch.equal(torch.get_rng_state(), global_torch)
    assert np.array_equal(np.random.get_state()[1], global_numpy)  # noqa: NPY002


@pytest.mark.parametrize("training", [True, False])
def test_a_proposal_leaves_mode_statistics_and_gradients_alone(training):
    points, _ = points_of()
    model = model_with(MIXED).train(training)
    before = copy.deepcopy(model.state_dict())
    found = merged_for(model, points)
    assert not found.prototypes.requires_grad
    assert model.training is training
    assert model.projector.norm.training is training
    assert all(torch.equal(before[name], x) for name, x in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    model.train()
    model(points)
    assert not torch.equal(before["projector.norm.running_mean"], model.projector.norm.running_mean)  # it could move


def test_looks_that_never_confuse_two_groups_at_all_still_merge_without_a_word():
    """So cold that the confusions of different groups are exactly zero."""
    points, groups = points_of(spread=0.0)

    def clean(x, generator):
        chosen = torch.randint(MEMBERS.shape[1], (len(x),), generator=generator)
        return CENTRES[MEMBERS[TRUTH[x.argmax(dim=1)], chosen]]

    found = merged_for(model_with(MIXED, temperature=0.005), points, augment=clean)
    prototypes = in_the_order_of_the_groups(found.prototypes)
    assert torch.equal((points @ prototypes.t()).argmax(dim=1), groups)


def test_a_finer_cluster_that_nothing_falls_into_is_no_trouble():
    points, groups = points_of()
    empty = F.normalize(-torch.ones(1, FINER), dim=1)
    found = merged_for(model_with(MIXED, torch.cat([CENTRES, empty])), points)
    assert found.prototypes.isfinite().all()
    assert torch.equal((points @ in_the_order_of_the_groups(found.prototypes).t()).argmax(dim=1), groups)


def test_merging_looks_at_three_thousand_points_or_all_there_are(g):
    few, many = some_of(10, g), some_of(5000, g)
    assert sorted(few.tolist()) == list(range(10))
    assert len(many) == len(set(many.tolist())) == 3000
    assert 0 <= many.min() < 100
    assert 4900 < many.max() < 5000
    again = torch.Generator().manual_seed(0)
    assert torch.equal(some_of(10, again), few)


def trainer_of(prototypes, points, *, moments=(0.5,), iterations=8, average=0.9, log=None):
    stage = Stage(
        name="stage2",
        iterations=iterations,
        batch_size=40,
        optimiser=Optimiser(1e-3, (0.9, 0.999), 0, 1.0),
        density=NoDensity(),
        terms={"agreement": Agreement(weight=1.0).bind(CONTEXT), "finer": Finer(weight=1.0).bind(CONTEXT)},
        moves={"merge": Merge(moments=moments).bind(CONTEXT)},
        view=View(noise=0.01, augment=within_the_group),
        average=average,
    )
    model = model_with(prototypes)
    model.redraw_heads = lambda generator: None  # a try begins with these
    return Trainer(
        model,
        points,
        NoDensity(),
        [stage],
        Streams(0),
        Fabric(accelerator="cpu", devices=1),
        TrainerSettings(log_every=1),
        (lambda record: None) if log is None else log.append,
    )


def merge_now(trainer):
    """The move, as the loop makes it, at the iteration that the trainer is at."""
    leg = trainer.course.leg
    now = Merge(moments=(trainer.state.iteration / leg.stage.iterations,)).bind(CONTEXT)
    trainer._make_moves(leg, replace(leg.stage, moves={"merge": now}))


def kept_beside(trainer):
    """Everything that stands beside the prototypes, none of it zero."""
    trainer.fit(stop_after=1)
    prototypes = trainer.model.prototypes.weight
    state = trainer.optimizer.state[prototypes]
    place = [p is prototypes for p in trainer.model.parameters()].index(True)
    beside = {"exp_avg": state["exp_avg"], "exp_avg_sq": state["exp_avg_sq"], "average": trainer.state.average[place]}
    for i, x in enumerate(beside.values()):
        x.copy_(0.1 + torch.rand(x.shape, generator=torch.Generator().manual_seed(i)))
    return beside


def everything_else(trainer):
    """All other weights, moments and averages."""
    prototypes = trainer.model.prototypes.weight
    rest = [
        (p, average, *trainer.optimizer.state[p].values())
        for p, average in zip(trainer.model.parameters(), trainer.state.average, strict=True)
        if p is not prototypes and p in trainer.optimizer.state
    ]
    return [x.detach().clone() for part in rest for x in part]


def test_merged_prototypes_replace_the_old_and_all_that_was_kept_of_them():
    points, groups = points_of()
    log = []
    trainer = trainer_of(MIXED, points, log=log)
    beside = kept_beside(trainer)
    with torch.no_grad():
        trainer.model.prototypes.weight.copy_(MIXED)
    others = everything_else(trainer)
    assert len(others) > 4
    log.clear()
    merge_now(trainer)
    (record,) = log
    assert (record["event"], record["stage"], record["iteration"]) == ("merge", "stage2", 1)
    assert record["prototypes"] == "redrawn"
    assert record["cluster_after"] < record["cluster_before"]
    assert beside["exp_avg"].abs().max() == beside["exp_avg_sq"].abs().max() == 0
    assert torch.equal(beside["average"], trainer.model.prototypes.weight)
    assert all(map(torch.equal, others, everything_else(trainer)))
    prototypes = in_the_order_of_the_groups(trainer.model.prototypes.weight.detach())
    assert torch.equal((points @ prototypes.t()).argmax(dim=1), groups)
    assert trainer.model.prototypes.weight.requires_grad


def test_where_the_loss_would_not_drop_nothing_changes():
    points, _ = points_of()
    log = []
    trainer = trainer_of(BEST, points, log=log)
    beside = kept_beside(trainer)
    with torch.no_grad():
        trainer.model.prototypes.weight.copy_(BEST)
    before, state = {name: x.clone() for name, x in beside.items()}, copy.deepcopy(trainer.model.state_dict())
    merge_now(trainer)
    assert all(torch.equal(x, before[name]) for name, x in beside.items())
    assert all(torch.equal(x, state[name]) for name, x in trainer.model.state_dict().items())
    assert log[-1]["prototypes"] == "kept"


def test_merging_comes_before_the_step_at_its_moments_and_draws_from_its_own_stream():
    points, groups = points_of()
    logs = {}
    for moments in ((), (0.0, 0.25, 0.5)):
        log = logs[moments] = []
        trainer = trainer_of(MIXED, points, moments=moments, log=log, average=0.0)
        trainer.fit()
    events = [record for record in logs[0.0, 0.25, 0.5] if "event" in record]
    assert [(record["event"], record["iteration"]) for record in events] == [("merge", 0), ("merge", 2), ("merge", 4)]
    assert events[0]["prototypes"] == "redrawn"
    assert not any("event" in record for record in logs[()])
    # the first batch and its views are the same with and without: the finer clusters' loss says so
    first = [next(record for record in log if "loss" in record) for log in logs.values()]
    assert first[0]["finer"] == first[1]["finer"]
    assert not trainer.model.training
    said = trainer.model(points).logits.argmax(dim=1)
    assert len({(int(a), int(b)) for a, b in zip(said, groups, strict=True)}) == GROUPS


def test_weights_that_are_not_finite_are_a_divergence_and_not_a_riddle():
    points, _ = points_of()
    trainer = trainer_of(MIXED, points, moments=(0.0,))
    with torch.no_grad():
        trainer.model.finer.weight[0, 0] = torch.nan
    with pytest.raises(DivergenceError, match="stage2 diverged by iteration 0: weights not finite"):
        trainer.fit()


def test_a_model_says_of_finer_clusters_what_their_prototypes_say():
    points, _ = points_of(n=24)
    model = model_with(MIXED, CENTRES[:5]).eval()
    first, second = model.heads([points[:10], points[10:]])
    expected = F.normalize(points, dim=1) @ CENTRES[:5].t() / 0.1
    torch.testing.assert_close(torch.cat([first.finer, second.finer]), expected, rtol=1e-4, atol=1e-4)
    assert len(first.finer) == 10
    assert torch.equal(model(points).logits, torch.cat([first.logits, second.logits]))
    before = model.finer.weight.clone()
    model.redraw_heads(torch.Generator().manual_seed(1))
    assert not torch.equal(model.finer.weight, before)
    bare = Model(nn.Identity(), Head(), Prototypes(FINER, 3))
    assert bare.heads([points])[0].finer is None


def test_without_finer_clusters_there_is_nothing_to_merge_from():
    with pytest.raises(UserError, match=r"merged from finer ones, and the model has none: see model\.finer"):
        Merge(moments=(0.5,)).bind(CONTEXT._replace(finer=0))


def test_the_weight_of_the_balance_is_a_setting(g):
    points, _ = points_of()
    move = Merge(shares="equal", balance=3.0).bind(CONTEXT)
    found = move.propose(model_with(MIXED), points, 0, within_the_group, g)
    again = torch.Generator().manual_seed(0)
    some = points[some_of(len(points), again)]
    assert found.after == merge_prototypes(model_with(MIXED), some, within_the_group, again, 3.0).after


UNEQUAL = torch.tensor([0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2])  # the group of each finer cluster: 9, 2 and 1 of twelve


def test_the_shares_of_the_groups_come_with_the_merging(g):
    """Finer clusters have equal shares, so that a group has as many points as finer clusters."""
    cluster = torch.arange(240) % FINER
    points = CENTRES[cluster] + 0.05 * torch.randn(240, FINER, generator=g)
    members = [(y == UNEQUAL).nonzero()[:, 0] for y in range(GROUPS)]

    def within(x, generator):
        groups = UNEQUAL[x.argmax(dim=1)].tolist()
        chosen = [members[y][torch.randint(len(members[y]), (), generator=generator)] for y in groups]
        return CENTRES[torch.stack(chosen)] + 0.05 * torch.randn(x.shape, generator=generator)

    found = merge_prototypes(model_with(MIXED), points, within, g)
    assert found.improves
    shares = found.log_shares.exp()
    away = torch.tensor([9, 2, 1]) / 12 - 1 / 3
    kept = 1 - 1 / (12**2 * away.square().mean())
    assert shares.sort(descending=True).values.tolist() == pytest.approx((1 / 3 + kept * away).tolist(), abs=0.01)
    said = (F.normalize(points, dim=1) @ found.prototypes.t()).argmax(dim=1)
    pairs = zip(said.tolist(), UNEQUAL[cluster].tolist(), strict=True)
    assert len(set(pairs)) == GROUPS
    assert shares[said[UNEQUAL[cluster] == 0][0]] == shares.max()  # the share is that of its own prototype
    equal = merge_prototypes(model_with(MIXED), points, within, g, finds_shares=False)
    assert equal.log_shares is None


def test_masses_that_differ_by_chance_are_equal_shares_and_others_nearly_kept():
    masses = torch.tensor([0.24, 0.26, 0.25, 0.25])
    assert torch.equal(found_shares(masses, finer=12), torch.full((4,), 0.25))
    one = torch.tensor([0.97, 0.01, 0.01, 0.01])
    torch.testing.assert_close(found_shares(one, finer=1000), one, rtol=1e-3, atol=1e-4)
    assert (found_shares(torch.tensor([1.0, 0.0, 0.0]), finer=50) > 0).all()


def test_equal_shares_where_they_are_asked_for_and_found_ones_without_a_rule_else():
    def shares(*settings):
        prepared = prepare(parse(override(preset("digits-energy"), [*SMALL, *settings])))
        return prepared.trainer.course.legs[-1].stage.terms["balance"].begin()

    assert shares().exp().tolist() == pytest.approx([0.1] * 10)
    assert shares("stage2.moves.merge.shares=equal") is None
    assert shares("stage2.moves.merge.moments=[]") is None


SMALL = [
    "data.name=digits", "data.limit=100", "model.width=4", "model.latent=8", "model.projector=16", "model.embedding=8",
    "model.finer=14", "stage1.iterations=0", "stage2.iterations=10", "stage2.batch_size=25", "stage2.average=0.9",
    "stage2.moves.merge.moments=[0.3,0.5,0.7]", "density.buffer=40", "log_every=2", "n_init=2",
]  # fmt: skip


def small_run():
    run, log = prepare(parse(override(preset("mnist-energy"), SMALL))), []
    run.trainer.on_log = log.append
    return run, log


@pytest.fixture(scope="module")
def whole():
    run, log = small_run()
    train(run)
    return run, log


def test_tries_at_a_stage_merge_at_the_same_moments(whole):
    _, log = whole
    events = [(record["restart"], record["iteration"]) for record in log if record.get("event") == "merge"]
    assert events == [(restart, iteration) for restart in (0, 1) for iteration in (3, 5, 7)]
    assert any(record.get("prototypes") == "redrawn" for record in log)


@pytest.mark.parametrize("stop", [3, 4, 8, 13])
def test_a_run_with_merging_that_is_stopped_and_loaded_ends_bit_for_bit_as_one_that_is_not(whole, stop, tmp_path):
    """A stop just before a merge, between two, after them, and in the second try."""
    run, log = whole
    (first, first_log), (second, second_log) = small_run(), small_run()
    first.trainer.fit(stop_after=stop)
    torch.save(first.trainer.state_dict(), tmp_path / "state.pt")
    second.trainer.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    train(second)
    for (name, a), b in zip(
        run.trainer.model.state_dict().items(), second.trainer.model.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b), name
    assert first_log + second_log == log
    assert run.trainer.course.selection_losses == second.trainer.course.selection_losses
