"""Encoders of one's own: any module from points to vectors, trained, refused, saved, at other precisions."""

import copy
import json

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from gedi.config import override, parse
from gedi.devices import make_fabric
from gedi.directory import RunDirectory
from gedi.errors import UserError
from gedi.fitting import prepare, train
from gedi.presets import preset
from gedi.runs import execute

TINY = (
    "data.name=digits", "data.limit=60", "model.projector=16", "model.embedding=8", "model.finer=14",
    "stage1.iterations=4", "stage2.iterations=4", "stage2.batch_size=20", "stage2.density.generative=0.1",
    "stage2.terms.agreement_walk={kind: agreement, look: walk, weight: 0.1}", "stage2.moves.merge.moments=[0.5]",
    "walk.steps=2", "density.buffer=40", "density.steps=2", "log_every=1", "n_init=1",
)  # fmt: skip


class Own(nn.Module):
    """Not one of the project's, and without a closed form of its score."""

    def __init__(self, latent=5, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.last = nn.Conv2d(1, 4, 3, stride=2), nn.Linear(4 * 9, latent)

    def forward(self, x):
        return self.last(nn.functional.silu(self.first(x)).flatten(1))


def prepared(encoder, *settings, **options):
    return prepare(parse(override(preset("mnist-energy"), [*TINY, *settings])), encoder=encoder, **options)


def logged(run):
    log = []
    run.trainer.on_log = log.append
    train(run)
    return log


@pytest.mark.parametrize("second", [False, True])
def test_any_module_from_points_to_vectors_trains(second):
    own = Own()
    before = copy.deepcopy(own.state_dict())
    run = prepared(own, f"density.own_encoder={second}")
    model = run.trainer.model
    assert type(model.encoder) is Own
    assert model.energy.direction.shape == (5,)
    assert model.projector.net[0].num_features == 5
    log = logged(run)
    assert {record["stage"] for record in log} == {"stage1", "stage2"}
    assert all(record["loss"] == record["loss"] for record in log if "loss" in record)
    assert any(not torch.equal(x, before[name]) for name, x in model.encoder.state_dict().items())
    assert all(torch.equal(x, before[name]) for name, x in own.state_dict().items())  # the given one stays as it was


def test_of_two_encoders_each_has_weights_of_its_own():
    own = Own()
    run = prepared(own, "density.own_encoder=true", "stage2.density.generative=0")
    model = run.trainer.model
    shared = {p.data_ptr() for p in model.encoder.parameters()} & {
        p.data_ptr() for p in model.density.encoder.parameters()
    }
    assert not shared
    assert all(map(torch.equal, model.encoder.parameters(), own.parameters()))
    assert all(map(torch.equal, model.density.encoder.parameters(), own.parameters()))
    run.trainer.fit(stop_after=3)  # stage 1: the density alone
    assert all(map(torch.equal, model.encoder.parameters(), own.parameters()))
    assert not torch.equal(model.density.encoder.first.weight, own.first.weight)
    run.trainer.fit(stop_after=1)
    energy = copy.deepcopy(model.density.encoder.state_dict())
    run.trainer.fit(stop_after=3)  # stage 2: the clusters alone
    assert not torch.equal(model.encoder.first.weight, own.first.weight)
    assert all(torch.equal(x, energy[name]) for name, x in model.density.encoder.state_dict().items())


def test_tables_take_an_encoder_too():
    settings = ["data.n_train=100", "data.n_test=50", "stage1.iterations=3", "stage2.iterations=3", "walk.steps=2"]
    settings += ["stage1.batch_size=32", "stage2.batch_size=32", "density.buffer=200", "n_init=1"]
    own = nn.Sequential(nn.Linear(2, 6), nn.Tanh())
    run = prepare(parse(override(preset("circles"), settings)), encoder=own)
    train(run)
    assert run.trainer.model.energy.direction.shape == (6,)
    assert all(p.isfinite().all() for p in run.trainer.model.parameters())


class Refuses(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, x):
        raise self.error


class Pair(nn.Module):
    def forward(self, x):
        return x.flatten(1), x


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (nn.Conv2d(1, 4, 3), r"one vector a point, \(n, h\), got \(2, 4, 6, 6\) for 2 points; end it with .*Flatten"),
        (nn.Flatten(0), r"one vector a point, \(n, h\), got \(128,\) for 2 points"),
        (nn.Unflatten(0, (1, 2)), r"one vector a point, \(n, h\), got \(1, 2, 1, 8, 8\)"),
        (Pair(), r"one vector a point, \(n, h\), got tuple for 2 points"),
    ],
)
def test_what_gives_no_vector_for_a_point_is_refused(encoder, message):
    with pytest.raises(UserError, match=message):
        prepared(encoder)


@pytest.mark.parametrize(
    ("encoder", "reason"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(784, 8)), "mat1 and mat2"),
        (nn.Conv2d(3, 4, 3), "to have 3 channels, but got 1 channels"),
        (nn.Conv2d(1, 4, 9), "Kernel size can't be greater"),
        (nn.BatchNorm1d(8), "expected 2D or 3D input"),  # a ValueError
        (Refuses(TypeError("no such points")), "no such points"),
        (Refuses(RuntimeError("first line\nsecond line")), "first line$"),
        (Refuses(ValueError()), ": $"),
    ],
)
def test_what_takes_other_points_is_refused_in_one_line(encoder, reason):
    with pytest.raises(UserError, match=r"the encoder must take points of shape \(1, 8, 8\): ") as refused:
        prepared(encoder)
    assert refused.match(reason)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("own", [True, False])
