"""Runs on shards: the bytes of a run in memory, exact resume, and nothing that would take the whole set."""

import io
import subprocess
import sys
import tarfile

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import make_moons
from sklearn.metrics import normalized_mutual_info_score
from typer.testing import CliRunner

from gedi import building, measuring
from gedi.cli import app
from gedi.config import override, parse
from gedi.data import Dataset, Shards, StoredImages, is_sharded, load_digits, write_shards
from gedi.directory import RunDirectory
from gedi.errors import UserError
from gedi.evaluating import evaluate_run
from gedi.fitting import prepare, train
from gedi.measures import measure
from gedi.presets import preset
from gedi.random import Streams
from gedi.report import write_report
from gedi.runs import execute
from gedi.sources import data_box, load_data, pixels_of

TINY = (
    "model.width=4", "model.latent=8", "model.projector=16", "model.embedding=8", "model.finer=14",
    "stage1.iterations=6", "stage2.iterations=6", "stage2.batch_size=20", "stage2.density.generative=0.1",
    "stage2.moves.merge.moments=[0.5]", "density.buffer=40", "density.steps=2", "density.margin=0.25", "log_every=1",
)  # fmt: skip
WALKS = ("stage2.terms.agreement_walk={kind: agreement, look: walk, weight: 0.1}", "walk.steps=2", "walk.refresh=1")


def config_of(folder, *settings, name="mnist-energy"):
    return parse(override(preset(name), ["data.name=shards", f"data.path={folder}", *settings]))


@pytest.fixture
def digits():
    """A hundred small digits as bytes, a few more to test on, and their labels."""
    held = load_digits()
    x, x_test = ((part * 255).round().to(torch.uint8) for part in (held.train[:100], held.test[:30]))
    return x, held.train_labels[:100], x_test, held.test_labels[:30]


@pytest.fixture
def folder(tmp_path, digits):
    x, y, x_test, y_test = digits
    write_shards(x, tmp_path / "own", y, per_shard=13)
    write_shards(x_test, tmp_path / "own", y_test, per_shard=20, test=True)
    return tmp_path / "own"


def no_slice_of_everything(monkeypatch):
    """From now on shards refuse to give all of their rows at once."""
    read = Shards.__getitem__
    monkeypatch.setattr("gedi.moves.merge._POINTS", 60)  # so few rows would all be looked at

    def refuse(self, index):
        found = read(self, index)
        assert len(found) < len(self), "the whole set was read"
        return found

    monkeypatch.setattr(Shards, "__getitem__", refuse)


def few_at_a_time(monkeypatch):
    monkeypatch.setattr(measure, "AT_A_TIME", 8)
    monkeypatch.setattr(measure, "SAMPLES", 20)


def same_models(one, two):
    ours, theirs = (run.trainer.model.state_dict() for run in (one, two))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert torch.equal(one.trainer.state.density["chains"].rows, two.trainer.state.density["chains"].rows)


@pytest.mark.parametrize("initial", ["uniform", "normal"])
def test_training_on_shards_is_bit_for_bit_training_in_memory(folder, digits, monkeypatch, initial):
    config = config_of(folder, *TINY, *WALKS, f"density.initial={initial}")
    pixels, (x, y, x_test, y_test) = pixels_of(config.data), digits
    in_memory = Dataset("digits", StoredImages(x, pixels), StoredImages(x_test, pixels), y, y_test)
    runs, logs = [prepare(config, data=in_memory), prepare(config)], ([], [])
    no_slice_of_everything(monkeypatch)
    assert is_sharded(runs[1].trainer.train)
    for run, log in zip(runs, logs, strict=True):
        run.trainer.on_log = log.append
        train(run)
    assert logs[0] == logs[1]
    assert sum("event" in record for record in logs[0]) == 1  # prototypes were merged
    same_models(*runs)


