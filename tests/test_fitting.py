"""fit: points in memory become something that can be asked about points it has never seen."""

import json

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import normalized_mutual_info_score

import gedi
from gedi.config import override, parse
from gedi.data import Dataset
from gedi.directory import RunDirectory
from gedi.errors import UserError
from gedi.fitted import Fitted
from gedi.fitting import prepare
from gedi.logic import Constraint
from gedi.presets import preset
from gedi.runs import execute

SHORT = {
    "stage1": {"iterations": 60}, "stage2": {"iterations": 60}, "walk": {"steps": 5}, "n_init": 1,
    "density": {"buffer": 500},
}  # fmt: skip
CENTRES, UNIT = np.array([[0.0, 0.0], [30.0, 10.0]]), np.array([1000.0, -200.0])


def blobs(n, seed=0):
    x, y = make_blobs(n, centers=CENTRES, cluster_std=1.0, random_state=seed)
    return x + UNIT, y


@pytest.fixture(scope="module")
def fitted():
    return gedi.fit(blobs(600)[0], SHORT, clusters=2)


@pytest.fixture(scope="module")
def of_images():
    images = (load_digits().images / 16)[:, None]
    short = {"preset": "digits", "stage1": {"iterations": 3}, "stage2": {"iterations": 3}, "model": {"width": 2}}
    return gedi.fit(images[:400], short, clusters=10), images


def test_clusters_of_points_never_seen(fitted):
    x, y = blobs(300, seed=1)
    assert normalized_mutual_info_score(y, fitted.predict(x)) > 0.95
    p = fitted.probabilities(x)
    torch.testing.assert_close(p.sum(dim=1), torch.ones(300))
    assert torch.equal(p.argmax(dim=1), fitted.predict(x))


def test_what_comes_out_is_in_the_units_that_went_in(fitted):
    def from_centre(points):
        return np.median(np.linalg.norm(points.numpy()[:, None] - (CENTRES + UNIT), axis=2).min(axis=1))

    x = blobs(600)[0]
    assert from_centre(fitted.sample(400, seed=1)) < 5
    assert from_centre(fitted.walk(x[:50])) < 5
    assert fitted.log_density(x[:50]).mean() > fitted.log_density(x[:50] + 100).mean()


def test_moving_and_scaling_the_points_changes_no_cluster(fitted):
    x, _ = blobs(600)
    moved = gedi.fit(x * 1e-3 - 5, SHORT, clusters=2)
    new = blobs(200, seed=2)[0]
    assert normalized_mutual_info_score(fitted.predict(new), moved.predict(new * 1e-3 - 5)) > 0.95


def test_the_score_is_the_gradient_of_the_log_density_in_the_given_units(fitted):
    x = torch.tensor(blobs(5)[0], dtype=torch.float32)
    step = 0.02
    for j in range(2):
        ahead, behind = x.clone(), x.clone()
        ahead[:, j] += step
        behind[:, j] -= step
        slope = (fitted.log_density(ahead) - fitted.log_density(behind)) / (2 * step)
        torch.testing.assert_close(fitted.score(x)[:, j], slope, rtol=0.05, atol=0.02)


def test_labels_are_given_without_asking_the_energy(fitted, monkeypatch):
    def asked(*_):
        raise AssertionError("the energy was asked")

    monkeypatch.setattr("gedi.nn.model.Energy.__call__", asked)
    monkeypatch.setattr("gedi.nn.model.Energy.of_latent", asked)
    x = blobs(20)[0]
    fitted.predict(x)
    fitted.probabilities(x)
    fitted.embed(x)
    with pytest.raises(AssertionError, match="the energy was asked"):
        fitted.log_density(x)


def test_saved_and_loaded_it_answers_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = Fitted.load(tmp_path / "model")
    x = blobs(50, seed=3)[0]
    for ask in ("predict", "probabilities", "embed", "log_density", "score", "walk"):
        assert torch.equal(getattr(again, ask)(x), getattr(fitted, ask)(x)), ask
    assert torch.equal(again.sample(20, seed=4), fitted.sample(20, seed=4))
    assert again.verdict == fitted.verdict
    assert again.config == fitted.config