def test_mixed_precision_trains_and_keeps_weights_and_chains_whole(own):
    run = prepared(Own() if own else None, fabric=make_fabric(precision="bf16-mixed"))
    parts = set()
    run.trainer.model.encoder.register_forward_hook(lambda module, args, latent: parts.add(latent.dtype))
    log = logged(run)
    assert torch.bfloat16 in parts
    assert len([record for record in log if "loss" in record]) == 8
    assert all(torch.isfinite(torch.tensor(record["loss"])) for record in log if "loss" in record)
    assert {p.dtype for p in run.trainer.model.parameters()} == {torch.float32}
    assert all(p.isfinite().all() for p in run.trainer.model.parameters())
    assert run.trainer.state.density["chains"].rows.dtype == torch.float32


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_walks_of_noise_and_denoising_follow_the_precision_and_end_in_float32(precision):
    digits = parse(
        override(preset("digits"), ["stage1.iterations=2", "stage2.iterations=2", "stage2.moves.merge=null"])
    )
    run = prepare(digits, fabric=make_fabric(precision=precision))
    trainer, ends, parts = run.trainer, [], set()
    walk = trainer.walks._walked
    trainer.walks._walked = lambda *given: ends.append(walk(*given)) or ends[-1]
    trainer._begin(trainer.course.legs[0])
    trainer.walks.begin(trainer.course.legs[1].stage)
    trainer.walks.frozen.density.body.deeper.register_forward_hook(lambda module, args, found: parts.add(found.dtype))
    trainer.batches = trainer._new_batches(128)
    trainer._next_batch(trainer.course.legs[1].stage, 0.0)
    assert parts == {torch.bfloat16 if precision == "bf16-mixed" else torch.float32}
    assert {end.dtype for end in ends} == {torch.float32}
    assert all(end.isfinite().all() for end in ends)


def test_mixed_precision_is_near_full_precision_and_not_the_same():
    losses = []
    for precision in ("32-true", "bf16-mixed"):
        run = prepared(Own(), "stage1.iterations=0", fabric=make_fabric(precision=precision))
        losses.append(next(record["loss"] for record in logged(run) if "loss" in record))
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)


@pytest.mark.parametrize(("second", "count"), [(False, 1), (True, 2)])
def test_encoders_are_compiled_if_asked_to_and_nothing_else(monkeypatch, second, count):
    compiled = []
    monkeypatch.setattr(nn.Module, "compile", lambda self, *args, **settings: compiled.append(self))
    prepared(Own(), f"density.own_encoder={second}")
    assert compiled == []
    model = prepared(Own(), f"density.own_encoder={second}", compiled=True).trainer.model
    assert [id(part) for part in compiled] == [id(model.encoder), id(model.density.encoder)][:count]


@pytest.mark.parametrize("second", [False, True])
def test_a_saved_run_is_loaded_with_its_encoder(tmp_path, monkeypatch, second):
    monkeypatch.setattr("gedi.densities.energy._FRESH_STEPS", 2)
    run = prepared(Own(), f"density.own_encoder={second}")
    directory = RunDirectory.create(tmp_path / "run")
    execute(run, directory)
    assert json.loads((tmp_path / "run" / "model" / "config.json").read_text())["own_encoder"] is True
    with pytest.raises(UserError, match=r"was trained with an encoder of your own: give one like it to load"):
        directory.fitted()

    given = Own(seed=7)
    fitted = directory.fitted(given)
    model, box = fitted.model, fitted.box
    assert not model.training
    assert (model.density.encoder is not None) == second
    x = run.data.test[:20]
    for ours, trained in zip(model(x), run.trainer.model(x), strict=True):
        assert torch.equal(ours, trained)
    assert torch.equal(box.low, run.box.low)
    assert torch.equal(given.first.weight, Own(seed=7).first.weight)  # it only says how it is built
    names = load_file(tmp_path / "run" / "model" / "model.safetensors")
    assert {name for name in names if name.startswith("encoder.")} == {
        *("encoder.first.weight", "encoder.first.bias", "encoder.last.weight", "encoder.last.bias"),
    }


def test_a_run_without_one_is_loaded_without_one_also_from_before_there_was_a_flag(tmp_path):
    run = prepared(None, "model.width=4", "model.latent=8")
    assert run.own_encoder is False
    directory = RunDirectory.create(tmp_path / "run")
    run.fitted().save(directory.path / "model")
    saved = tmp_path / "run" / "model" / "config.json"
    kept = json.loads(saved.read_text())
    assert kept.pop("own_encoder") is False
    for settings in (kept | {"own_encoder": False}, kept):
        saved.write_text(json.dumps(settings))
        model = directory.fitted().model
        ours, theirs = model.state_dict(), run.trainer.model.state_dict()
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