def test_a_run_that_goes_on_from_any_moment_ends_in_the_same_bytes(folder):
    config = config_of(folder, *TINY, *WALKS)
    whole = prepare(config)
    train(whole)
    for moment in (3, 6, 8):
        begun = prepare(config)
        begun.trainer.fit(stop_after=moment)
        held = io.BytesIO()
        torch.save(begun.trainer.state_dict(), held)
        held.seek(0)
        rest = prepare(config)
        rest.trainer.load_state_dict(torch.load(held, weights_only=True))
        train(rest)
        same_models(whole, rest)


RESUME = """
import sys, torch
from gedi.directory import RunDirectory
from gedi.fitting import prepare
from gedi.runs import execute
torch.set_num_threads(1)
directory = RunDirectory.open(sys.argv[1])
execute(prepare(directory.config()), directory)
"""


def test_another_process_goes_on_where_one_stopped(folder, tmp_path):
    config = config_of(folder, *TINY, "model.clusters=10")
    results = {}
    for name, stop in (("whole", None), ("stopped", 7)):
        directory = RunDirectory.create(tmp_path / name)
        run = prepare(config)
        if stop is None:
            execute(run, directory)
        else:
            directory.write("config.yaml", (tmp_path / "whole" / "config.yaml").read_text())
            run.trainer.fit(stop_after=stop)
            directory.save_checkpoint(
                {**run.trainer.state_dict(), "config": config.model_dump(mode="json"), "logged": 0, "spent": 0.0}
            )
            subprocess.run([sys.executable, "-c", RESUME, str(directory.path)], check=True)
        results[name] = (directory.path / "model" / "model.safetensors").read_bytes()
    assert results["whole"] == results["stopped"]


def test_tar_shards_train_like_arrays_of_their_images(tmp_path, folder, digits):
    x, y, x_test, y_test = digits
    (tmp_path / "tars").mkdir()
    for part, images, labels in (("train", x, y), ("test", x_test, y_test)):
        for shard, start in enumerate(range(0, len(images), 16)):
            with tarfile.open(tmp_path / "tars" / f"{part}-{shard:02}.tar", "w") as tar:
                for i in range(start, min(start + 16, len(images))):
                    held = io.BytesIO()
                    Image.fromarray(images[i, 0].numpy()).save(held, "png")
                    for kind, content in (("png", held.getvalue()), ("cls", str(int(labels[i])).encode())):
                        about = tarfile.TarInfo(f"{i:04}.{kind}")
                        about.size = len(content)
                        tar.addfile(about, io.BytesIO(content))
    runs = [prepare(config_of(place, *TINY)) for place in (folder, tmp_path / "tars")]
    assert torch.equal(runs[0].data.train_labels, runs[1].data.train_labels)
    for run in runs:
        train(run)
    same_models(*runs)


def test_assessing_evaluating_and_reporting_never_take_the_whole_set(folder, tmp_path, monkeypatch):
    config = config_of(folder, *TINY)
    run = prepare(config)
    directory = RunDirectory.create(tmp_path / "run")
    monkeypatch.setattr(measuring, "SHOWN", 20)
    monkeypatch.setattr("gedi.evaluating._READ", 25)
    few_at_a_time(monkeypatch)
    no_slice_of_everything(monkeypatch)
    results = execute(run, directory)
    assert {"nmi", "energy_gap"} <= results["metrics"].keys()
    assert "in 10 .npy files, its own split" in results["source"]
    found = evaluate_run(directory, against=["digits", "noise"], samples=10)
    assert found["ood"]["noise"]["images"] == [25, 25]
    assert found["probe"]["train_images"] == 25
    assert write_report(directory).is_file()


def test_walks_from_every_point_are_refused_and_batch_walks_are_not(folder):
    for refresh in (0, 2):
        with pytest.raises(UserError, match=rf"walk\.refresh must be 1 \(walk each batch\), got {refresh}"):
            prepare(config_of(folder, *TINY, *WALKS, f"walk.refresh={refresh}"))
    run = prepare(config_of(folder, *TINY, "walk.refresh=0"))
    assert run.trainer.course.legs  # nothing walks, so nothing is refused


