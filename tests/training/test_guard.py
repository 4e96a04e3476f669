"""The guard: it only reads, finds what goes wrong, goes back, softens, and gives up with the cause."""

import io
import json
import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from matplotlib.image import imread

from gedi.config import override, parse
from gedi.densities.density import Draw
from gedi.errors import DivergenceError, UserError
from gedi.fitting import prepare, train
from gedi.presets import preset
from gedi.report.figures import training_curves
from gedi.report.progress import Progress
from gedi.training.guard import Finding, Guard, GuardSettings, figures_of_terms
from gedi.training.state import size
from gedi.training.step import Batch, JointPass
from gedi.types import Clustered

TINY = [
    "data.n_train=300", "data.n_test=100", "stage2.iterations=40", "walk.steps=5", "log_every=10", "guard.every=10",
    "n_init=1",
]  # fmt: skip
HOSTILE = ["stage1.learning_rate=0.3", "stage2.learning_rate=0.09", "density.step_size=3.2"]  # x 30, x 1000
UNADJUSTED = ["density.metropolis=false", "density.clamp=false", "density.teleports=0"]


def prepared(*settings, name="circles"):
    more = ["stage1.iterations=60", "density.buffer=500"] if name == "circles" else []
    run = prepare(parse(override(preset(name), [*TINY, *more, *settings])))
    run.trainer.on_log = (log := []).append
    return run, log


def events(log):
    return [record for record in log if record.get("event") == "guard"]


def weights(run):
    return torch.cat([p.detach().flatten() for p in run.trainer.model.state_dict().values()])


def chains(run):
    return run.trainer.state.density["chains"].rows


def poison(run, at, times=1, value=math.nan):
    """The weights are spoilt just before an iteration of the first stage, so many times."""
    step, left = run.trainer.step, [times]

    def poisoned(leg):
        if run.trainer.course.at == 0 and run.trainer.state.iteration == at and left[0]:
            left[0] -= 1
            with torch.no_grad():
                run.trainer.model.density.direction.fill_(value)
        step(leg)

    run.trainer.step = poisoned


@pytest.mark.parametrize("method", ["gedi", "swav"])
def test_a_run_in_which_it_does_not_step_in_is_the_same_bit_for_bit(method):
    (on, log_on), (off, log_off) = prepared(f"method={method}"), prepared(f"method={method}", "guard.attempts=0")
    train(on)
    train(off)
    assert torch.equal(weights(on), weights(off))
    if method == "gedi":
        assert torch.equal(chains(on), chains(off))
    assert log_on == log_off
    assert off.trainer.guard.good is None  # nothing is kept either
    assert on.trainer.guard.good["iteration"] == 30


@pytest.mark.parametrize("name", ["digits-addition", "digits-energy"])
def test_recipes_on_images_raise_no_alarm(name):
    small = ["model.width=4", "stage2.batch_size=60"]
    if name == "digits-energy":
        small += ["stage1.iterations=40", "data.limit=200", "model.finer=20", "density.steps=3", "density.buffer=500"]
    else:
        small += ["data.triplets=60", "stage2.moves.align.restarts=4"]
    run, log = prepared(*small, name=name)
    train(run)
    assert len(log) > 3
    assert not events(log)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("sampler", [[], UNADJUSTED])
def test_a_hostile_run_is_recovered_or_stopped_with_its_cause(seed, sampler):
    run, log = prepared(*HOSTILE, *sampler, f"seed={seed}")
    said = ""
    try:
        train(run)
    except DivergenceError as error:
        said = str(error)
    assert ("diverged" in said and "density." in said) == events(log)[-1].get("given_up", False)
    assert events(log)[0]["cause"] in ("drift", "chain extent")
    assert torch.isfinite(weights(run)).all()
    assert torch.isfinite(chains(run)).all()
    json.dumps(log, allow_nan=False)


