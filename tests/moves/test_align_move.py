"""Alignment during training: prototypes get the names that the rule gives them, and all that hangs on them follows."""

import copy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from torch import nn

from gedi.config import override, parse
from gedi.densities.none import NoDensity
from gedi.errors import DivergenceError, UserError
from gedi.fitting import prepare, train
from gedi.logic import sums_to
from gedi.moves.align import Align, align_prototypes
from gedi.moves.move import Proposal
from gedi.nn import Classifier, Model, Passthrough, Prototypes
from gedi.objectives.constraint import Rule
from gedi.objectives.objective import Context
from gedi.presets import preset
from gedi.random import Streams
from gedi.training import Optimiser, Stage, Trainer, TrainerSettings, View

SYMBOLS, DIMENSION = 4, 8
RULE = sums_to(2, range(SYMBOLS))
CONTEXT = Context(SYMBOLS, DIMENSION, 0.1, constraint=RULE)
CENTRES = torch.eye(DIMENSION)[:SYMBOLS]
PERMUTATIONS = [(1, 0, 2, 3), (3, 2, 1, 0), (1, 2, 3, 0), (2, 3, 0, 1)]


class Head(nn.Module):
    """The points are the embeddings, but for a batch norm that training would move."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(DIMENSION)

    def redraw(self, generator):
        self.norm.reset_parameters()

    def forward(self, latent):
        return F.normalize(self.norm(latent), dim=1)


class Counted(nn.Module):
    """An encoder that says nothing, and counts."""

    def __init__(self):
        super().__init__()
        self.rows = 0

    def forward(self, x):
        self.rows += len(x)
        return x


def clean_groups(groups=60, spread=0.1, seed=0):
    """Groups that satisfy the rule, each symbol a clean cluster, and the symbols."""
    g = torch.Generator().manual_seed(seed)
    solutions = torch.tensor(RULE.solutions())
    symbols = solutions[torch.randint(len(solutions), (groups,), generator=g)].flatten()
    return CENTRES[symbols] + spread * torch.randn(len(symbols), DIMENSION, generator=g), symbols


def model_with(prototypes, encoder=None):
    model = Model(encoder or nn.Identity(), Head(), Prototypes(DIMENSION, len(prototypes), 0.1))
    with torch.no_grad():
        model.prototypes.weight.copy_(prototypes)
    return model


def jitter(x, generator):
    return x + 0.02 * torch.randn(x.shape, generator=generator)


def found_for(model, points, *, decode=False, restarts=20, seed=0):
    return align_prototypes(model, points, RULE, jitter, torch.Generator().manual_seed(seed), restarts, decode)


def trainer_of(prototypes, points, *, moments=(0.5,), decode=False, iterations=8, average=0.9, log=None):
    stage = Stage(
        name="stage2",
        iterations=iterations,
        batch_size=30,
        optimiser=Optimiser(1e-3, (0.9, 0.999), 0, 1.0),
        density=NoDensity(),
        terms={"constraint": Rule(weight=1.0).bind(CONTEXT)},
        moves={"align": Align(moments=moments, restarts=20, decode=decode).bind(CONTEXT)},
        view=View(noise=0.02),
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
        group_size=3,
        groups=len(points) // 3,
    )


def align_now(trainer):
    """The move, as the loop makes it, at the iteration that the trainer is at."""
    leg = trainer.course.leg
    moments = (trainer.state.iteration / leg.stage.iterations,)
    now = leg.stage.moves["align"].model_copy(update={"moments": moments}).bind(CONTEXT)
    trainer._make_moves(leg, replace(leg.stage, moves={"align": now}))


@pytest.mark.parametrize("decode", [False, True])
def test_alignment_does_not_know_of_half_precision_around_it(decode):
    points, _ = clean_groups()
    wrong = CENTRES[list(PERMUTATIONS[0])]
    with torch.autocast("cpu", torch.bfloat16):
        found = found_for(model_with(wrong), points, decode=decode)
    exact = found_for(model_with(wrong), points, decode=decode)
    assert (found.before, found.after) == (exact.before, exact.after)
    assert torch.equal(found.prototypes, exact.prototypes)


@pytest.mark.parametrize("order", PERMUTATIONS)
def test_prototypes_in_a_permuted_order_are_put_in_the_order_of_the_symbols(order):
    points, _ = clean_groups()
    model = model_with(CENTRES[list(order)])
    found = found_for(model, points)
    assert found.improves
    assert torch.equal(found.prototypes, CENTRES)
    assert torch.equal(CENTRES[list(order)][found.permutation], CENTRES)
    assert found.after < 0.1 < found.before
    assert found.record() == {
        "constraint_before": found.before, "constraint_after": found.after, "prototypes": "renamed",
    }  # fmt: skip
    assert torch.equal(model.prototypes.weight, CENTRES[list(order)])  # proposing changes nothing


def test_what_is_said_of_before_and_after_is_the_constraint_loss():
    points, _ = clean_groups()
    model = model_with(CENTRES[[1, 2, 3, 0]]).eval()

    def loss(prototypes):
        with torch.no_grad():
            log_p = (model(points).embedding @ prototypes.t() / 0.1).log_softmax(dim=1)
        return -RULE.log_prob(log_p.view(-1, 3, SYMBOLS)).mean().item()

    found = found_for(model, points)
    assert found.before == pytest.approx(loss(CENTRES[[1, 2, 3, 0]]), rel=1e-5)
    assert found.after == pytest.approx(loss(CENTRES), rel=1e-4)


def test_right_prototypes_are_kept():
    points, _ = clean_groups()
    found = found_for(model_with(CENTRES), points)
    assert not found.improves
    assert found.record()["prototypes"] == "kept"


@pytest.mark.parametrize("training", [True, False])
def test_a_proposal_leaves_mode_statistics_and_the_global_stream_alone(training):
    points, _ = clean_groups()
    model = model_with(CENTRES[[1, 2, 3, 0]]).train(training)
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    found_for(model, points, decode=True)
    assert model.training is training
    assert model.projector.norm.training is training
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None for p in model.parameters())


def test_a_proposal_follows_from_its_generator():
    points, _ = clean_groups()
    model = model_with(CENTRES[[1, 2, 3, 0]])
    first, again = (found_for(model, points, decode=True, seed=4) for _ in range(2))
    assert torch.equal(first.prototypes, again.prototypes)
    assert first[2:] == again[2:]


def test_of_many_groups_three_hundred_are_looked_at_once_and_in_four_views():
    points, _ = clean_groups(groups=700)
    encoder = Counted()
    found = found_for(model_with(CENTRES[[1, 2, 3, 0]], encoder), points)
    assert encoder.rows == 5 * 300 * 3
    assert torch.equal(found.prototypes, CENTRES)


def mixed():
    """Two symbols under one prototype, and one symbol split between two."""
    split = torch.eye(DIMENSION)[5]
    return F.normalize(
        torch.stack([CENTRES[0] + CENTRES[1], CENTRES[2] + split, CENTRES[2] - split, CENTRES[3]]), dim=1
    )


def test_mixed_prototypes_are_mended_by_decoding_finer_clusters_and_not_by_renaming():
    points, symbols = clean_groups(groups=120)
    model = model_with(mixed())
    renamed, decoded = found_for(model, points), found_for(model, points, decode=True)
    assert decoded.permutation is None
    assert decoded.record()["prototypes"] == "redrawn"
    assert decoded.after < 0.1 < renamed.after
    said = (points @ decoded.prototypes.t()).argmax(dim=1)
    assert torch.equal(said, symbols)
    torch.testing.assert_close(decoded.prototypes.norm(dim=1), torch.ones(SYMBOLS))
    assert ((points @ mixed().t()).argmax(dim=1) == symbols).float().mean() < 0.8


@pytest.mark.parametrize("restarts", [1, 2, 3])
def test_a_few_restarts_are_enough_to_run(restarts):
    points, _ = clean_groups()
    assert found_for(model_with(CENTRES[[1, 0, 2, 3]]), points, decode=True, restarts=restarts).after >= 0


def test_few_points_are_not_decoded_from_more_clusters_than_they_allow():
    points, _ = clean_groups(groups=2)
    found_for(model_with(CENTRES[[1, 0, 2, 3]]), points, decode=True)


def kept_beside(trainer):
    """Distinct rows in everything that stands beside the prototypes."""
    trainer.fit(stop_after=1)
    prototypes = trainer.model.prototypes.weight
    state = trainer.optimizer.state[prototypes]
    place = [p is prototypes for p in trainer.model.parameters()].index(True)
    beside = {"exp_avg": state["exp_avg"], "exp_avg_sq": state["exp_avg_sq"], "average": trainer.state.average[place]}
    for i, x in enumerate(beside.values()):
        x.copy_(torch.rand(x.shape, generator=torch.Generator().manual_seed(i)))
    return beside


def test_what_hangs_on_the_prototypes_is_permuted_with_them():
    points, _ = clean_groups()
    log = []
    trainer = trainer_of(CENTRES, points, log=log)
    beside = kept_beside(trainer)
    order = [2, 3, 1, 0]
    with torch.no_grad():
        trainer.model.prototypes.weight.copy_(CENTRES[order])
    before = {name: x.clone() for name, x in beside.items()}
    others = [p.clone() for p in trainer.model.parameters() if p is not trainer.model.prototypes.weight]
    other_moments = {
        p: {name: x.clone() for name, x in trainer.optimizer.state[p].items()}
        for p in trainer.model.parameters()
        if p is not trainer.model.prototypes.weight
    }
    log.clear()
    align_now(trainer)
    back = torch.tensor(order).argsort()  # symbol d was row back[d]
    assert torch.equal(trainer.model.prototypes.weight, CENTRES)
    for name, x in beside.items():
        assert torch.equal(x, before[name][back]), name
        assert not torch.equal(x, before[name]), name
    assert all(
        map(torch.equal, others, (p for p in trainer.model.parameters() if p is not trainer.model.prototypes.weight))
    )
    for p, moments in other_moments.items():
        assert all(torch.equal(moments[name], x) for name, x in trainer.optimizer.state[p].items())
    (record,) = log
    assert record["event"] == "align"
    assert (record["stage"], record["iteration"], record["prototypes"]) == ("stage2", 1, "renamed")
    assert record["constraint_after"] < record["constraint_before"]


def test_where_the_loss_would_not_drop_nothing_changes():
    points, _ = clean_groups()
    log = []
    trainer = trainer_of(CENTRES, points, log=log)
    beside = kept_beside(trainer)
    with torch.no_grad():
        trainer.model.prototypes.weight.copy_(CENTRES)
    before, state = {name: x.clone() for name, x in beside.items()}, copy.deepcopy(trainer.model.state_dict())
    align_now(trainer)
    assert all(torch.equal(x, before[name]) for name, x in beside.items())
    assert all(torch.equal(x, state[name]) for name, x in trainer.model.state_dict().items())
    assert log[-1]["prototypes"] == "kept"


@pytest.mark.parametrize("permutation", [torch.tensor([1, 2, 3, 0]), None])
@pytest.mark.parametrize("after", [2.0, 1.0, 1.0 - 1e-5])
def test_a_proposal_that_is_no_better_is_not_taken(monkeypatch, permutation, after):
    points, _ = clean_groups()
    log = []
    trainer = trainer_of(CENTRES, points, log=log)
    beside = kept_beside(trainer)
    before, state = {name: x.clone() for name, x in beside.items()}, copy.deepcopy(trainer.model.state_dict())
    proposal = Proposal("constraint", torch.randn(SYMBOLS, DIMENSION), permutation, 1.0, after)
    monkeypatch.setattr("gedi.moves.align.align_prototypes", lambda *args: proposal)
    align_now(trainer)
    assert all(torch.equal(x, before[name]) for name, x in beside.items())
    assert all(torch.equal(x, state[name]) for name, x in trainer.model.state_dict().items())
    assert log[-1]["prototypes"] == "kept"


def test_new_prototypes_begin_without_the_moments_of_the_old():
    points, symbols = clean_groups(groups=120)
    log = []
    trainer = trainer_of(CENTRES, points, decode=True, log=log)
    beside = kept_beside(trainer)
    with torch.no_grad():
        trainer.model.prototypes.weight.copy_(mixed())
    align_now(trainer)
    assert log[-1]["prototypes"] == "redrawn"
    assert beside["exp_avg"].abs().max() == beside["exp_avg_sq"].abs().max() == 0
    assert torch.equal(beside["average"], trainer.model.prototypes.weight)
    model = trainer.model.eval()
    assert torch.equal(model(points).logits.argmax(dim=1), symbols)


def test_alignment_comes_before_the_step_at_its_moments():
    points, _ = clean_groups()
    log = []
    trainer = trainer_of(CENTRES[[1, 2, 3, 0]], points, moments=(0.0, 0.25, 0.5, 0.52), iterations=8, log=log)
    trainer.fit()
    assert [record["iteration"] for record in log if "event" in record] == [0, 2, 4]
    assert log[0]["prototypes"] == "renamed"
    assert log[1]["constraint"] < 0.2  # the first step already has the right names
    assert not trainer.model.training


def test_a_moment_at_the_very_end_never_comes():
    assert not any(Align(moments=(1.0,)).due(i, 10) for i in range(10))
    assert [i for i in range(300) if Align(moments=(1 / 3, 1 / 2, 2 / 3)).due(i, 300)] == [100, 150, 200]


def test_weights_that_are_not_finite_are_a_divergence_and_not_a_riddle():
    points, _ = clean_groups()
    trainer = trainer_of(CENTRES, points, moments=(0.0,))
    with torch.no_grad():
        trainer.model.prototypes.weight[0, 0] = torch.nan
    with pytest.raises(DivergenceError, match="stage2 diverged by iteration 0: weights not finite"):
        trainer.fit()


def test_what_cannot_be_aligned_is_refused():
    with pytest.raises(UserError, match=r"names clusters by a constraint, and there is none: see constraint\.rule"):
        Align(moments=(0.5,)).bind(CONTEXT._replace(constraint=None))
    points, _ = clean_groups()
    linear = Model(nn.Identity(), Passthrough(), Classifier(DIMENSION, SYMBOLS))
    with pytest.raises(UserError, match=r"the move align needs model\.head=prototypes"):
        Align(moments=(0.5,)).bind(CONTEXT).propose(linear, points, len(points), jitter, torch.Generator())


def test_only_the_points_in_groups_are_looked_at():
    points, _ = clean_groups()
    encoder, move = Counted(), Align(restarts=4, decode=False).bind(CONTEXT)
    both = torch.cat([points, torch.full((50, DIMENSION), torch.nan)])
    found = move.propose(model_with(CENTRES[[1, 0, 2, 3]], encoder), both, len(points), jitter, torch.Generator())
    assert torch.equal(found.prototypes, CENTRES)
    assert encoder.rows == 5 * len(points)


SMALL = [
    "data.triplets=20", "stage2.iterations=9", "stage2.batch_size=30", "stage2.moves.align.restarts=4", "log_every=2",
    "stage2.average=0.9",
]  # fmt: skip


@pytest.mark.parametrize("stop", [1, 3, 4, 6, 8])
def test_a_run_with_alignments_that_is_stopped_and_loaded_ends_bit_for_bit_as_one_that_is_not(stop, tmp_path):
    """Alignments are at 3, 4 and 6: a stop before, between and after them."""

    def make():
        run, log = prepare(parse(override(preset("digits-addition"), SMALL))), []
        run.trainer.on_log = log.append
        return run, log

    (whole, whole_log), (first, first_log), (second, second_log) = make(), make(), make()
    train(whole)
    assert [record["iteration"] for record in whole_log if "event" in record] == [3, 4, 6]
    assert any(record.get("prototypes") in ("renamed", "redrawn") for record in whole_log)
    first.trainer.fit(stop_after=stop)
    torch.save(first.trainer.state_dict(), tmp_path / "state.pt")
    second.trainer.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    train(second)
    for (name, a), b in zip(
        whole.trainer.model.state_dict().items(), second.trainer.model.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b), name
    assert first_log + second_log == whole_log
    assert whole.trainer.course.selection_losses == second.trainer.course.selection_losses
