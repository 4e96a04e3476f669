"""Frames in, frames out: names, words and what is missing."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import normalized_mutual_info_score as nmi
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gedi import GEDI
from gedi.errors import UserError
from gedi.frames import FrameColumns, as_frame, make_frame

KINDS = ["pandas", "polars", "pyarrow"]
N = 120


def columns(seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(N) % 2
    return {
        "size": rng.normal(size=N) + 8 * y,
        "weight": rng.normal(size=N) - 8 * y,
        "kind": np.where(y == 1, "big", "small").astype(object),
    }, y


@pytest.fixture(params=KINDS)
def kind(request):
    pytest.importorskip(request.param)
    return request.param


@pytest.mark.filterwarnings("ignore:column 'kind' is words")
def test_a_frame_is_fitted_predicted_and_sampled_by_its_names(kind, tmp_path):
    held, y = columns()
    frame = make_frame(held, kind)
    model = GEDI(2, iterations=60, random_state=0).fit(frame)
    assert list(model.feature_names_in_) == ["size", "weight", "kind"]
    assert (model.labels_ == y).all() or (model.labels_ == 1 - y).all()
    drawn = as_frame(model.sample(20, random_state=0))
    assert drawn.columns == ["size", "weight", "kind"]
    assert set(drawn["kind"].to_list()) == {"big", "small"}
    assert [word == "big" for word in drawn["kind"].to_list()] == [size > 4 for size in drawn["size"].to_list()]
    model.save(tmp_path / "m")
    again = GEDI.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(frame), model.labels_)
    assert as_frame(again.sample(3)).columns == drawn.columns
    with pytest.raises(UserError, match="a frame with words was fitted"):
        model.predict(np.zeros((2, 3)))


def test_what_is_done_to_columns_is_said(kind):
    held, _ = columns()
    held["size"] = held["size"].astype(object)
    held["size"][3] = None
    frame = make_frame(held, kind)
    with pytest.raises(UserError, match=r"'size' must hold a value in every row, but 1 of 120 are missing"):
        GEDI(2, iterations=2).fit(frame)
    with pytest.warns(UserWarning, match="column") as said:
        model = GEDI(2, iterations=2, missing="fill").fit(frame)
    told = "\n".join(str(each.message) for each in said)
    assert "'size' lacks 1 of 120 values, filled with its median" in told
    assert "'kind' is words: a column of 0 and 1 for each of its 2" in told
    assert model.notes_


def test_the_median_is_of_what_is_there(kind):
    frame = as_frame(make_frame({"a": np.array([1.0, 2.0, 9.0, None], dtype=object)}, kind))
    found = FrameColumns.of(frame, "fill")
    np.testing.assert_array_equal(found.numbers(frame)[:, 0], [1, 2, 9, 2])


def test_words_go_there_and_back(kind):
    held = {"kind": np.array(list("abcabc"), dtype=object), "yes": np.array([True, False] * 3)}
    frame = as_frame(make_frame(held, kind))
    found = FrameColumns.of(frame)
    numbers = found.numbers(frame)
    np.testing.assert_array_equal(numbers[:, :3].sum(axis=1), 1)
    back = found.back(numbers + np.random.default_rng(0).normal(0, 0.1, numbers.shape))
    assert back["kind"].tolist() == list("abcabc")
    assert back["yes"].tolist() == held["yes"].tolist()
    assert FrameColumns.read(found.written()) == found


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (np.array([f"name {i}" for i in range(N)], dtype=object), "words of at most 50 kinds, got 120"),
        (np.array([None] * N, dtype=object), "must hold"),
    ],
)
def test_columns_that_nobody_can_learn_from_are_refused(kind, column, said):
    held, _ = columns()
    with pytest.raises(UserError, match=said):
        GEDI(2, iterations=2, missing="fill").fit(make_frame({**held, "bad": column}, kind))


def test_dates_are_refused_by_name(kind):
    import datetime

    frame = make_frame({**columns()[0], "day": np.array([datetime.date(2024, 1, 1)] * N, dtype=object)}, kind)
    with pytest.raises(UserError, match="'day'"):
        GEDI(2, iterations=2).fit(frame)


@pytest.mark.filterwarnings("ignore:column 'kind' is words")
def test_strange_words_and_lacking_columns_are_refused_later(kind):
    held, _ = columns()
    model = GEDI(2, iterations=2, random_state=0).fit(make_frame(held, kind))
    strange = {**held, "kind": np.array(["huge"] * N, dtype=object)}
    with pytest.raises(UserError, match="words that were fitted"):
        model.predict(make_frame(strange, kind))
    with pytest.raises(ValueError, match=r"(?s)feature names|features"):
        model.predict(make_frame({"size": held["size"]}, kind))


def test_numbers_missing_in_an_array_are_refused_or_filled():
    x = np.stack([columns()[0]["size"], columns()[0]["weight"]], axis=1)
    x[5, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        GEDI(2, iterations=2).fit(x)
    with pytest.warns(UserWarning, match="1 values in 1 columns are missing"):
        model = GEDI(2, iterations=2, missing="fill", random_state=0).fit(x)
    filled = x.copy()
    filled[5, 0] = np.nanmedian(x[:, 0])
    np.testing.assert_array_equal(model.score_samples(x), model.score_samples(filled))


def test_names_need_be_no_text():
    x = make_blobs(60, centers=[[0, 0, 0], [9, 9, 9]], random_state=0)[0]
    plain = pd.DataFrame(x)  # pandas numbers its columns
    model = GEDI(2, iterations=5, random_state=0).fit(plain)
    assert list(model.feature_names_in_) == ["0", "1", "2"]
    np.testing.assert_array_equal(model.predict(plain), model.labels_)
    assert model.predict(model.sample(3)).shape == (3,)
    levels = plain.set_axis(pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]), axis=1)
    assert GEDI(2, iterations=5, random_state=0).fit(levels).labels_.shape == (60,)


@pytest.mark.filterwarnings("ignore:column 'kind' is words")
def test_words_count_and_do_not_drown_numbers():
    rng = np.random.default_rng(7)
    y = rng.integers(3, size=600)
    numbers = 2 * rng.normal(size=(3, 3))[y] + rng.normal(size=(600, 3))
    kind = np.where(rng.random(600) < 0.8, y, rng.integers(3, size=600))
    frame = pd.DataFrame(numbers, columns=list("abc")).assign(kind=np.array(["u", "v", "w"])[kind])
    found = GEDI(3, iterations=200, random_state=0).fit(frame).labels_
    assert nmi(y, found) > nmi(y, kind) + 0.1  # standardised, the clusters would be the words
    assert nmi(y, found) > nmi(y, GEDI(3, iterations=200, random_state=0).fit(numbers).labels_)


def test_what_is_masked_is_missing():
    x = make_blobs(60, centers=[[0, 0], [9, 9]], random_state=0)[0]
    hidden = np.ma.masked_array(
        np.where(np.arange(120).reshape(60, 2) == 5, 1e9, x), np.arange(120).reshape(60, 2) == 5
    )
    with pytest.warns(UserWarning, match="1 values in 1 columns are missing"):
        model = GEDI(2, iterations=5, missing="fill", random_state=0).fit(hidden)
    assert model.medians_[1] == np.median(np.delete(x[:, 1], 2))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_embeddings_come_as_frames_where_asked_for(kind):
    x = make_blobs(60, centers=[[0, 0], [9, 9]], random_state=0)[0]
    model = GEDI(2, iterations=5, random_state=0).set_output(transform=kind).fit(x)
    found = model.transform(x)
    assert type(found).__module__.partition(".")[0] == kind
    assert list(found.columns) == list(model.get_feature_names_out())
    piped = make_pipeline(StandardScaler(), GEDI(2, iterations=5, random_state=0)).set_output(transform=kind)
    assert type(piped.fit(x).transform(x)) is type(found)
    if kind == "pandas":
        named = pd.DataFrame(x, columns=["a", "b"], index=[f"row {i}" for i in range(60)])
        assert list(model.fit(named).transform(named).index) == list(named.index)