def test_poisoned_weights_are_never_kept_and_the_run_goes_on_from_before():
    run, log = prepared()
    poison(run, at=33)
    train(run)
    (event,) = events(log)
    assert (event["iteration"], event["back_to"], event["attempt"]) == (40, 30, 1)
    assert event["limit"] == "finite"
    assert event["value"] == "nan"
    assert "generative" in event["cause"]
    base = parse(preset("circles"))
    assert event["softened"] == pytest.approx(
        {
            "learning_rate": base.stage1.learning_rate / 4,
            "step_size": base.density.noise**2 / 8,
            "noise": base.density.noise / 2,
            "penalty": base.stage1.density["generative"] * 0.003,
        }
    )
    lines = [r["iteration"] for r in log if r["stage"] == "stage1" and "event" not in r]
    assert lines == [10, 20, 30, 40, 50, 60]  # the fortieth has only numbers from after it
    assert all("penalty" in r for r in log if r["stage"] == "stage1" and r["iteration"] > 30 and "event" not in r)
    assert not any("penalty" in r for r in log if r["stage"] == "stage2")  # softer for the rest of the leg, no longer
    assert torch.isfinite(weights(run)).all()


def test_going_back_restores_weights_moments_average_and_moment_of_the_stage_and_begins_chains_anew():
    run, _ = prepared()
    trainer = run.trainer
    trainer.fit(stop_after=30)
    state = trainer.state
    kept, average, old = weights(run).clone(), [x.clone() for x in state.average], chains(run).clone()
    moments = [x.clone() for state in trainer.optimizer.state.values() for x in state.values()]
    trainer.fit(stop_after=7)
    assert not torch.equal(weights(run), kept)
    trainer._intervene(trainer.course.legs[0], Finding("energy gap", 2e4, 1e4))
    assert state.iteration == 30
    assert torch.equal(weights(run), kept)
    assert all(map(torch.equal, state.average, average))
    now = [x for state in trainer.optimizer.state.values() for x in state.values()]
    assert all(map(torch.equal, now, moments))
    assert not (chains(run) == old).any()
    assert run.box.contains(chains(run)).all()


def test_trouble_that_comes_back_leads_to_the_beginning_and_then_to_an_end_with_the_last_good_model():
    run, log = prepared("guard.attempts=2", "stage1.average=0")
    poison(run, at=33, times=9)
    good = {}
    keep = run.trainer.guard.keep
    run.trainer.guard.keep = lambda state: (good.update(state), keep(state))
    with pytest.raises(
        DivergenceError, match=r"stage1 diverged by iteration 40: .*generative.* not finite; gave up aft"
    ):
        train(run)
    assert [(e["back_to"], e.get("attempt"), e.get("given_up")) for e in events(log)] == [
        (30, 1, None),
        (0, 2, None),
        (30, None, True),
    ]
    assert run.trainer.last_good == 30
    assert all(torch.equal(x, good["model"][name]) for name, x in run.trainer.model.state_dict().items())
    assert torch.equal(chains(run), good["density"]["chains"].rows)
    assert not run.trainer.model.training


def test_the_last_good_model_is_the_average_where_there_is_one():
    run, _ = prepared("guard.attempts=1", "stage1.average=0.9")
    poison(run, at=33, times=9)
    kept = []
    keep = run.trainer.guard.keep
    run.trainer.guard.keep = lambda state: (kept.append(state), keep(state))
    with pytest.raises(DivergenceError):
        train(run)
    assert run.trainer.last_good == kept[-1]["iteration"]
    assert all(map(torch.equal, run.trainer.model.parameters(), kept[-1]["average"]))


def test_without_attempts_it_only_stops_at_numbers_that_are_not_finite():
    run, log = prepared("guard.attempts=0", *HOSTILE)
    train(run)
    assert not events(log)
    run, log = prepared("guard.attempts=0")
    poison(run, at=33)
    with pytest.raises(DivergenceError, match="stage1 diverged by iteration 40"):
        train(run)
    assert run.trainer.last_good is None


