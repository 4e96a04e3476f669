"""The terms of a rule: brute force, schedules, priors, and which rows they look at."""

import itertools
import math

import pytest
import torch

from gedi import losses
from gedi.config import override, parse
from gedi.logic import Constraint, sums_to
from gedi.methods import build_stages, with_method
from gedi.presets import preset
from gedi.rules import build_constraint
from gedi.runs import prepare, train
from gedi.sampling import Box
from gedi.training import ClusterTerm, Weight, agreement_term, balance_term, constraint_term, supervised_term
from gedi.training.stage import StepOutputs
from gedi.types import Clustered

RULE = sums_to(2, range(4))
BOX = Box(torch.zeros(1, 8, 8), torch.ones(1, 8, 8))


def outputs(data, view, **more):
    dummy = torch.zeros(len(data), 1)
    views = {name: Clustered(dummy, dummy, logits) for name, logits in {"noise": view, "walk": view + 1}.items()}
    rest = {"energy_data": None, "energy_negatives": None, "noised_score": None, "noise": None, "progress": 0.0}
    return StepOutputs(data=Clustered(dummy, dummy, data), views=views, **(rest | more))


def two_views(n=12, c=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    return [2 * torch.randn(n, c, generator=g, dtype=torch.float64) for _ in range(2)]


def brute_force(logits, holds, values=4, size=3):
    """``-mean log P`` by going through every assignment."""
    p = logits.softmax(dim=1).view(-1, size, values).tolist()
    total = 0.0
    for group in p:
        mass = 0.0
        for assignment in itertools.product(range(values), repeat=size):
            if holds(*assignment):
                mass += math.prod(group[i][k] for i, k in enumerate(assignment))
        total -= math.log(mass)
    return total / len(p)


def test_the_constraint_term_is_the_mean_over_both_views_of_what_brute_force_says():
    data, view = two_views()
    value = constraint_term(RULE)(outputs(data, view, grouped=12))
    expected = (brute_force(data, lambda a, b, c: a + b == c) + brute_force(view, lambda a, b, c: a + b == c)) / 2
    assert value.item() == pytest.approx(expected, rel=1e-10)


def test_another_rule_over_pairs_reads_pairs():
    rule = Constraint.from_predicate(lambda a, b: a < b, [range(4)] * 2)
    data, view = two_views()
    value = constraint_term(rule)(outputs(data, view, grouped=12))
    expected = (brute_force(data, lambda a, b: a < b, size=2) + brute_force(view, lambda a, b: a < b, size=2)) / 2
    assert value.item() == pytest.approx(expected, rel=1e-10)


def test_the_constraint_looks_only_at_the_grouped_rows():
    data, view = (x.requires_grad_() for x in two_views(n=10))
    value = constraint_term(RULE)(outputs(data, view, grouped=6))
    expected = (
        brute_force(data[:6], lambda a, b, c: a + b == c) + brute_force(view[:6], lambda a, b, c: a + b == c)
    ) / 2
    assert value.item() == pytest.approx(expected, rel=1e-10)
    for gradient in torch.autograd.grad(value, (data, view)):
        assert (gradient[:6].abs().sum(dim=1) > 0).all()
        assert (gradient[6:] == 0).all()


def test_the_order_of_groups_is_free_and_the_order_within_them_is_not():
    data, view = two_views()
    value = constraint_term(RULE)(outputs(data, view, grouped=12))
    moved = [x.view(4, 3, 4)[[2, 0, 3, 1]].flatten(0, 1) for x in (data, view)]
    torch.testing.assert_close(constraint_term(RULE)(outputs(*moved, grouped=12)), value)
    turned = [x.view(4, 3, 4).flip(1).flatten(0, 1) for x in (data, view)]
    assert (constraint_term(RULE)(outputs(*turned, grouped=12)) - value).abs() > 1e-3


@pytest.mark.parametrize(
    ("weight", "at"),
    [
        (Weight(3.0), {0.0: 3.0, 0.5: 3.0, 1.0: 3.0}),
        (Weight(3.0, start=0.25), {0.0: 0.0, 0.2499: 0.0, 0.25: 3.0, 0.9: 3.0}),
        (Weight(3.0, ramp=0.5), {0.0: 0.0, 0.125: 0.75, 0.25: 1.5, 0.5: 3.0, 0.9: 3.0}),
        (Weight(2.0, start=0.25, ramp=0.5), {0.0: 0.0, 0.25: 0.0, 0.5: 1.0, 0.625: 1.5, 0.75: 2.0, 1.0: 2.0}),
    ],
)
def test_a_weight_starts_and_rises_as_told(weight, at):
    assert {progress: weight.at(progress) for progress in at} == at


def test_the_supervised_term_is_the_cross_entropy_of_both_views():
    data, view = two_views(n=6)
    labels = torch.tensor([0, 3, 1, 1, 2, 0])
    value = supervised_term(outputs(data, view, labels=labels))
    rows = [(view_, i) for view_ in (data, view) for i in range(6)]
    expected = -sum(logits.softmax(dim=1)[i, labels[i]].log().item() for logits, i in rows) / 12
    assert value.item() == pytest.approx(expected, rel=1e-10)


def test_balance_and_agreement_take_the_views_they_name():
    data, view = two_views()
    prior = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    out = outputs(data, view)
    torch.testing.assert_close(balance_term(None)(out), losses.balance(torch.cat([data, view])))
    torch.testing.assert_close(balance_term(prior)(out), losses.balance(torch.cat([data, view]), prior.double()))
    assert (balance_term(prior)(out) - balance_term(None)(out)).abs() > 1e-3
    torch.testing.assert_close(agreement_term("noise")(out), losses.agreement(data, view))
    torch.testing.assert_close(agreement_term("walk")(out), losses.agreement(data, view + 1))


def test_the_cluster_term_hands_its_prior_to_sinkhorn():
    data, view = two_views(n=40)
    prior = torch.tensor([0.55, 0.25, 0.15, 0.05])
    term = ClusterTerm("noise", 0.5, 0.3, 0.3, 0.0, 50, prior.log())
    expected = losses.swapped_prediction(
        data, view, temperature=0.5, epsilon=0.3, iterations=50, log_prior=prior.log().double()
    )
    torch.testing.assert_close(term(outputs(data, view)), expected)
    plain = ClusterTerm("noise", 0.5, 0.3, 0.3, 0.0, 50)(outputs(data, view))
    assert (expected - plain).abs() > 1e-3
    shares = losses.log_sinkhorn(data * 0.5, 0.3, 50, prior.log().double()).exp().mean(dim=0)
    torch.testing.assert_close(shares, prior.double(), rtol=1e-3, atol=1e-4)


def stage_of(*settings, name="digits-addition"):
    config = with_method(parse(override(preset(name), list(settings))))
    rule = build_constraint(parse(preset(name)).constraint, 10)
    return build_stages(config, BOX, BOX, rule)[-1]


def test_the_rule_gives_the_symbols_their_shares():
    expected = torch.tensor([(21 - d) / 165 for d in range(10)], dtype=torch.float64)
    balance = stage_of().terms["balance"][1]
    torch.testing.assert_close(balance.log_prior.exp(), expected)
    cluster = stage_of("stage2.weights.cluster_noise=1").terms["cluster_noise"][1]
    torch.testing.assert_close(cluster.log_prior.exp(), expected)
    assert stage_of("constraint.prior=uniform").terms["balance"][1].log_prior is None
    assert stage_of("method=no-constraint").terms["balance"][1].log_prior is None


def test_the_constraint_alone_has_a_schedule():
    terms = stage_of("constraint.start=0.2", "constraint.ramp=0.3", "stage2.weights.constraint=7").terms
    assert terms["constraint"][0] == Weight(7.0, 0.2, 0.3)
    assert terms["balance"][0] == Weight(4.0)


SMALL = (
    "data.triplets=20", "stage2.batch_size=30", "stage2.iterations=8", "constraint.align=[]",
    "constraint.prior=uniform", "sampling.buffer=40",
)  # fmt: skip


def test_before_its_start_a_constraint_changes_nothing():
    def weights(method, stop):
        run = prepare(parse(override(preset("digits-addition"), [*SMALL, "constraint.start=0.5", f"method={method}"])))
        run.trainer.fit(stop_after=stop)
        return torch.cat([p.detach().flatten() for p in run.trainer.model.parameters()])

    assert torch.equal(weights("gedi", 4), weights("no-constraint", 4))
    assert not torch.equal(weights("gedi", 5), weights("no-constraint", 5))


def test_free_points_are_clustered_beside_the_groups():
    run = prepare(parse(override(preset("digits-addition"), [*SMALL, "data.free=40", "constraint.start=0"])))
    assert run.trainer.batches.grouped == 18
    seen = []
    term = run.trainer.legs[-1].stage.terms["balance"][1]
    run.trainer.legs[-1].stage.terms["balance"] = (Weight(1.0), lambda out: (seen.append(out), term(out))[1])
    train(run)
    assert {(out.grouped, len(out.data.logits)) for out in seen} == {(18, 30)}


def test_the_loss_is_the_weighted_sum_of_the_terms():
    run = prepare(
        parse(
            override(preset("digits-addition"), [*SMALL, "log_every=1", "constraint.start=0.25", "constraint.ramp=0.5"])
        )
    )
    records = []
    run.trainer.on_log = records.append
    train(run)
    weight = Weight(1.0, 0.25, 0.5)
    for i, record in enumerate(records):
        expected = record["agreement"] + 4 * record["balance"] + weight.at(i / 8) * record["constraint"]
        assert record["loss"] == pytest.approx(expected, rel=1e-5)
    assert len(records) == 8
