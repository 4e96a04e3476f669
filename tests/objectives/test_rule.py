"""The terms of a rule: brute force, schedules, priors, and which rows they look at."""

import itertools
import math

import pytest
import torch
from pydantic import PrivateAttr

from gedi.building import build_stages, context_of
from gedi.config import override, parse
from gedi.densities.none import NoDensity
from gedi.errors import UserError
from gedi.fitting import prepare, train
from gedi.logic import Constraint, sums_to
from gedi.methods import with_method
from gedi.objectives.constraint import Rule
from gedi.presets import preset
from gedi.rules import build_constraint

RULE = sums_to(2, range(4))


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


@pytest.fixture
def of_rule(context):
    """The term of a rule, as a stage would have it."""
    return lambda rule: Rule(weight=1.0).bind(context(constraint=rule))


def test_the_constraint_term_is_the_mean_over_both_views_of_what_brute_force_says(of_rule, seen, two_views):
    data, view = two_views()
    value = of_rule(RULE)(seen(data, view, grouped=12))
    expected = (brute_force(data, lambda a, b, c: a + b == c) + brute_force(view, lambda a, b, c: a + b == c)) / 2
    assert value.item() == pytest.approx(expected, rel=1e-10)


def test_another_rule_over_pairs_reads_pairs(of_rule, seen, two_views):
    rule = Constraint.from_predicate(lambda a, b: a < b, [range(4)] * 2)
    data, view = two_views()
    value = of_rule(rule)(seen(data, view, grouped=12))
    expected = (brute_force(data, lambda a, b: a < b, size=2) + brute_force(view, lambda a, b: a < b, size=2)) / 2
    assert value.item() == pytest.approx(expected, rel=1e-10)


def test_the_constraint_looks_only_at_the_grouped_rows(of_rule, seen, two_views):
    data, view = (x.requires_grad_() for x in two_views(n=10))
    value = of_rule(RULE)(seen(data, view, grouped=6))
    expected = (
        brute_force(data[:6], lambda a, b, c: a + b == c) + brute_force(view[:6], lambda a, b, c: a + b == c)
    ) / 2
    assert value.item() == pytest.approx(expected, rel=1e-10)
    for gradient in torch.autograd.grad(value, (data, view)):
        assert (gradient[:6].abs().sum(dim=1) > 0).all()
        assert (gradient[6:] == 0).all()


def test_the_order_of_groups_is_free_and_the_order_within_them_is_not(of_rule, seen, two_views):
    data, view = two_views()
    term = of_rule(RULE)
    value = term(seen(data, view, grouped=12))
    moved = [x.view(4, 3, 4)[[2, 0, 3, 1]].flatten(0, 1) for x in (data, view)]
    torch.testing.assert_close(term(seen(*moved, grouped=12)), value)
    turned = [x.view(4, 3, 4).flip(1).flatten(0, 1) for x in (data, view)]
    assert (term(seen(*turned, grouped=12)) - value).abs() > 1e-3


def test_a_weight_on_the_constraint_needs_one(context):
    with pytest.raises(UserError, match=r"a weight on the constraint needs a constraint: see constraint\.rule"):
        Rule(weight=1.0).bind(context())


def stage_of(*settings, name="digits-addition"):
    config = with_method(parse(override(preset(name), list(settings))))
    rule = build_constraint(parse(preset(name)).constraint, 10)
    return build_stages(config, NoDensity(), context_of(config, 10, rule))[-1]


def shares_of(term):
    return term._context.log_shares.exp()


def test_the_rule_gives_the_symbols_their_shares():
    expected = torch.tensor([(21 - d) / 165 for d in range(10)], dtype=torch.float64)
    torch.testing.assert_close(shares_of(stage_of().terms["balance"]), expected)
    torch.testing.assert_close(shares_of(stage_of("stage2.terms.swapped.weight=1").terms["swapped"]), expected)
    assert stage_of("constraint.prior=uniform").terms["balance"]._context.log_shares is None
    assert stage_of("method=no-constraint").terms["balance"]._context.log_shares is None


def test_the_constraint_alone_has_a_schedule():
    terms = stage_of(
        "stage2.terms.constraint.start=0.2", "stage2.terms.constraint.ramp=0.3", "stage2.terms.constraint.weight=7"
    ).terms
    assert terms["constraint"] == Rule(weight=7.0, start=0.2, ramp=0.3).bind(terms["constraint"]._context)
    assert (terms["balance"].weight, terms["balance"].start, terms["balance"].ramp) == (4.0, 0.0, 0.0)
    old = stage_of("constraint.start=0.2", "constraint.ramp=0.3", "stage2.weights.constraint=7").terms
    assert old["constraint"].model_dump() == terms["constraint"].model_dump()


SMALL = (
    "data.triplets=20", "stage2.batch_size=30", "stage2.iterations=8", "stage2.moves.align.moments=[]",
    "constraint.prior=uniform",
)  # fmt: skip


def small(*settings):
    return prepare(parse(override(preset("digits-addition"), [*SMALL, *settings])))


def test_before_its_start_a_constraint_changes_nothing():
    def weights(method, stop):
        run = small("stage2.terms.constraint.start=0.5", f"method={method}")
        run.trainer.fit(stop_after=stop)
        return torch.cat([p.detach().flatten() for p in run.trainer.model.parameters()])

    assert torch.equal(weights("gedi", 4), weights("no-constraint", 4))
    assert not torch.equal(weights("gedi", 5), weights("no-constraint", 5))


class Listening(Rule):
    """The term, and what it was shown."""

    _shown: list = PrivateAttr(default_factory=list)

    def __call__(self, seen, carried=None):
        self._shown.append(seen)
        return super().__call__(seen, carried)


def test_free_points_are_clustered_beside_the_groups():
    run = small("data.free=40", "stage2.terms.constraint.start=0")
    assert run.trainer.batches.grouped == 18
    terms = run.trainer.course.legs[-1].stage.terms
    terms["constraint"] = listening = Listening(weight=1.0).bind(terms["constraint"]._context)
    train(run)
    assert {(seen.grouped, len(seen.data.logits)) for seen in listening._shown} == {(18, 30)}


def test_the_loss_is_the_weighted_sum_of_the_terms():
    run = small("log_every=1", "stage2.terms.constraint.start=0.25", "stage2.terms.constraint.ramp=0.5")
    records = []
    run.trainer.on_log = records.append
    train(run)
    rule = Rule(weight=1.0, start=0.25, ramp=0.5)
    for i, record in enumerate(records):
        expected = record["agreement"] + 4 * record["balance"] + rule.at(i / 8) * record["constraint"]
        assert record["loss"] == pytest.approx(expected, rel=1e-5)
    assert len(records) == 8