def test_a_try_that_is_given_up_is_lost_and_the_others_are_kept():
    settings = ("n_init=2", "good_enough=0", "guard.attempts=1")
    run, log = prepared(*settings)
    step = run.trainer.step

    def poisoned(leg):
        if leg.restart == 0 and run.trainer.state.iteration == 5:
            with torch.no_grad():
                run.trainer.model.prototypes.weight.fill_(math.nan)
        step(leg)

    run.trainer.step = poisoned
    train(run)
    assert [math.isfinite(loss) for loss in run.trainer.course.selection_losses] == [False, True]
    assert [e.get("given_up", False) for e in events(log)] == [False, True]
    plain, _ = prepared(*settings)
    train(plain)
    second = plain.trainer.course.selection_losses[1]
    assert run.trainer.course.selection_losses[1] == second  # a lost try leaves no trace in the next
    assert torch.isfinite(weights(run)).all()


IN_TROUBLE = [*HOSTILE, *UNADJUSTED, "guard.attempts=9"]


@pytest.fixture(scope="module")
def in_trouble():
    run, log = prepared(*IN_TROUBLE)
    train(run)
    assert len(events(log)) > 3
    return run, log


@pytest.mark.parametrize("stop", [10, 45, 101])  # 10: just rolled back to the beginning
def test_a_run_in_trouble_that_is_stopped_and_loaded_ends_bit_for_bit_as_one_that_is_not(stop, in_trouble, tmp_path):
    whole, log = in_trouble
    first, begun = prepared(*IN_TROUBLE)
    first.trainer.fit(stop_after=stop)
    torch.save(first.trainer.state_dict(), tmp_path / "state.pt")
    second, ended = prepared(*IN_TROUBLE)
    second.trainer.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    train(second)
    assert torch.equal(weights(whole), weights(second))
    assert torch.equal(chains(whole), chains(second))
    assert begun + ended == log


def test_softening_keeps_the_temperature_and_counts_its_own_penalty():
    run, _ = prepared("density.step_size=0.5", "stage1.density={penalty: 0.01, generative: 2}")
    stage, guard = run.trainer.course.legs[0].stage, Guard(GuardSettings(soften=0.5, penalty=0.1))
    guard.begin({})
    assert guard.soften(stage) is stage
    guard.beginning = {"iteration": 0}
    guard.go_back()
    guard.go_back()
    soft = guard.soften(stage)
    assert soft.density.langevin.alpha == pytest.approx(0.5 / 4)
    assert soft.density.temperature == pytest.approx(stage.density.temperature)
    assert soft.optimiser.rate(7, 60) == pytest.approx(stage.optimiser.rate(7, 60) / 4)
    assert soft.weights(0.0)["penalty"] == pytest.approx(0.01 + 2 * 2 * 0.1)


def test_a_figure_beyond_its_usual_size_must_last_and_is_not_kept_meanwhile():
    guard = Guard(GuardSettings(growth=10.0, patience=3, gap=1e9))
    assert all(guard.look({"energy gap": x}) is None for x in (4.0, 2.0, 3.0))
    assert guard.clean
    for value in (41.0, 50.0, 39.0, 41.0, 45.0):  # back below 10 x 4 in between
        assert guard.look({"energy gap": value}) is None
        assert guard.clean == (value <= 40)
    assert guard.look({"energy gap": 43.0}) == Finding("energy gap", 43.0, 40.0)


@pytest.mark.parametrize("cause", ["energy gap", "drift", "chain extent"])
def test_limits_are_broken_only_beyond_them(cause):
    limit = 5.0
    guard = Guard(GuardSettings(gap=limit, drift=limit, extent=limit))
    assert guard.look({cause: limit}) is None
    assert guard.look({cause: math.nextafter(limit, math.inf)}).cause == cause
    assert guard.look({cause: math.inf}) == Finding(cause, math.inf)
    assert guard.look({"anything": -math.inf}).limit is None