def test_nothing_is_written(fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gedi.fit(blobs(200)[0], {**SHORT, "stage1": {"iterations": 2}, "stage2": {"iterations": 2}}, clusters=2)
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_is_a_face_of_it(tmp_path):
    settings = override(preset("blobs"), ["data.n_train=300", "data.n_test=60", "stage1.iterations=20",
                        "stage2.iterations=20", "n_init=1", "walk.steps=2", "density.buffer=300"])  # fmt: skip
    prepared = prepare(parse(settings))
    execute(prepared, RunDirectory.create(tmp_path / "run"))
    read = RunDirectory.open(tmp_path / "run").fitted()
    same = gedi.fit(Dataset("blobs", prepared.data.train, prepared.data.test), settings, clusters=3)
    assert torch.equal(read.predict(prepared.data.test), same.predict(prepared.data.test))
    assert torch.equal(read.log_density(prepared.data.test), same.log_density(prepared.data.test))


def test_images_are_taken_as_bytes_or_numbers(of_images):
    fitted, images = of_images
    coarse = (images[:30] * 255).astype(np.uint8)
    assert fitted.predict(images[:30]).shape == (30,)
    torch.testing.assert_close(fitted.embed(coarse), fitted.embed(coarse.astype(np.float32) / 255), atol=1e-5, rtol=0)
    samples = fitted.sample(3)
    assert samples.shape == (3, 1, 8, 8)
    assert 0 <= samples.min() <= samples.max() <= 1


def test_groups_are_as_large_as_the_constraint_has_variables():
    rule = Constraint.from_predicate(lambda a, b: a != b, [range(2)] * 2)
    x, y = blobs(200)
    pairs = np.stack([x[y == 0][:80], x[y == 1][:80]], axis=1).reshape(-1, 2)
    terms = {"terms": {"constraint": {"weight": 1.0}}}
    settings = {**SHORT, "stage2": {**SHORT["stage2"], **terms}}
    fitted = gedi.fit(pairs, settings, clusters=2, constraint=rule)
    assert (fitted.predict(pairs[0::2]) != fitted.predict(pairs[1::2])).float().mean() > 0.95
    with pytest.raises(UserError, match="groups of 2"):
        gedi.fit(pairs[:-1], settings, clusters=2, constraint=rule)


def test_a_method_without_clusters_or_density_says_so():
    x, _ = blobs(200)
    short = {**SHORT, "stage1": {"iterations": 2}, "stage2": {"iterations": 2}}
    jem = gedi.fit(x, {**short, "method": "jem"}, clusters=2)
    with pytest.raises(UserError, match="method jem trains none"):
        jem.predict(x)
    assert jem.embed(x).shape[0] == len(x)
    swav = gedi.fit(x, {**short, "method": "swav"}, clusters=2)
    with pytest.raises(UserError, match="sample needs a density"):
        swav.sample(3)


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ([[1.0, 2.0, 3.0]], r"like those trained on, \(n, 2\)"),
        ([1.0, 2.0], r"got shape \(2,\)"),
        ([[np.nan, 1.0]], "1 of 1 hold NaN or infinity"),
        ("text", "got values of type str"),
        (None, "got values of type object"),
        ([[1.0, 2.0], [3.0]], "points must be numbers"),
        (np.zeros((0, 2)), r"got shape \(0, 2\)"),
        (np.zeros((2, 1, 8, 8)), r"\(n, 2\)"),
        ([[1j, 2.0]], "must be real numbers"),
    ],
)
def test_what_is_no_point_is_refused_in_one_line(fitted, points, says):
    with pytest.raises(UserError, match=says) as refused:
        fitted.predict(points)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("cirlces", "did you mean 'circles'"),
        ({"preset": "cirlces"}, "did you mean 'circles'"),
        ({"walk": {"stps": 3}}, "walk.stps"),
        (5, "must be settings or the name of a preset"),
    ],
)
def test_wrong_settings_are_refused_before_any_training(config, says):
    with pytest.raises(UserError, match=says):
        gedi.fit(blobs(50)[0], config, clusters=2)


def test_the_number_of_clusters_must_be_known():
    with pytest.raises(UserError, match=r"model\.clusters"):
        gedi.fit(blobs(50)[0], SHORT)


def test_images_beyond_white_are_refused():
    with pytest.raises(UserError, match="divide them by the value of white"):
        gedi.fit(np.full((20, 1, 8, 8), 16.0), "digits", clusters=2)


def test_a_damaged_model_is_refused_in_one_line(fitted, tmp_path):
    fitted.save(tmp_path)
    about = json.loads((tmp_path / "config.json").read_text())
    about["inputs"] = {"centre": ["a"], "spread": 1.0}
    (tmp_path / "config.json").write_text(json.dumps(about))
    with pytest.raises(UserError, match=r"config.json' cannot be used"):
        Fitted.load(tmp_path)


def test_the_verdict_comes_with_it(fitted):
    assert fitted.verdict["word"] in ("trusted", "doubtful", "failed")
