"""The program as a user meets it: what it writes, and how it says no."""

import json
import os

import numpy as np
import pytest
import torch
import yaml

from gedi.directory import RunDirectory

TINY = [
    *("--set", "data.n_train=300", "--set", "data.n_test=100", "--set", "stage1.iterations=20"),
    *("--set", "stage2.iterations=20", "--set", "walk.steps=5", "--set", "density.buffer=500"),
    *("--set", "log_every=5", "--set", "n_init=1"),
]


def test_a_run_leaves_everything_the_design_names(gedi, tmp_path):
    code, out, _ = gedi("run", "circles", "--seed", 7, "--out", tmp_path / "run", *TINY)
    assert code == 0
    for name in (
        *("config.yaml", "metrics.jsonl", "results.json", "report.html", "checkpoints/000001.pt"),
        *("model/model.safetensors", "model/config.json", "figures/overview.png", "figures/training.png"),
    ):
        assert (tmp_path / "run" / name).is_file(), name
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert (results["preset"], results["seed"], results["method"]) == ("circles", 7, "gedi")
    assert {"nmi", "ami", "ari", "accuracy", "clusters_used", "kl", "sample_1nn", "walk_crossing", "normal_cosine",
            "effective_rank", "cluster_entropy", "energy_gap", "score_cosine"} <= set(results["metrics"])  # fmt: skip
    assert results["density"]["checks"]["kl"]["why"]
    assert set(results["seconds"]) == {"stage1", "stage2", "assess", "total", "processor"}
    assert results["versions"]["torch"].startswith("2.")
    assert next(iter(results)) == "verdict"
    assert out.startswith(f"{results['verdict']['word']} (found without labels)\n  {results['verdict']['why'][0]}\n")
    assert "nmi" in out
    assert "report.html" in out
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == [5, 10, 15, 20] * 2
    assert {"swapped_walk", "generative", "denoising", "acceptance"} <= set(lines[-1])
    page = (tmp_path / "run" / "report.html").read_text()
    assert "data:image/png;base64" in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_run_can_be_run_again_from_its_own_config(gedi, tmp_path):
    gedi("run", "circles", "--seed", 3, "--out", tmp_path / "a", *TINY)
    code, _, _ = gedi("run", tmp_path / "a" / "config.yaml", "--out", tmp_path / "b")
    assert code == 0
    a, b = (RunDirectory.open(tmp_path / name) for name in "ab")
    assert a.config() == b.config()
    assert (a.path / "model/model.safetensors").read_bytes() == (b.path / "model/model.safetensors").read_bytes()
    assert a.results()["metrics"] == b.results()["metrics"]


def test_the_saved_model_says_what_the_run_said(gedi, tmp_path):
    gedi("run", "moons", "--out", tmp_path / "run", *TINY)
    run = RunDirectory.open(tmp_path / "run")
    fitted = run.fitted()
    model, box = fitted.model, fitted.box
    x = box.sample(50, torch.Generator().manual_seed(0))
    with torch.no_grad():
        again = RunDirectory.open(tmp_path / "run").fitted().model
        assert torch.equal(model(x).logits, again(x).logits)