def test_chains_that_begin_like_the_data_look_at_few_of_them(folder, monkeypatch):
    monkeypatch.setattr(building, "_ENOUGH_READ", 11)
    no_slice_of_everything(monkeypatch)
    config = config_of(folder, *TINY, "density.initial=normal")
    data = load_data(config, Streams(0))
    initial = building.initial_distribution(config, data.train, data_box(config, data))
    torch.testing.assert_close(initial.mean, data.train[torch.linspace(0, 99, 11).round().long()].mean(dim=0))


def test_a_limit_takes_so_many_rows_with_their_labels(folder):
    every = load_data(config_of(folder), Streams(0))
    some = load_data(config_of(folder, "data.limit=40"), Streams(0))
    assert len(some.train) == len(some.train_labels) == 40
    place = [(every.train[:] == image).flatten(1).all(dim=1).nonzero()[0, 0].item() for image in some.train[:]]
    assert torch.equal(every.train_labels[place], some.train_labels)
    assert some.source.endswith("; 40 of its training rows")
    assert len(some.test) == len(every.test)


def blobs(n):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return rng.standard_normal((n, 2)) * 0.1 + np.stack([4 * y + 1, 0 * y], 1), y


def test_a_table_in_shards_is_learnt_from_and_judged_by_some_of_its_rows(tmp_path, monkeypatch):
    x, y = blobs(500)
    write_shards(x, tmp_path / "own", y, per_shard=50)
    monkeypatch.setattr(measure, "SAMPLES", 60)
    config = config_of(tmp_path / "own", "stage1.iterations=20", "stage2.iterations=20", "n_init=1", "walk.refresh=1",
                       "walk.steps=3", "density.buffer=200", name="toy")  # fmt: skip
    run = prepare(config)
    assert run.data.train.shape == (400, 2)
    points = run.data.train[:]
    torch.testing.assert_close(points.mean(dim=0), torch.zeros(2), rtol=0, atol=1e-5)
    assert run.box.contains(points).all()
    torch.testing.assert_close(run.box.low, points.amin(dim=0) - config.density.margin, rtol=0, atol=1e-5)
    torch.testing.assert_close(run.box.high, points.amax(dim=0) + config.density.margin, rtol=0, atol=1e-5)
    no_slice_of_everything(monkeypatch)
    few_at_a_time(monkeypatch)
    directory = RunDirectory.create(tmp_path / "run")
    metrics = execute(run, directory)["metrics"]
    assert {"nmi", "sample_1nn", "walk_crossing"} <= metrics.keys()
    assert write_report(directory).is_file()


def test_a_preset_runs_on_shards_from_the_command_line(folder, tmp_path, monkeypatch):
    sets = [piece for setting in TINY for piece in ("--set", setting)]
    where = ["--set", "data.name=shards", "--set", f"data.path={folder}", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, ["run", "mnist-energy", *sets, *where])
    assert done.exit_code == 0, done.output
    assert RunDirectory.open(tmp_path / "run").results()["data"] == "own"


def test_shards_without_a_path_are_told():
    with pytest.raises(UserError, match=r"data\.name=shards needs data\.path, a folder of shards or a pattern"):
        parse(override(preset("mnist-energy"), ["data.name=shards"]))


def test_a_table_in_shards_is_cut_and_refined_with_its_columns_scaled_apart(tmp_path, monkeypatch):
    """Of shards only what is visited is read; the clusters are those of the table in memory."""
    x, moon = make_moons(900, noise=0.05, random_state=7)
    rows = (x * [1, 100]).astype(np.float32)
    write_shards(rows[:700], tmp_path, per_shard=100)
    write_shards(rows[700:], tmp_path, moon[700:], test=True)
    short = ("stage1.iterations=150", "density.points=400", "model.clusters=auto", "seed=1")
    config = config_of(tmp_path, *short, name="table")
    no_slice_of_everything(monkeypatch)
    prepared = prepare(config)
    train(prepared)
    assert prepared.trainer.train.shape == (400, 2)
    fitted = prepared.fitted()
    assert fitted.clusters == 2
    assert normalized_mutual_info_score(moon[700:], fitted.predict(rows[700:])) > 0.9
