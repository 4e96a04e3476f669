"""Evaluation of finished runs: what is measured, what is kept, and how it says no."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gedi import evaluating
from gedi.config import override, parse
from gedi.data import load_digits
from gedi.densities import energy
from gedi.directory import RunDirectory
from gedi.errors import UserError
from gedi.evaluating import PARTS, evaluate_run
from gedi.fitting import prepare
from gedi.presets import preset
from gedi.runs import execute

TINY = (
    "data.name=digits", "data.limit=400", "model.width=4", "model.latent=16", "augment.shift=0.7", "log_every=2",
    "stage1.iterations=6", "stage1.batch_size=20", "stage2.iterations=6", "stage2.batch_size=64",
    "density.buffer=64", "density.chains=16", "density.steps=3", "walk.steps=3",
)  # fmt: skip
SCORES = {"auroc_score_norm", "auroc_log_density", "auroc_max_probability"}


@pytest.fixture(scope="module", autouse=True)
def _short_chains():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(energy, "_FRESH_STEPS", 10)
        yield


def finish(path, *settings):
    run = RunDirectory.create(path)
    execute(prepare(parse(override(preset("mnist-energy"), [*TINY, *settings]))), run)
    return run


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One run of each method, trained when it is first asked for."""
    runs = {}

    def get(method):
        if method not in runs:
            runs[method] = finish(tmp_path_factory.mktemp("runs") / method, f"method={method}")
        return runs[method]

    return get


@pytest.fixture
def run(trained):
    """The GEDI run, with nothing measured yet."""
    found = trained("gedi")
    for name in ("evaluation.json", "model/energies.safetensors"):
        (found.path / name).unlink(missing_ok=True)
    return found


def test_every_part_is_measured_and_written(run):
    found = evaluate_run(run, against=["noise"], samples=30, limit=200)
    assert set(found) == {*PARTS, "checksums"}
    assert run.evaluation() == found
    probe = found["probe"]
    assert probe["recipe"] == "lbfgs"
    assert probe["accuracy"] > 0.3  # chance is 0.1
    assert probe["knn"] > 0.3
    assert 1 < probe["effective_rank_of_latents"] <= 16
    assert (probe["train_images"], probe["test_images"]) == (200, 200)
    noise = found["ood"]["noise"]
    assert SCORES | {"source", "images"} == set(noise)
    assert noise["source"] == "uniform noise"
    assert noise["images"] == [200, 200]
    assert all(0 <= noise[name] <= 1 for name in SCORES)
    kept = load_file(run.path / "model" / "energies.safetensors")
    assert {name: len(energies) for name, energies in kept.items()} == {"digits": 200, "noise": 200}


def test_the_probe_is_on_the_latents_of_the_saved_model(run):
    found = evaluate_run(run, parts=["probe"])["probe"]
    model, digits = run.fitted().model, load_digits()
    assert (found["train_images"], found["test_images"]) == (400, 500)  # data.limit holds here too
    with torch.no_grad():
        latents = model(digits.test * 2 - 1).latent.numpy()  # mean and std 0.5
    # trained on the very images it is tested on, another classifier can only do better
    own = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(latents, digits.test_labels)
    own = own.score(latents, digits.test_labels)
    assert own >= found["accuracy"] > 0.3


def test_energies_and_aurocs_are_those_of_the_saved_model(run):
    found = evaluate_run(run, parts=["ood"], against=["noise"])["ood"]["noise"]
    kept = load_file(run.path / "model" / "energies.safetensors")
    with torch.no_grad():
        own = run.fitted().model.energy(load_digits().test * 2 - 1)
    torch.testing.assert_close(kept["digits"], own, rtol=1e-4, atol=1e-5)
    wins = (kept["digits"][:, None] < kept["noise"]).float() + 0.5 * (kept["digits"][:, None] == kept["noise"]).float()
    assert found["auroc_log_density"] == pytest.approx(wins.mean().item())
    assert found["images"] == [500, 500]


def test_fid_bears_the_name_of_its_network(run, monkeypatch):
    monkeypatch.setattr(evaluating, "installed_inception", lambda: None)
    fid = evaluate_run(run, parts=["fid"], samples=10)["fid"]
    assert (fid["network"], fid["standard"], fid["samples"]) == ("random resnet8", False, 10)
    for kind in ("fresh", "buffer"):
        assert fid[kind]["fid_random_resnet8"] > 0
        assert fid[kind]["fid_random_resnet8_samples"] == 10  # fewer images than features
        assert "fid" not in fid[kind]
        assert {"precision", "recall"} <= set(fid[kind])


