"""GEDI: what scikit-learn asks of an estimator, and what its own methods promise."""

import os
import pickle
import subprocess
import sys
import time

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import normalized_mutual_info_score as nmi
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gedi import GEDI
from gedi.errors import UserError
from gedi.logic import Constraint

CENTRES = np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0], [0.0, 9.0, 0.0]])


def blobs(n=240, seed=0):
    return make_blobs(n, centers=CENTRES, random_state=seed)


@pytest.fixture(scope="module")
def model():
    return GEDI(3, iterations=60, random_state=0).fit(blobs()[0])


CHECKS = """
import importlib.util, sys, warnings
import torch
from sklearn.utils.estimator_checks import check_estimator
from gedi import GEDI

torch.set_num_threads(1)
warnings.simplefilter("ignore")
found = check_estimator(GEDI(n_clusters=3, iterations=20), on_fail=None, on_skip=None)
bad = [(one["check_name"], one["status"], str(one["exception"])) for one in found if one["status"] != "passed"]
if importlib.util.find_spec("pandas") is None:  # what scikit-learn asks of frames it then skips
    bad = [one for one in bad if one[1] != "skipped" or "pandas" not in one[2]]
print(len(found), bad)
sys.exit(bool(bad))
"""


def test_every_check_of_scikit_learn_passes_and_none_is_skipped():
    env = {**os.environ, "SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1"}  # has to be there before scipy is imported
    done = subprocess.run([sys.executable, "-c", CHECKS], capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_learns_what_is_there_and_says_so(model):
    x, y = blobs(300, seed=1)
    assert nmi(y, model.predict(x)) > 0.95
    assert model.verdict_.word == "trusted"
    assert model.n_clusters_ == 3
    assert model.labels_.shape == (240,)
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(model.transform(x), axis=1), 1, rtol=1e-5)
    assert list(model.get_feature_names_out()[:2]) == ["gedi0", "gedi1"]


def test_outliers_are_counted_by_the_share_asked_for():
    x = np.random.default_rng(0).normal(size=(1500, 2))
    model = GEDI(1, contamination=0.1, random_state=0).fit(x)
    new = np.random.default_rng(1).normal(size=(4000, 2))
    # points never seen: those of training have a bump of their own, which must not move the border
    assert 0.07 < (model.decision_function(new) < 0).mean() < 0.13
    strange = model.outlier_score(new) > 1  # of one round group: beside the surroundings all but the same are strange
    assert 0.07 < strange.mean() < 0.13
    assert ((model.decision_function(new) < 0) == strange).mean() > 0.98
    assert 0.05 < (model.outlier_score(x) > 1).mean() < 0.15  # of those learnt from too, as asked for
    np.testing.assert_allclose(model.score_samples(new), model.decision_function(new) + model.offset_, rtol=1e-5)
    assert model.outlier_score([[0.0, 0.0]])[0] < 0 < 1 < model.outlier_score([[7.0, 7.0]])[0]
    assert model.labels_.max() == 0


def test_a_strange_row_among_those_learnt_from_shows():
    x = np.concatenate([np.random.default_rng(0).normal(size=(300, 3)), [[40.0, 0.0, 0.0]]])
    model = GEDI(1, iterations=1, random_state=0).fit(x)
    assert model.outlier_score(x).argmax() == 300
    twice = np.concatenate([x[:300], x[:300]])  # a row that comes twice is not strange for that
    assert np.median(GEDI(1, iterations=1, random_state=0).fit(twice).outlier_score(twice)) < 0.1


def test_samples_and_walks_are_in_the_units_given(model):
    def apart(points):
        return np.linalg.norm(points[:, None] - CENTRES, axis=2).min(axis=1)

    assert np.median(apart(model.sample(200, random_state=1))) < 3
    x, _ = blobs(60, seed=2)
    there = model.walk(x, steps=3)
    assert np.median(apart(there)) < 3
    assert np.linalg.norm(model.walk(x, steps=1) - x, axis=1).mean() < np.linalg.norm(there - x, axis=1).mean() + 1
    with pytest.raises(UserError, match="steps, at least 1"):
        model.walk(x, steps=0)


def test_the_number_of_clusters_is_found():
    assert GEDI(iterations=5, random_state=0).fit(blobs()[0]).n_clusters_ == 3


def test_it_is_cloned_pickled_and_searched(model):
    x, y = blobs()
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    search = GridSearchCV(GEDI(iterations=5, random_state=0), {"n_clusters": [2, 3]}, cv=2).fit(x)
    assert search.best_params_["n_clusters"] in (2, 3)
    piped = make_pipeline(StandardScaler(), GEDI(3, iterations=30, random_state=0))
    assert nmi(y, piped.fit_predict(x)) > 0.95
    many = joblib.Parallel(n_jobs=2, prefer="threads")(joblib.delayed(model.predict)(part) for part in (x[:9], x[9:]))
    np.testing.assert_array_equal(np.concatenate(many), model.predict(x))


