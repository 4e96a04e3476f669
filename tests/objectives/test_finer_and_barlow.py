"""Finer clusters and Barlow Twins as terms of a stage: their values, that they train, and what is refused."""

import pytest
import torch

from gedi.config import override, parse
from gedi.errors import UserError
from gedi.fitting import prepare, train
from gedi.losses import agreement, balance, barlow_twins
from gedi.objectives.barlow import Barlow
from gedi.objectives.finer import Finer
from gedi.objectives.objective import Seen
from gedi.presets import preset
from gedi.types import Clustered

TINY = (
    "data.name=digits", "data.limit=200", "model.width=4", "model.latent=8", "model.projector=16",
    "model.embedding=8", "model.finer=14", "density.own_encoder=false", "stage1.iterations=0",
    "stage2.iterations=40", "stage2.batch_size=50", "stage2.warmup=0", "stage2.moves.merge.moments=[]",
    "density.buffer=40", "log_every=1",
)  # fmt: skip


def tiny(*settings):
    return prepare(parse(override(preset("mnist-energy"), [*TINY, *settings])))


def logged(run):
    """The records of a whole training."""
    log = []
    run.trainer.on_log = log.append
    train(run)
    return log


def outputs(n=9, d=4, c=3, finer=6):
    def clustered():
        return Clustered(
            *(torch.randn(n, size, dtype=torch.float64, requires_grad=True) for size in (5, d, c, finer)),
        )

    return Seen(clustered(), {"view": clustered(), "walk": clustered()}, 0.5)


@pytest.mark.parametrize("weight", [0.0, 1.0, 4.0])
def test_the_term_of_finer_clusters_is_their_agreement_and_their_weighted_balance(weight):
    out = outputs()
    data, view = out.data.finer, out.looks["view"].finer
    value = Finer(weight=1.0, balance=weight)(out)
    p, q = data.softmax(dim=1), view.softmax(dim=1)
    cross = -((p * q.log()).sum(dim=1) + (q * p.log()).sum(dim=1)).mean() / 2
    shares = -torch.cat([p, q]).mean(dim=0).log().mean()
    torch.testing.assert_close(value, cross + weight * shares)
    torch.testing.assert_close(value, agreement(data, view) + weight * balance(torch.cat([data, view])))
    value.backward()
    touched = [part for part in (*out.data, *out.looks["view"], *out.looks["walk"]) if part.grad is not None]
    assert {id(part) for part in touched} == {id(data), id(view)}  # not the symbols, and not the walk


@pytest.mark.parametrize("off_diagonal", [0.0, 5e-3, 1.0])
def test_the_term_of_barlow_twins_is_its_loss_of_the_embeddings(off_diagonal):
    out = outputs(n=20)
    value = Barlow(weight=1.0, off_diagonal=off_diagonal)(out)
    one, other = out.data.embedding, out.looks["view"].embedding
    torch.testing.assert_close(value, barlow_twins(one, other, off_diagonal))
    z, z_other = ((w - w.mean(dim=0)) / (w.var(dim=0, correction=0) + 1e-5).sqrt() for w in (one, other))
    gap = (torch.einsum("bi,bj->ij", z, z_other) / 20 - torch.eye(4)).square()
    torch.testing.assert_close(value, gap.trace() + off_diagonal * (gap.sum() - gap.trace()))


@pytest.mark.parametrize("weight", ["finer", "barlow"])
def test_a_stage_with_the_term_alone_trains(weight):
    """From the mean of the first steps to that of the last, on the same images."""
    others = [f"stage2.terms.{name}.weight=0" for name in ("agreement", "balance", "finer", "barlow") if name != weight]
    run = tiny(*others, f"stage2.terms.{weight}.weight=1")
    (leg,) = run.trainer.course.legs
    assert set(leg.stage.terms) == {weight}
    losses = torch.tensor([record[weight] for record in logged(run)])
    assert losses.isfinite().all()
    assert losses[-8:].mean() < losses[:4].mean() - 0.3
    floor = {"finer": 4 * torch.tensor(14.0).log().item(), "barlow": 0.0}[weight]  # balance is least when uniform
    assert losses.min() > floor


def test_the_finer_clusters_teach_the_encoder_and_leave_the_symbols_alone():
    run = tiny("stage2.terms.agreement.weight=0", "stage2.terms.balance.weight=0")
    before = {name: p.detach().clone() for name, p in run.trainer.model.named_parameters()}
    run.trainer.fit(stop_after=2)
    moved = {name for name, p in run.trainer.model.named_parameters() if not torch.equal(p, before[name])}
    assert {name for name in before if name not in moved} == {"prototypes.weight", "density.direction"}


def test_a_weight_on_finer_clusters_needs_some():
    with pytest.raises(UserError, match=r"a weight on the finer clusters needs some: see model\.finer"):
        tiny("model.finer=0")


@pytest.mark.parametrize("finer", [1, 9, 10])
def test_finer_clusters_must_be_more_than_the_clusters(finer):
    with pytest.raises(UserError, match=rf"model\.finer must be more than the 10 clusters .*, got {finer}"):
        tiny(f"model.finer={finer}")
    assert len(tiny("model.finer=11").trainer.model.finer.weight) == 11


def test_without_finer_clusters_there_are_none_and_nothing_is_merged():
    run = tiny("model.finer=0", "stage2.terms.finer=null", "stage2.moves.merge.moments=[]")
    assert run.trainer.model.finer is None
    assert not any(name.startswith("finer") for name in run.trainer.model.state_dict())
    assert run.trainer.course.legs[0].stage.moves == {}
    assert not any("event" in record for record in logged(run))


@pytest.mark.parametrize("method", ["barlow", "swav", "jem"])
def test_the_baselines_have_no_finer_clusters_and_no_merging(method):
    run = tiny(f"method={method}", "stage2.moves.merge.moments=[0.5]", "stage2.density.generative=1")
    assert run.trainer.model.finer is None
    assert all(leg.stage.moves == {} and "finer" not in leg.stage.terms for leg in run.trainer.course.legs)


def test_agreement_and_balance_begin_with_the_share_that_the_config_says():
    run = tiny("parts.agreement.start=0.25", "parts.balance.start=0.25", "stage2.terms.barlow.weight=0.1")
    terms = run.trainer.course.legs[0].stage.terms
    starts = {name: term.start for name, term in terms.items()}
    assert starts == {"agreement": 0.25, "balance": 0.25, "finer": 0.0, "barlow": 0.0}
    assert [terms["balance"].at(share) for share in (0.0, 0.24, 0.25, 0.9)] == [0.0, 0.0, 4.0, 4.0]

    prototypes = run.trainer.model.prototypes.weight
    run.trainer.fit(stop_after=1)  # a try begins with new heads
    before = prototypes.detach().clone()
    run.trainer.fit(stop_after=9)
    assert torch.equal(prototypes, before)
    run.trainer.fit(stop_after=1)
    assert not torch.equal(prototypes, before)


def test_the_loss_is_the_weighted_sum_of_what_is_on():
    log = logged(tiny("cluster.start=0.5", "stage2.iterations=6"))
    for record in log:
        on = record["iteration"] > 3  # the record of step i is written when i + 1 are done
        expected = record["finer"] + on * (record["agreement"] + 4 * record["balance"])
        assert record["loss"] == pytest.approx(expected, rel=1e-5)