def test_only_the_standard_network_gives_a_figure_called_fid(run, monkeypatch):
    pooled = torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten())
    for standard in (True, False):
        network = evaluating.FeatureNetwork("inception", pooled, standard)
        monkeypatch.setattr(evaluating, "installed_inception", lambda network=network: network)
        fid = evaluate_run(run, parts=["fid"], samples=20)["fid"]
        assert fid["standard"] == standard
        assert ("fid" in fid["fresh"]) == standard
        assert ("fid_inception" in fid["fresh"]) != standard


def test_a_file_of_inception_that_is_not_there_is_refused(run):
    with pytest.raises(UserError, match="inception must name a file of weights"):
        evaluate_run(run, parts=["fid"], inception="nowhere.pth")


def test_an_evaluation_can_be_made_again_to_the_same_figures(run):
    first = evaluate_run(run, against=["noise"], samples=10, limit=60)
    (run.path / "evaluation.json").unlink()
    assert evaluate_run(run, against=["noise"], samples=10, limit=60) == first


def test_results_of_several_calls_are_put_together(run):
    probe = evaluate_run(run, parts=["probe"], limit=100)["probe"]
    noise = evaluate_run(run, parts=["ood"], against=["noise"], limit=60)["ood"]["noise"]
    found = evaluate_run(run, parts=["ood"], against=["digits"])
    assert found == run.evaluation()
    assert found["probe"] == probe
    assert found["ood"]["noise"] == noise
    assert found["ood"]["digits"]["auroc_log_density"] == pytest.approx(0.5)  # its own images are no strangers
    assert set(load_file(run.path / "model" / "energies.safetensors")) == {"digits", "noise"}
    again = evaluate_run(run, parts=["ood"], against=["noise"], limit=30)["ood"]
    assert again["noise"]["images"] == [30, 30]  # the newer figure stands
    assert "digits" in again


def test_jem_has_no_clusters_to_score_by(trained):
    found = evaluate_run(trained("jem"), parts=["ood", "fid"], against=["noise"], limit=40, samples=5)
    assert SCORES & set(found["ood"]["noise"]) == {"auroc_score_norm", "auroc_log_density"}
    assert {"fresh", "buffer"} <= set(found["fid"])


def test_swav_has_no_density_to_score_or_sample_by(trained):
    run = trained("swav")
    found = evaluate_run(run, against=["noise"], limit=40, samples=5)
    assert SCORES & set(found["ood"]["noise"]) == {"auroc_max_probability"}
    assert set(found) == {"probe", "ood"}
    assert not (run.path / "model" / "energies.safetensors").exists()


def test_barlow_has_neither_but_features(trained):
    found = evaluate_run(trained("barlow"), against=["noise"], limit=300)
    assert not SCORES & set(found["ood"]["noise"])
    assert found["probe"]["accuracy"] > 0.3


def test_the_papers_probe_is_asked_for_by_name(run, monkeypatch):
    asked = []
    monkeypatch.setattr(evaluating, "linear_probe", lambda *args, recipe, generator: asked.append(recipe) or 0.5)
    assert evaluate_run(run, parts=["probe"], recipe="sgd", limit=50)["probe"]["recipe"] == "sgd"
    assert asked == ["sgd"]


def test_what_is_unknown_is_refused_by_name_before_anything_is_measured(run, monkeypatch):
    monkeypatch.setattr(evaluating, "linear_probe", lambda *args, **kwargs: pytest.fail("too late"))
    with pytest.raises(UserError, match="unknown part of an evaluation 'probes': did you mean 'probe'"):
        evaluate_run(run, parts=["ood", "probes"])
    with pytest.raises(UserError, match="unknown data set 'nois': did you mean 'noise'"):
        evaluate_run(run, against=["nois"])
    assert run.evaluation() == {}


def test_a_run_that_is_not_on_images_is_refused(tmp_path):
    run = RunDirectory.create(tmp_path / "run")
    tiny = ("data.n_train=200", "data.n_test=50", "stage1.iterations=2", "stage2.iterations=2", "walk.steps=2",
            "density.buffer=200", "n_init=1")  # fmt: skip
    execute(prepare(parse(override(preset("moons"), tiny))), run)
    with pytest.raises(UserError, match="takes runs on images, but this run's data is moons"):
        evaluate_run(run)


