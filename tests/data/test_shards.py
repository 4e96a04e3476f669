"""Rows in shards are the rows of one tensor, whatever is asked for, and nothing else is read."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gedi.data import Pixels, Shards, StoredImages, is_sharded, load_shards, spread, write_shards
from gedi.data.array_shards import ArrayShard


class InMemory:
    """A shard that writes down what it was asked for."""

    def __init__(self, rows):
        self.rows, self.asked = rows, []

    def __len__(self):
        return len(self.rows)

    def read(self, rows):
        self.asked.append(rows.tolist())
        return self.rows[rows]


def cut(x, sizes):
    """An array in shards of these sizes."""
    ends = np.cumsum(sizes)
    return [InMemory(part) for part in np.split(x, ends[:-1])]


SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=6)


@given(SIZES, st.data())
def test_any_index_gives_what_the_tensor_gives(sizes, data):
    n = sum(sizes)
    x = np.random.default_rng(n).integers(0, 256, (n, 2, 3), dtype=np.uint8)
    shards = Shards(cut(x, sizes), x.shape[1:], torch.uint8)
    index = torch.tensor(data.draw(st.lists(st.integers(-n, n - 1), max_size=20)), dtype=torch.long)
    assert torch.equal(shards[index], torch.from_numpy(x)[index])
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assert torch.equal(shards[mask], torch.from_numpy(x)[mask])


@given(SIZES, st.slices(12))
def test_any_slice_gives_what_numpy_gives(sizes, chosen):
    n = sum(sizes)
    x = np.random.default_rng(n).standard_normal((n, 2)).astype(np.float32)
    assert np.array_equal(Shards(cut(x, sizes), [2], torch.float32)[chosen].numpy(), x[chosen])


@given(SIZES, st.data())
def test_some_of_some_rows_are_those_of_the_tensor(sizes, data):
    n = sum(sizes)
    x = torch.arange(n)[:, None].float()
    first = torch.tensor(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=9)))
    second = torch.tensor(data.draw(st.lists(st.integers(-len(first), len(first) - 1), max_size=9)), dtype=torch.long)
    some = Shards(cut(x.numpy(), sizes), [1], torch.float32).take(first)
    assert (len(some), some.shape) == (len(first), (len(first), 1))
    assert torch.equal(some[second], x[first][second])
    assert torch.equal(some.take(second)[:], x[first][second])


def test_each_file_is_asked_once_for_its_rows_in_rising_order_and_others_not_at_all():
    files = cut(np.arange(12.0)[:, None], [4, 4, 4])
    assert Shards(files, [1], torch.float32)[torch.tensor([11, 2, 8, 0, 9])].flatten().tolist() == [11, 2, 8, 0, 9]
    assert [file.asked for file in files] == [[[0, 2]], [], [[0, 1, 3]]]


def test_making_moving_and_choosing_read_nothing():
    files = cut(np.zeros((10, 1, 4, 4), np.uint8), [5, 5])
    shards = Shards(files, [1, 4, 4], torch.uint8)
    moved = shards.take(torch.arange(3)).to("meta")
    assert not any(file.asked for file in files)
    assert moved[:2].device.type == "meta"
    assert len(moved) == 3
    assert not shards.is_floating_point()


@pytest.mark.parametrize(
    "index", [torch.tensor([4]), torch.tensor([-5]), torch.tensor([0.5]), torch.tensor([[1]]), torch.ones(3).bool()]
)
def test_an_index_that_no_tensor_would_take_is_refused(index):
    with pytest.raises(IndexError):
        Shards(cut(np.zeros((4, 1)), [2, 2]), [1], torch.float32)[index]


@pytest.mark.parametrize("n", [1, 2, 7, 100, 12_345])
def test_spread_places_begin_at_the_first_end_at_the_last_and_never_repeat(n):
    places = spread(n, 7)
    assert len(places) == min(n, 7)
    assert (places[0], places[-1]) == (0, n - 1)
    assert (places.diff() > 0).all()
    assert n == 1 or places.diff().max() - places.diff().min() <= 1


def test_images_over_shards_are_the_images_of_the_tensor(tmp_path, g):
    stored = torch.randint(0, 256, (23, 3, 5, 5), dtype=torch.uint8, generator=g)
    write_shards(stored, tmp_path, per_shard=4)
    held, pixels = load_shards(tmp_path), Pixels(pad=1, mean=0.5, std=0.5)
    files = sorted(tmp_path.glob("x-*.npy"))
    every = Shards([ArrayShard.open(file) for file in files], (3, 5, 5), torch.uint8)
    images, shards = StoredImages(stored, pixels), StoredImages(every, pixels)
    assert shards.shape == images.shape
    assert is_sharded(shards)
    assert not is_sharded(images)
    index = torch.randperm(23, generator=g)
    assert torch.equal(shards[index], images[index])
    assert torch.equal(shards.to("cpu")[5:9], images[5:9])
    assert len(held.train) + len(held.test) == 23