def collapsed_or_not(run, shares, progress):
    """The figures of a step of the second stage in which this many points fall into each cluster."""
    stage, n = run.trainer.course.legs[1].stage, sum(shares)
    logits = torch.eye(len(shares))[torch.arange(len(shares)).repeat_interleave(torch.tensor(shares))] * 1e3
    clustered = Clustered(torch.zeros(n, 8), F.normalize(torch.ones(n, 8) + torch.randn(n, 8)), logits)
    model = run.trainer.model
    model.heads = lambda latents: [clustered] * len(latents)
    x = torch.randn(n, 2)
    batch = Batch(x, {"view": x, "walk": x}, Draw(), progress)
    quiet = replace(stage, density_weights={})
    return JointPass(model)(batch, lambda: (quiet, {}), True).figures


def test_clusters_in_use_are_the_entropy_of_their_shares_and_one_for_all_is_trouble():
    run, _ = prepared()
    assert collapsed_or_not(run, [5, 5], 0.2) == {}  # too early
    assert float(collapsed_or_not(run, [5, 5, 5, 0], 0.5)["clusters in use"]) == pytest.approx(3)
    collapsed = {name: float(x) for name, x in collapsed_or_not(run, [20, 0], 0.5).items()}
    assert collapsed == pytest.approx({"clusters in use": 1.0})
    guard = Guard(GuardSettings(patience=2))
    assert guard.look(collapsed) is None
    assert not guard.clean
    assert guard.look(collapsed).cause == "clusters in use"


def test_the_size_of_the_terms_counts_those_in_force_without_their_weights():
    stage = prepared()[0].trainer.course.legs[1].stage
    late = {**stage.terms, "swapped": stage.terms["swapped"].model_copy(update={"start": 0.5})}
    values = {"generative": -3.0, "denoising": 2.0, "negative_free": 1.0, "swapped": 10.0, "swapped_walk": 0.5}
    terms = {name: torch.tensor(value, requires_grad=True) for name, value in values.items()}
    for progress, expected in ((0.4, 6.5), (0.5, 16.5)):
        found = figures_of_terms(replace(stage, terms=late), terms, progress)
        assert float(found.pop("size of the terms")) == expected
        assert {name: float(x) for name, x in found.items()} == values
        assert not any(x.requires_grad for x in found.values())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_bad_number_anywhere_is_seen(bad):
    tensors = [torch.ones(3, 2), torch.ones(5), torch.arange(3)]
    assert math.isfinite(size(tensors))
    tensors[1][3] = bad
    assert not math.isfinite(size(tensors))


def test_progress_and_curves_show_an_intervention(tmp_path):
    run, log = prepared("guard.attempts=2")
    poison(run, at=33)
    train(run)

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown, piped = Terminal(), io.StringIO()
    for stream in (shown, piped):
        with Progress(run.config, stream) as progress:
            for record in log:
                progress(record)
    said = " ".join(shown.getvalue().split())
    assert "limit finite; back to 30, softer, attempt 1 of 2" in said
    assert "limit finite; back to 30, softer, attempt 1 of 2\n" in piped.getvalue()
    assert "\x1b" not in piped.getvalue()
    whole = imread(training_curves(log, tmp_path / "a.png"))
    without = imread(training_curves([r for r in log if "event" not in r], tmp_path / "b.png"))
    assert whole.shape == without.shape
    assert (whole != without).any()


def test_settings_that_cannot_be_are_refused():
    for wrong in ("guard.soften=1", "guard.every=0", "guard.growth=1", "guard.gap=-1"):
        with pytest.raises(UserError, match=wrong.split("=")[0]):
            parse(override({}, [wrong]))
    with pytest.raises(UserError, match=r"did you mean 'guard\.attempts'"):
        parse(override({}, ["guard.attempt=3"]))