def test_a_run_that_is_not_finished_is_refused(run, tmp_path):
    begun = RunDirectory.create(tmp_path / "begun")
    begun.write("config.yaml", (run.path / "config.yaml").read_text())
    with pytest.raises(UserError, match="has no model yet: finish its run with gedi run --resume"):
        evaluate_run(begun)


def test_images_without_labels_have_no_probe_but_all_the_rest(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 256, (120, 8, 8), dtype=np.uint8))
    own = (
        "data.name=images",
        f"data.path={tmp_path / 'x.npy'}",
        "data.limit=null",
        "model.clusters=4",
        "model.finer=9",
    )
    run = finish(tmp_path / "run", *own)
    with pytest.raises(UserError, match="a probe needs labels, and these images have none"):
        evaluate_run(run, parts=["probe"])
    found = evaluate_run(run, parts=["fid", "ood"], against=["digits"], samples=5)
    assert set(found) == {"fid", "ood", "checksums"}
    assert found["ood"]["digits"]["images"] == [24, 500]
    assert set(evaluate_run(run, against=["noise"], samples=5, limit=10)) == {"fid", "ood", "checksums"}


@pytest.mark.parametrize("channels", [1, 3])
def test_other_images_come_with_the_channels_and_size_of_ones_own(channels, g):
    example = torch.zeros(1, channels, 6, 6)
    grey, colour = torch.rand(5, 1, 6, 6, generator=g), torch.rand(5, 3, 6, 6, generator=g)
    for images in (grey, colour):
        made = evaluating._like(images, example)
        assert made.shape == (5, channels, 6, 6)
        wanted = images.mean(dim=1, keepdim=True) if channels == 1 else images.expand(-1, 3, -1, -1)
        torch.testing.assert_close(made, wanted)


def test_bytes_become_shares_of_white():
    images = torch.tensor([0, 51, 255], dtype=torch.uint8)[:, None, None, None].expand(-1, 1, 4, 4)
    made = evaluating._like(images, torch.zeros(1, 1, 4, 4, dtype=torch.uint8))
    assert made.is_floating_point()
    torch.testing.assert_close(made[:, 0, 0, 0], torch.tensor([0.0, 0.2, 1.0]))


@pytest.mark.parametrize("size", [(4, 4), (16, 16), (8, 12)])
def test_resizing_keeps_what_is_plain_and_the_light_of_the_rest(size, g):
    example = torch.zeros(1, 3, *size)
    plain = evaluating._like(torch.full((1002, 1, 8, 8), 0.3), example)  # more than a chunk
    assert plain.shape == (1002, 3, *size)
    torch.testing.assert_close(plain, torch.full_like(plain, 0.3))
    images = torch.rand(3, 3, 8, 8, generator=g)
    made = evaluating._like(images, example)
    assert made.min() >= 0
    assert made.max() <= 1
    torch.testing.assert_close(made.mean(dim=(2, 3)), images.mean(dim=(2, 3)), atol=0.05, rtol=0)


def test_a_smaller_image_is_an_average_and_no_sample_of_pixels():
    board = (torch.arange(64).view(8, 8) + torch.arange(8)[:, None]) % 2  # a chessboard
    made = evaluating._like(board[None, None].float(), torch.zeros(1, 1, 4, 4))
    torch.testing.assert_close(made[..., 1:3, 1:3], torch.full((1, 1, 2, 2), 0.5), atol=0.02, rtol=0)


def test_the_program_evaluates_and_draws_again(gedi, run):
    options = ("--part", "ood", "--part", "probe", "--ood", "noise", "--limit", 40)
    code, out, err = gedi("evaluate", run.path, *options)
    assert (code, err) == (0, "")
    figures, _, report = out.rpartition("report: ")
    assert json.loads(figures) == run.evaluation()
    assert set(run.evaluation()) == {"ood", "probe", "checksums"}
    assert report.strip() == str(run.path / "report.html")
    assert (run.path / "figures" / "energies.png").is_file()
    assert "Its own images and others" in (run.path / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--part", "prob"), "did you mean 'probe'"),
        (("--probe", "sdg"), "did you mean 'sgd'"),
        (("--ood", "cifar-10"), "did you mean 'cifar10'"),
        (("--inception", "nowhere.pth", "--part", "fid"), "inception must name a file of weights"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(gedi, run, options, message):
    code, out, err = gedi("evaluate", run.path, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert run.evaluation() == {}
