import json
import sys

import numpy as np
import pytest
import torch

from gedi.config import parse
from gedi.data import Dataset, Pixels, StoredImages, differences, fingerprint, write_shards
from gedi.random import Streams
from gedi.sources import load_data

OTHER = "other training points of the same number and shape"


def kept(data):
    """A fingerprint as a run keeps it."""
    return json.loads(json.dumps(fingerprint(data)))


def table(n=50, seed=0, **more):
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed))
    return Dataset("table", x[: n - 10], x[n - 10 :], **more)


def test_the_same_data_have_the_same_fingerprint_whatever_they_are_called():
    x = torch.randn(40, 3)
    now = Dataset("b", x.clone(), x[:5].T.contiguous().T, source="elsewhere")
    assert differences(kept(Dataset("a", x, x[:5])), kept(now)) == []


def test_any_one_value_makes_a_difference():
    x = torch.randn(200, 4)
    then = kept(Dataset("x", x, x[:5]))
    for place in ((0, 0), (117, 2), (199, 3)):
        other = x.clone()
        other[place] += 0.01
        assert differences(then, kept(Dataset("x", other, x[:5]))) == [
            "other training points of the same number and shape"
        ]


def test_rows_and_columns_that_changed_places_make_a_difference():
    x = torch.randn(200, 4)
    then = kept(Dataset("x", x, x[:5]))
    for other in (x.flip(0), x[:, [1, 0, 2, 3]]):
        assert differences(then, kept(Dataset("x", other, x[:5]))) != []


def test_rounding_of_another_machine_is_no_difference():
    x = torch.randn(5000, 7, generator=torch.Generator().manual_seed(0)) * 20
    ulp = (torch.nextafter(x, torch.full_like(x, torch.inf)) - x) * torch.randint(-2, 3, x.shape)
    for other in (x + ulp, (x - 1e-6) * (1 + 1e-7)):
        assert not torch.equal(x, other)
        assert differences(kept(Dataset("x", x, x[:5])), kept(Dataset("x", other, x[:5]))) == []


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (table(4010), "4,000 training points instead of 40"),
        (Dataset("t", torch.zeros(40, 2), torch.zeros(10, 2)), "training points of shape (2,) instead of (3,)"),
        (table(train_labels=torch.zeros(40)), "training labels where there were none"),
        (table(group_size=2, groups=3), "2 points in a group instead of 1"),
        (
            Dataset("t", torch.zeros(40, 3).double(), torch.zeros(10, 3)),
            "training points in float64 instead of float32",
        ),
    ],
)
def test_what_differs_is_said_in_words(now, said):
    assert said in differences(kept(table()), kept(now))


def test_other_labels_are_said_and_labels_that_are_gone():
    y = torch.arange(40) % 3
    then = kept(table(train_labels=y))
    assert differences(then, kept(table(train_labels=y.flip(0)))) == [
        "other training labels of the same number and shape"
    ]
    assert differences(then, kept(table())) == ["no training labels any more"]


def test_images_differ_by_their_bytes_and_by_how_they_become_points():
    stored = torch.randint(0, 256, (20, 1, 8, 8), dtype=torch.uint8)

    def images(stored, **how):
        return kept(Dataset("i", StoredImages(stored, Pixels(**how)), StoredImages(stored[:5], Pixels(**how))))

    one_bit = stored.clone()
    one_bit[13, 0, 4, 4] ^= 1
    assert differences(images(stored), images(stored.clone())) == []
    assert differences(images(stored), images(one_bit)) == [OTHER]
    assert "(x - 0.5) / 0.5" in differences(images(stored), images(stored, mean=0.5, std=0.5))[0]


def sharded(folder, x):
    write_shards(x, folder, per_shard=20)
    return load_data(parse({"data": {"name": "shards", "path": str(folder)}}), Streams(0))


def test_shards_differ_by_files_and_content_not_by_place(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 3))
    then = kept(sharded(tmp_path / "a", x))
    assert differences(then, kept(sharded(tmp_path / "b", x))) == []
    other = x.copy()
    other[7, 1] += 1e-3
    assert OTHER in differences(then, kept(sharded(tmp_path / "c", other)))
    assert any("instead of" in said for said in differences(then, kept(sharded(tmp_path / "d", x[:50]))))


def test_a_cell_between_the_sampled_blocks_shows_in_the_figures_of_all_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[fingerprint.__module__], "_BYTES", 2)
    monkeypatch.setattr(sys.modules[fingerprint.__module__], "_BLOCK", 1)
    x = np.random.default_rng(0).normal(size=(60, 3))
    other = x.copy()
    other[7, 1] += 1e-3
    then, now = kept(sharded(tmp_path / "a", x)), kept(sharded(tmp_path / "b", other))
    assert then["train"]["digest"] == now["train"]["digest"]
    assert differences(then, now) != []
