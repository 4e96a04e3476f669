"""No density: nothing is built, moved or saved, and clusters are trained all the same."""

import pytest
import torch

from gedi.config import override, parse
from gedi.densities.density import Draw, Place
from gedi.densities.none import NoDensity
from gedi.errors import UserError
from gedi.fitting import prepare, train
from gedi.presets import preset
from gedi.random import Streams
from gedi.sampling import Box, ReplayBuffer
from gedi.types import Spread

TINY = [
    "data.n_train=300", "data.n_test=100", "density.kind=none", "stage1.iterations=0", "stage1.density=null",
    "stage2.iterations=20", "stage2.density=null", "stage2.terms.swapped_walk=null", "log_every=5", "n_init=2",
    "good_enough=0", "guard.every=5",
]  # fmt: skip


def prepared(*settings):
    run = prepare(parse(override(preset("circles"), [*TINY, *settings])))
    run.trainer.on_log = (log := []).append
    return run, log


def leaves(tree):
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in leaves(value)]
    return [leaf for value in tree for leaf in leaves(value)] if type(tree) is list else [tree]


def test_nothing_is_built_moved_or_saved(monkeypatch):
    monkeypatch.setattr(ReplayBuffer, "__init__", lambda *args: pytest.fail("a buffer was built"))
    monkeypatch.setattr(Box, "sample", lambda *args: pytest.fail("chains were drawn"))
    run, _ = prepared("guard.attempts=2")
    trainer = run.trainer
    assert trainer.state.density is None
    trainer.fit(stop_after=13)
    state = trainer.state_dict()
    moments = [state["state"], state["course"]["trunk"], state["guard"]["beginning"], state["guard"]["good"]]
    assert [moment["density"] for moment in moments] == [None] * 4
    assert not any(isinstance(leaf, Spread) for leaf in leaves(state))
    train(run)
    assert trainer.state.density is None
    assert trainer.samples is None


def test_the_model_has_no_energy():
    run, _ = prepared()
    model = run.trainer.model
    assert model.density is None
    assert model(run.trainer.train[:5]).energy is None
    with pytest.raises(TypeError, match="this model has no energy"):
        model.energy  # noqa: B018


def test_clusters_are_trained_all_the_same():
    run, log = prepared()
    before = {name: p.detach().clone() for name, p in run.trainer.model.named_parameters()}
    train(run)
    assert all(not torch.equal(p, before[name]) for name, p in run.trainer.model.named_parameters())
    assert {key for record in log for key in record} == {
        "stage", "iteration", "restart", "loss", "negative_free", "swapped",
    }  # fmt: skip
    assert len(run.trainer.course.selection_losses) == 2


@pytest.mark.parametrize("stop", [3, 20, 31])
def test_a_run_that_is_stopped_and_loaded_ends_bit_for_bit_as_one_that_is_not(stop, tmp_path):
    (whole, log), (first, begun), (second, ended) = prepared(), prepared(), prepared()
    train(whole)
    first.trainer.fit(stop_after=stop)
    torch.save(first.trainer.state_dict(), tmp_path / "state.pt")
    second.trainer.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    train(second)
    for (name, a), b in zip(
        whole.trainer.model.state_dict().items(), second.trainer.model.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b), name
    assert begun + ended == log


def test_a_guard_that_steps_in_has_no_chains_to_begin_anew_and_nothing_of_them_to_report():
    run, log = prepared()
    run.trainer.fit(stop_after=7)
    with torch.no_grad():
        run.trainer.model.prototypes.weight.fill_(torch.nan)
    train(run)
    (event,) = [record for record in log if "event" in record]
    assert set(event["softened"]) == {"learning_rate"}
    assert run.trainer.state.density is None
    assert all(p.isfinite().all() for p in run.trainer.model.parameters())


def test_weights_on_its_terms_are_refused_and_so_are_walks_on_it():
    with pytest.raises(UserError, match=r"density\.kind=none has no terms to weigh: .* with stage1\.density=null"):
        parse(override(preset("circles"), ["density.kind=none"]))
    with pytest.raises(UserError, match=r"with stage2\.density=null"):
        prepared("stage2.density.generative=1")
    with pytest.raises(UserError, match="walks follow a density, and there is none"):
        prepared("stage2.terms.swapped_walk={kind: swapped, look: walk, weight: 1}")
    prepared("stage2.terms.swapped_walk={kind: swapped, look: walk, weight: 1}", "walk=radial")


def test_settings_of_another_kind_do_not_fit_it():
    with pytest.raises(UserError, match=r"unknown key 'density\.chains'"):
        parse(override(preset("circles"), ["density={kind: none, chains: 5}"]))
    with pytest.raises(UserError, match="did you mean 'none'"):
        parse(override(preset("circles"), ["density.kind=nnone"]))


def test_its_answers():
    density, box = NoDensity(), Box(-torch.ones(2), torch.ones(2))
    bound = density.bind(Place(box, box))
    x = torch.zeros(3, 2)
    assert bound.module(4, lambda name: pytest.fail(name), Streams(0)) is None
    assert bound.draw(None, x, x, {}, None, Streams(0)) == (Draw(), None)
    assert bound.values(None, Draw(), [], {}, None, True) == ({}, {})
    assert (bound.watched(None, Draw()), bound.report({}), bound.footprint()) == ({}, {}, {})
    assert (bound.kept(None), bound.temperature, bound.beyond, bound.softer(0.5)) == (None, None, 0.0, bound)
    for ask in (lambda: bound.energy(None), lambda: bound.score(None, x), lambda: bound.log_density(None, x)):
        with pytest.raises(TypeError, match="a density of kind 'none' has no energy"):
            ask()
    with pytest.raises(TypeError, match="gives no samples"):
        bound.sample(None, 3, torch.Generator())
