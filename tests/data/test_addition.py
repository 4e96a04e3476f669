"""Triplets whose third digit is the sum of the first two."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gedi.data import addition_dataset, draw_triplets, free_images, load_digits, load_images
from gedi.data.addition import PAIRS
from gedi.errors import UserError

MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


def shuffled(counts, seed=0):
    labels = torch.arange(10).repeat_interleave(torch.tensor(counts))
    return labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))]


@given(st.integers(0, 2**32), st.integers(1, 60), st.lists(st.integers(60, 90), min_size=10, max_size=10))
def test_every_triplet_adds_up_and_no_image_is_used_twice(seed, n, counts):
    labels = shuffled([3 * count for count in counts], seed % 7)
    triplets = draw_triplets(labels, n, np.random.default_rng(seed))
    assert (triplets.shape, triplets.dtype) == ((n, 3), torch.int64)
    a, b, c = labels[triplets].T
    assert torch.equal(a + b, c)
    assert len(triplets.unique()) == 3 * n
    free = free_images(labels, triplets, 40, np.random.default_rng(seed))
    assert len(torch.cat([triplets.flatten(), free]).unique()) == 3 * n + 40


def test_pairs_are_uniform_over_the_fifty_five():
    assert len(PAIRS) == 55
    labels = shuffled(MNIST_COUNTS)
    pair = labels[draw_triplets(labels, 11_000, np.random.default_rng(0))][:, :2]
    counts = (10 * pair[:, 0] + pair[:, 1]).bincount(minlength=100)
    expected = torch.zeros(100)
    expected[10 * PAIRS[:, 0] + PAIRS[:, 1]] = 200
    chi2 = ((counts - expected)[expected > 0] ** 2 / 200).sum()
    assert counts[expected == 0].sum() == 0
    assert 25 < chi2 < 96  # 54 degrees of freedom: 0.1 % on either side


def test_images_of_a_digit_are_all_as_likely_at_every_place():
    labels = torch.arange(10).repeat(200)
    rng = np.random.default_rng(0)
    ranks = torch.cat([draw_triplets(labels, 100, rng) // 10 for _ in range(60)]).double()  # 0 .. 199 in its digit
    assert (ranks.mean(dim=0) - 99.5).abs().max() < 4 * 57.7 / 6000**0.5
    assert (ranks.std(dim=0) - 57.7).abs().max() < 2
    assert torch.corrcoef(ranks.T).fill_diagonal_(0).abs().max() < 0.06


def test_the_same_generator_draws_the_same():
    labels = shuffled(MNIST_COUNTS)
    one, two, other = (draw_triplets(labels, 100, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_ten_thousand_fit_into_mnist_and_the_advice_of_a_refusal_works():
    labels = shuffled(MNIST_COUNTS)
    assert (labels[draw_triplets(labels, 10_000, np.random.default_rng(0))] == 0).sum().item() == pytest.approx(
        3818, abs=200
    )
    with pytest.raises(UserError, match=r"16000 triplets need 6\d+ images of digit 0, .* there are 5923") as caught:
        draw_triplets(labels, 16_000, np.random.default_rng(0))
    most = int(str(caught.value).split("at most about ")[1].split()[0])
    assert 14_500 < most < 5923 * 55 / 21
    for seed in range(20):
        draw_triplets(labels, most, np.random.default_rng(seed))


def test_the_pool_may_be_used_to_its_last_image():
    labels = torch.tensor([0, 0, 0])  # the pair (0, 0) is the only one that these can make
    seed = next(s for s in range(999) if (PAIRS[np.random.default_rng(s).integers(0, 55, 1)] == 0).all())
    assert draw_triplets(labels, 1, np.random.default_rng(seed)).sort().values.tolist() == [[0, 1, 2]]
    with pytest.raises(UserError, match=r"need 3 images of digit 0, no image twice, but there are 2; .* about 0 "):
        draw_triplets(labels[:2], 1, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("labels", "n", "message"),
    [
        (torch.arange(10), 0, "must be >= 1, got 0"),
        (torch.arange(11), 1, "must be digits 0 to 9"),
        (torch.arange(10) - 1, 1, "must be digits 0 to 9"),
        (torch.tensor([], dtype=torch.int64), 1, "must be digits 0 to 9"),
    ],
)
def test_what_cannot_be_drawn_is_refused(labels, n, message):
    with pytest.raises(UserError, match=message):
        draw_triplets(labels, n, np.random.default_rng(0))


def test_free_images_are_what_is_left():
    taken = torch.tensor([[0, 2, 4], [6, 8, 9]])
    labels, rng = torch.zeros(10), np.random.default_rng(0)
    assert sorted(free_images(labels, taken, 4, rng).tolist()) == [1, 3, 5, 7]
    assert free_images(labels, taken, 0, rng).shape == (0,)
    firsts = torch.cat([free_images(labels, taken, 1, rng) for _ in range(400)]).bincount(minlength=10)
    assert firsts[[1, 3, 5, 7]].min() > 70
    for n in (5, -1):
        with pytest.raises(UserError, match=f"must be 0 to 4, .* got {n}"):
            free_images(labels, taken, n, rng)


def test_digits_come_triplet_by_triplet_then_free():
    data = addition_dataset("digits", 200, 100, np.random.default_rng(0))
    assert (data.groups, data.group_size, data.source) == (200, 3, "digits, as scikit-learn ships them")
    assert data.grouped.shape == (200, 3, 1, 8, 8)
    assert data.free.shape == (100, 1, 8, 8)
    a, b, c = data.train_labels[:600].view(200, 3).T
    assert torch.equal(a + b, c)
    whole = load_digits()
    assert torch.equal(data.test[:], whole.test)
    assert torch.equal(data.test_labels, whole.test_labels)
    known = {
        (image.numpy().tobytes(), int(label)) for image, label in zip(whole.train, whole.train_labels, strict=True)
    }
    drawn = [
        (image.numpy().tobytes(), int(label)) for image, label in zip(data.train[:], data.train_labels, strict=True)
    ]
    assert set(drawn) <= known
    assert len(set(drawn)) == len(drawn)


def test_an_unknown_source_is_named():
    with pytest.raises(UserError, match="unknown source of digits 'digit': did you mean 'digits'"):
        addition_dataset("digit", 1, 0, np.random.default_rng(0))


def test_mnist_addition_at_the_size_of_the_paper(mnist_folder):
    data = addition_dataset("mnist", 10_000, 2_000, np.random.default_rng(0), mnist_folder)
    assert (data.train.shape, data.test.shape) == ((32_000, 1, 28, 28), (10_000, 1, 28, 28))
    assert (data.train[:].dtype, data.train[:].min(), data.train[:].max()) == (torch.float32, 0, 1)
    assert data.source == "mnist, official files"
    a, b, c = data.train_labels[:30_000].view(-1, 3).T
    assert torch.equal(a + b, c)
    official = load_images("mnist", mnist_folder)
    assert torch.equal(data.test_labels, official.test_labels)
    assert torch.equal((data.test[:] * 255).round().to(torch.uint8), official.test)


def test_all_further_images_can_be_free():
    data = addition_dataset("digits", 30, None, np.random.default_rng(0))
    images = load_digits()
    assert data.groups == 30
    assert len(data.train) == len(images.train)
    assert torch.equal(data.train[:].flatten(1).sum(dim=0), data.train.pixels(images.train).flatten(1).sum(dim=0))