@pytest.mark.parametrize("method", ["jem", "swav"])
def test_the_baselines_run_and_report(gedi, tmp_path, method):
    code, _, err = gedi("run", "moons", "--out", tmp_path / "run", "--set", f"method={method}", *TINY)
    assert code == 0, err
    results = RunDirectory.open(tmp_path / "run").results()
    assert (results["density"] is None) == (method == "swav")
    assert results["clusters_by"] == ("k-means on test features" if method == "jem" else "cluster head")
    assert results["metrics"]["clusters_used"] == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("circels",), "did you mean 'circles'"),
        (("circles", "--set", "method=gedy"), "did you mean 'gedi'"),
        (("circles", "--set", "walk.stps=3"), "did you mean 'walk.steps'"),
        (("circles", "--set", "walk.steps=-1"), "walk.steps (T): must be greater than or equal to 0, got -1"),
        (("circles", "--set", "stage1.batch_size=6000"), "must be at most the number of training points, got 6000"),
        (("circles", "--profile", "big"), "unknown profile 'big'"),
        (("rings", "--profile", "paper"), "no paper profile"),
        (("missing.yaml",), "cannot be read as YAML"),
        (("circles", "--set", "data.name=file", "--set", "data.path=none.npy"), "is not there"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(gedi, tmp_path, args, message):
    code, out, err = gedi("run", *args, "--out", tmp_path / "run")
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""
    assert not (tmp_path / "run").exists()


def test_nan_in_the_data_is_refused_with_its_row(gedi, tmp_path):
    x = np.random.default_rng(0).normal(size=(500, 2))
    x[17] = np.nan
    np.save(tmp_path / "x.npy", x)
    arguments = ("--set", "data.name=file", "--set", f"data.path={tmp_path / 'x.npy'}", "--set", "model.clusters=2")
    code, _, err = gedi("run", "toy", *arguments, "--out", tmp_path / "run")
    assert code == 2
    assert "1 of 500 rows" in err
    assert "row 17" in err
    assert not (tmp_path / "run").exists()


def test_labels_of_one_class_are_no_number_of_clusters(gedi, tmp_path):
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).normal(size=(400, 2)), y=np.zeros(400, dtype=int))
    arguments = ("--set", "data.name=file", "--set", f"data.path={tmp_path / 'x.npz'}", *TINY)
    code, _, err = gedi("run", "toy", *arguments, "--out", tmp_path / "run")
    assert code == 2
    assert "at least 2 clusters" in err
    assert not (tmp_path / "run").exists()


def test_data_without_labels_need_a_number_of_clusters_and_then_run(gedi, tmp_path):
    np.save(tmp_path / "x.npy", 5 + 10 * np.random.default_rng(0).normal(size=(400, 3)))
    arguments = ("--set", "data.name=file", "--set", f"data.path={tmp_path / 'x.npy'}", *TINY)
    code, _, err = gedi("run", "toy", *arguments, "--out", tmp_path / "run")
    assert code == 2
    assert "need model.clusters" in err
    code, _, err = gedi("run", "toy", *arguments, "--set", "model.clusters=3", "--out", tmp_path / "run")
    assert code == 0, err
    assert "nmi" not in RunDirectory.open(tmp_path / "run").results()["metrics"]


def test_an_existing_run_is_refused_and_untouched(gedi, tmp_path):
    gedi("run", "circles", "--out", tmp_path / "run", *TINY)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*")}
    code, _, err = gedi("run", "circles", "--out", tmp_path / "run", *TINY)
    assert code == 2
    assert "--resume" in err
    assert "--overwrite" in err
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*")} == before