@pytest.mark.parametrize("kind", ["tensor", "float32", "fortran", "list", "memory-mapped"])
def test_points_come_in_many_kinds(model, kind, tmp_path):
    x, _ = blobs()
    given = {"tensor": torch.from_numpy, "float32": np.float32, "fortran": np.asfortranarray, "list": list}.get(kind)
    if kind == "memory-mapped":
        np.save(tmp_path / "x.npy", x)
        given = lambda _: np.load(tmp_path / "x.npy", mmap_mode="r")  # noqa: E731
    np.testing.assert_array_equal(model.predict(given(x)), model.predict(x))


def test_of_rows_that_do_not_fit_in_memory_some_are_learnt_from_and_all_are_labelled(tmp_path, monkeypatch):
    x, y = blobs(6000)
    np.save(tmp_path / "x.npy", x.astype(np.float32))
    monkeypatch.setenv("GEDI_MEMORY_LIMIT", "50K")
    monkeypatch.setattr("gedi.estimating.DRAWN", 500)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    with pytest.warns(UserWarning, match="6,000 rows are more than memory should hold: 500 drawn at random"):
        model = GEDI(3, iterations=60, random_state=0).fit(mapped)
    assert nmi(y, model.labels_) > 0.95
    assert model.results_["fingerprint"]["train"]["shape"] == [500, 3]
    assert 0.005 < (model.outlier_score(mapped) > 1).mean() < 0.02


def test_large_numbers_keep_their_digits(tmp_path):
    x, y = blobs()
    far = x / 1000 + 1.7e9  # in float32 all of it would be one point
    model = GEDI(3, iterations=60, random_state=0).fit(far)
    assert nmi(y, model.labels_) > 0.99
    model.save(tmp_path / "far")
    np.testing.assert_array_equal(GEDI.load(tmp_path / "far").score_samples(far), model.score_samples(far))


def test_a_warm_start_goes_on_with_the_same_clusters():
    x, _ = blobs()
    model = GEDI(3, iterations=60, random_state=0, warm_start=True).fit(x)
    before = model.predict(x)
    more, _ = blobs(300, seed=5)
    model.set_params(random_state=7, iterations=20).fit(more)
    np.testing.assert_array_equal(model.predict(x), before)
    cold = [GEDI(3, iterations=20, random_state=seed).fit(more).predict(x) for seed in range(4)]
    assert any((each != before).any() for each in cold)  # by chance alone numbers change
    with pytest.raises(UserError, match="warm start needs a network like the one before"):
        model.set_params(n_clusters=4).fit(more)


def test_no_more_time_is_taken_than_allowed():
    x, y = make_moons(400, noise=0.05, random_state=0)
    began = time.perf_counter()
    model = GEDI(2, max_time=1.5, random_state=0).fit(x)
    assert time.perf_counter() - began < 6  # graph and figures besides, on a busy machine
    assert nmi(y, model.labels_) > 0.9


def test_a_rule_names_the_clusters_of_a_table():
    rule = Constraint.from_predicate(lambda a, b: (a + 1) % 3 == b, domains=[range(3)] * 2)
    # its shortcuts turn all names; the first of three groups is told apart by a further rule
    assert not rule.shortcuts().names_symbols
    rule = Constraint.from_predicate(lambda a, b: a < b, domains=[range(3)] * 2)
    rng = np.random.default_rng(0)
    names = np.array([pair for pair in rng.integers(3, size=(600, 2)) if pair[0] < pair[1]]).flatten()
    x = CENTRES[names] + rng.normal(size=(len(names), 3))
    model = GEDI(3, constraint=rule, iterations=300, random_state=0).fit(x)
    assert (model.labels_ == names).mean() > 0.97  # the very names, without matching
    with pytest.raises(UserError, match="group_size must be 2"):
        GEDI(3, constraint=rule, group_size=3).fit(x)
    with pytest.raises(UserError, match="groups of 2"):
        GEDI(3, constraint=rule).fit(x[:-1])


def test_observed_sums_name_the_clusters_of_a_table():
    total = Constraint.from_function(lambda a, b: a + b, [range(3)] * 2)
    rng = np.random.default_rng(0)
    names = rng.integers(3, size=400)
    x = CENTRES[names] + rng.normal(size=(400, 3))
    sums = names.reshape(-1, 2).sum(axis=1).astype(float)
    sums[::5] = np.nan  # of which nobody told
    model = GEDI(3, constraint=total, group_size=2, iterations=300, random_state=0).fit(x, answers=sums)
    assert (model.labels_ == names).mean() > 0.97
    with pytest.raises(UserError, match="give the observed one of each group"):
        GEDI(3, constraint=total).fit(x)
    with pytest.raises(UserError, match="one for each of 200 groups"):
        GEDI(3, constraint=total).fit(x, answers=sums[1:])
    with pytest.raises(UserError, match="answers are what was observed of groups"):
        GEDI(3).fit(x, answers=sums)
    with pytest.raises(UserError, match="answers must be a list"):
        GEDI(3, constraint=total).fit(x, answers=3)


