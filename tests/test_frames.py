"""Frames in, frames out: names, words and what is missing."""

import numpy as np
import pytest

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