def test_overwrite_replaces_a_run_but_nothing_else(gedi, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    code, _, err = gedi("run", "circles", "--out", tmp_path / "thesis", "--overwrite", *TINY)
    assert code == 2
    assert "only replaces a run" in err
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"
    gedi("run", "circles", "--out", tmp_path / "run", *TINY)
    code, _, _ = gedi("run", "moons", "--out", tmp_path / "run", "--overwrite", *TINY)
    assert code == 0
    assert RunDirectory.open(tmp_path / "run").results()["preset"] == "moons"


def test_an_out_that_is_a_file_is_refused(gedi, tmp_path):
    (tmp_path / "run").write_text("mine")
    code, _, err = gedi("run", "circles", "--out", tmp_path / "run", *TINY)
    assert code == 2
    assert "is a file" in err
    assert (tmp_path / "run").read_text() == "mine"


def test_an_out_below_a_file_is_refused(gedi, tmp_path):
    (tmp_path / "file").write_text("mine")
    code, _, err = gedi("run", "circles", "--out", tmp_path / "file" / "run", *TINY)
    assert code == 2
    assert len(err.strip().splitlines()) == 1


def test_an_unwritable_out_is_refused(gedi, tmp_path, monkeypatch):
    """The system's answer is stood in for, since the superuser may write anywhere."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    code, _, err = gedi("run", "circles", "--out", tmp_path / "locked" / "run", *TINY)
    assert code == 2
    assert "cannot be written: no permission" in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "locked").exists()


def test_an_out_that_cannot_be_made_is_refused_in_one_line(gedi):
    code, _, err = gedi("run", "circles", "--out", "/proc/nowhere/run", *TINY)
    assert code == 2
    assert len(err.strip().splitlines()) == 1


def test_a_stopped_run_resumes_to_the_same_bytes(gedi, tmp_path, monkeypatch):
    gedi("run", "circles", "--out", tmp_path / "whole", *TINY)
    stop = RunDirectory.append_metrics

    def stop_at_the_sixth_line(self, record):
        stop(self, record)
        if record["stage"] == "stage2" and record["iteration"] == 10:
            raise KeyboardInterrupt

    monkeypatch.setattr("gedi.fitting.CHECKPOINT_EVERY", 7)
    monkeypatch.setattr(RunDirectory, "append_metrics", stop_at_the_sixth_line)
    code, _, err = gedi("run", "circles", "--out", tmp_path / "cut", *TINY)
    assert code == 130
    assert "--resume" in err
    monkeypatch.setattr(RunDirectory, "append_metrics", stop)
    code, _, err = gedi("run", "circles", "--out", tmp_path / "cut", "--resume", *TINY)
    assert code == 0, err
    whole, cut = (tmp_path / name for name in ("whole", "cut"))
    assert (whole / "model/model.safetensors").read_bytes() == (cut / "model/model.safetensors").read_bytes()
    assert (whole / "metrics.jsonl").read_text() == (cut / "metrics.jsonl").read_text()


def test_resume_with_other_settings_is_refused(gedi, tmp_path):
    gedi("run", "circles", "--out", tmp_path / "run", *TINY)
    code, _, err = gedi("run", "circles", "--seed", 5, "--out", tmp_path / "run", "--resume", *TINY)
    assert code == 2
    assert "settings the run began with" in err


def test_a_training_that_diverges_ends_with_code_3_and_its_cause(gedi, tmp_path):
    hostile = ("--set", "stage1.learning_rate=1e30", "--set", "density.metropolis=false")
    code, _, err = gedi("run", "circles", "--out", tmp_path / "run", *TINY, *hostile)
    assert code == 3
    assert "diverged" in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "run" / "results.json").exists()


def test_presets_are_listed_and_shown_in_full(gedi):
    code, out, _ = gedi("presets")
    assert code == 0
    for name in ("toy", "moons", "circles", "rings", "spirals", "blobs", "pinwheel", "moons-paper", "circles-paper"):
        assert name in out
    listed = {line.split("│")[1].strip() for line in out.splitlines() if line.startswith("│")}
    images = {"mnist", "fashion-mnist", "svhn", "cifar10", "cifar100"}
    assert images | {f"{name}-paper" for name in images} <= listed
    code, out, _ = gedi("presets", "circles-paper")
    assert yaml.safe_load(out)["walk"]["steps"] == 10


def test_a_report_can_be_drawn_again(gedi, tmp_path):
    gedi("run", "circles", "--out", tmp_path / "run", *TINY)
    (tmp_path / "run" / "report.html").unlink()
    code, out, _ = gedi("report", tmp_path / "run")
    assert code == 0
    assert "report.html" in out
    assert (tmp_path / "run" / "report.html").is_file()
    assert gedi("report", tmp_path)[0] == 2


def test_nothing_but_figures_goes_to_standard_output_when_piped(gedi, tmp_path):
    _, out, err = gedi("run", "circles", "--out", tmp_path / "run", *TINY)
    assert err == ""
    assert "\x1b" not in out


@pytest.mark.parametrize("preset", ["mnist", "cifar10", "svhn-paper"])
def test_images_that_are_not_here_are_one_line_and_leave_nothing(gedi, tmp_path, monkeypatch, preset):
    monkeypatch.setattr("pooch.os_cache", lambda _: tmp_path / "cache")
    monkeypatch.delenv("GEDI_DATA", raising=False)
    code, out, err = gedi("run", preset, "--data-dir", tmp_path / "empty", "--out", tmp_path / "run")
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert f"gedi data get {preset.removesuffix('-paper')}" in err
    assert list(tmp_path.iterdir()) == []


def test_an_evaluation_of_what_is_no_run_is_one_line(gedi, tmp_path, monkeypatch):
    for path in (tmp_path, tmp_path / "nowhere"):
        code, out, err = gedi("evaluate", path)
        assert (code, out) == (2, "")
        assert err == f"gedi: {str(path)!r} is not a run: it holds no config.yaml\n"
    assert list(tmp_path.iterdir()) == []