@pytest.mark.parametrize("encoder", ["identity", torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh())])
def test_encoders_of_ones_own(encoder, tmp_path):
    x, y = blobs()
    model = GEDI(3, encoder=encoder, iterations=80, random_state=0).fit(x)
    assert nmi(y, model.labels_) > 0.95
    model.save(tmp_path / "m")
    again = GEDI.load(tmp_path / "m", None if encoder == "identity" else encoder)
    np.testing.assert_array_equal(again.predict(x), model.labels_)


def test_images_are_clustered_too():
    rng = np.random.default_rng(0)
    images = np.zeros((120, 1, 8, 8), np.uint8)
    images[::2, :, :, :4] = 200
    images += rng.integers(0, 40, images.shape).astype(np.uint8)
    model = GEDI(2, iterations=30, random_state=0).fit(images)
    assert model.predict(images).shape == (120,)
    assert model.sample(2).shape == (2, 1, 8, 8)
    assert model.n_features_in_ == 64
    with pytest.raises(UserError, match="channels last"):
        GEDI(2).fit(np.zeros((20, 8, 8, 3), np.uint8))
    with pytest.raises(UserError, match="give a number"):
        GEDI("auto").fit(images)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number"),
        ({"n_clusters": "many"}, "n_clusters must be a whole number"),
        ({"n_clusters": 500}, "fewer than the 240 points"),
        ({"iterations": 0}, "iterations must be a whole number"),
        ({"batch_size": 1}, "batch_size must be a whole number from 2 on"),
        ({"max_time": -1}, "max_time must be seconds"),
        ({"contamination": 0.9}, "contamination must be a share"),
        ({"method": "gedy"}, "did you mean 'gedi'"),
        ({"scaling": "none"}, "data.columns"),
        ({"device": "tpu"}, "unknown accelerator"),
        ({"group_size": 3}, "give a constraint"),
        ({"encoder": "resnet"}, "encoder must be"),
        ({"missing": "drop"}, "unknown missing"),
    ],
)
def test_wrong_parameters_are_refused(wrong, said):
    with pytest.raises(UserError, match=said):
        GEDI(**{"n_clusters": 3, **wrong}).fit(blobs()[0])


def test_numbers_may_be_those_of_numpy():
    one, few = np.int64(1), np.int64(2)
    model = GEDI(
        np.int64(3), iterations=few, n_init=one, batch_size=np.int32(64), max_time=np.int64(9), random_state=few
    ).fit(blobs()[0])
    assert (model.n_clusters_, type(model.n_clusters_)) == (3, int)
    found = GridSearchCV(GEDI(iterations=2, random_state=0), {"n_clusters": np.arange(2, 4)}, cv=2).fit(blobs()[0])
    assert found.best_params_["n_clusters"] in (2, 3)


def test_a_page_is_one_file(model, tmp_path):
    page = model.report(tmp_path / "deep" / "page.html")
    assert "trusted" in page.read_text()
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]


def test_rows_that_cannot_be_learnt_from_are_refused_or_handled_and_said():
    x, _ = blobs()
    for place, said in (((3, 1), "which float32 can square, got 1e\\+30 in row 3, column 1"),):
        far = x.copy()
        far[place] = 1e30
        with pytest.raises(UserError, match=said):
            GEDI(3, iterations=2).fit(far)
    constant = GEDI(3, iterations=2, random_state=0).fit(np.c_[x, np.ones(len(x))])
    assert constant.notes_ == ["constant, so without effect: column 3"]
    assert GEDI(2, iterations=2, random_state=0).fit(np.ones((40, 3))).verdict_.word == "failed"  # handled, and said
    assert GEDI(2, iterations=2, random_state=0).fit(np.repeat(x[:2], 30, axis=0)).labels_.shape == (60,)
    assert np.isneginf(constant.score_samples([[1e30, 0, 0, 1]]))
    copies = np.repeat(x[:2], 30, axis=0)
    assert np.abs(GEDI(2, iterations=2, random_state=0).fit(copies).outlier_score(copies)).max() < 1  # none is strange
    drawn = [GEDI(3, iterations=2, random_state=np.random.default_rng(3)).fit(x).predict_proba(x) for _ in range(2)]
    np.testing.assert_array_equal(*drawn)
