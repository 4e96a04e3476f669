"""The data that a config names: images of one's own, a part of them, and the box around them."""

import numpy as np
import pytest
import torch
from PIL import Image

from gedi.config import Config, DataConfig, override, parse
from gedi.data import Dataset, ImageSet, Pixels, StoredImages, load_digits
from gedi.errors import UserError
from gedi.fitting import prepare, train
from gedi.presets import preset
from gedi.random import Streams
from gedi.sources import data_box, image_dataset, load_data, load_image_set, pixels_of


def config_of(*settings, name="mnist-energy"):
    return parse(override(preset(name), list(settings)))


def loaded(*settings, seed=0):
    return load_data(config_of(*settings, f"seed={seed}"), Streams(seed))


@pytest.fixture
def folder(tmp_path):
    """Ten images of each of two classes; the first pixel tells which one it is."""
    for kind, shift in (("bird", 0), ("fish", 100)):
        (tmp_path / "own" / kind).mkdir(parents=True)
        for i in range(10):
            pixels = np.zeros((6, 6), np.uint8)
            pixels[0, 0] = shift + i
            Image.fromarray(pixels).save(tmp_path / "own" / kind / f"{i}.png")
    return tmp_path / "own"


def test_a_folder_of_images_is_kept_as_bytes_with_the_folders_as_classes(folder):
    data = loaded("data.name=images", f"data.path={folder}", "data.mean=0.5", "data.std=0.5", "data.pad=1")
    assert data.name == "own"
    assert isinstance(data.train, StoredImages)
    assert data.train.stored.dtype == data.test.stored.dtype == torch.uint8
    assert data.train.shape == (16, 1, 8, 8)
    assert len(data.test) == 4
    assert data.clusters == 2
    for part, labels in ((data.train, data.train_labels), (data.test, data.test_labels)):
        which = part.stored[:, 0, 0, 0]
        assert torch.equal(labels, (which >= 100).long())
        torch.testing.assert_close(part[:][:, 0, 1, 1], which / 255 * 2 - 1)
    everyone = torch.cat([data.train.stored, data.test.stored])[:, 0, 0, 0]
    assert sorted(everyone.tolist()) == [*range(10), *range(100, 110)]
    assert data.source == "folder own: 16 training and 4 test images, a fifth for the test"


def test_a_folder_is_scaled_to_the_side_that_is_asked_for(folder):
    assert loaded("data.name=images", f"data.path={folder}", "data.side=3").train.shape == (16, 1, 3, 3)


def test_arrays_of_images_are_taken_too(tmp_path):
    x = np.random.default_rng(0).integers(0, 256, (20, 5, 5, 3), dtype=np.uint8)
    np.savez(tmp_path / "mine.npz", x=x, y=np.arange(20) % 4, x_test=x[:3], y_test=np.arange(3))
    data = loaded("data.name=images", f"data.path={tmp_path / 'mine.npz'}", "data.mean=0", "data.std=1")
    assert (data.name, data.clusters) == ("mine", 4)
    assert torch.equal(data.train.stored, torch.from_numpy(x).permute(0, 3, 1, 2))
    assert data.train.shape == (20, 3, 5, 5)  # data.channels=1 leaves colours
    torch.testing.assert_close(data.test[:], torch.from_numpy(x[:3]).permute(0, 3, 1, 2) / 255)
    assert data.test_labels.tolist() == [0, 1, 2]


def test_the_small_digits_are_what_scikit_learn_ships():
    data, images = loaded("data.name=digits", "data.mean=0.25", "data.std=0.5"), load_digits()
    assert (data.name, data.clusters, len(data.test)) == ("digits", 10, 500)
    torch.testing.assert_close(data.train[:], (images.train - 0.25) / 0.5)
    assert torch.equal(data.train_labels, images.train_labels)
    assert data.source == "digits, as scikit-learn ships them"


def test_pixels_are_as_the_config_says():
    assert pixels_of(DataConfig(pad=2, channels=3, mean=0.1, std=0.3)) == Pixels(2, 3, 0.1, 0.3)


@pytest.mark.parametrize("limit", [1, 100, 1296])
def test_a_limit_takes_so_many_images_with_their_labels_in_their_order_and_says_so(limit):
    every, some = loaded("data.name=digits"), loaded("data.name=digits", f"data.limit={limit}")
    assert len(some.train) == len(some.train_labels) == limit
    place = [(every.train.stored == image).flatten(1).all(dim=1).nonzero()[0, 0].item() for image in some.train.stored]
    assert place == sorted(place)
    assert len(set(place)) == limit  # no image twice
    assert torch.equal(every.train_labels[place], some.train_labels)
    assert some.source == f"digits, as scikit-learn ships them; {limit} of its training images"
    assert torch.equal(some.test.stored, every.test.stored)


def test_the_images_of_a_limit_follow_from_the_seed():
    a, b, other = (loaded("data.name=digits", "data.limit=100", seed=seed) for seed in (3, 3, 4))
    assert torch.equal(a.train.stored, b.train.stored)
    assert not torch.equal(a.train.stored, other.train.stored)
    assert torch.equal(a.test.stored, other.test.stored)


@pytest.mark.parametrize("limit", [1297, 5000])
def test_a_limit_that_all_images_keep_changes_nothing(limit):
    data = loaded("data.name=digits", f"data.limit={limit}")
    assert len(data.train) == 1297
    assert "of its training images" not in data.source


def test_a_limit_needs_no_labels_and_mixes():
    x = torch.arange(200, dtype=torch.uint8).view(200, 1, 1, 1)
    images = ImageSet("bare", x, None, x[:2], None, False, "made here")
    data = image_dataset(config_of("data.limit=50"), images, Streams(0))
    assert data.train_labels is None
    assert data.train.stored.float().mean() == pytest.approx(99.5, abs=3 * 58 / 50**0.5)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (DataConfig(name="images"), r"data\.name=images needs data\.path, a folder of images or a \.npy or \.npz"),
        (DataConfig(name="images", path="nowhere"), r"data\.path must name a file, but 'nowhere' is not there"),
        (DataConfig(name="images", path="nowhere.npz"), r"'nowhere\.npz' is not there"),
    ],
)
def test_a_path_that_is_missing_is_told(data, message):
    with pytest.raises(UserError, match=message):
        load_image_set(data)
    with pytest.raises(UserError, match=message):
        load_data(Config(data=data), Streams(0))


def test_a_folder_without_images_and_a_file_of_another_kind_are_told(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "images.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="must hold images"):
        loaded("data.name=images", f"data.path={tmp_path / 'empty'}")
    with pytest.raises(UserError, match=r"data\.path must end in \.npy or \.npz, got 'images\.csv'"):
        loaded("data.name=images", f"data.path={tmp_path / 'images.csv'}")
    with pytest.raises(
        UserError, match=r"data\.name=file needs data\.path, the \.npy, \.npz, \.csv, \.tsv or \.parquet file"
    ):
        load_data(Config(data=DataConfig(name="file")), Streams(0))


@pytest.mark.parametrize(("mean", "std", "margin"), [(0.0, 1.0, 0.0), (0.5, 0.5, 0.25), (0.1, 0.28, 0.2)])
def test_the_box_of_images_is_from_black_to_white_and_a_margin_for_every_pixel_alike(mean, std, margin):
    config = config_of("data.name=digits", f"data.mean={mean}", f"data.std={std}", f"sampling.margin={margin}")
    data = load_data(config, Streams(0))
    box = data_box(config, data)
    assert box.low.shape == box.high.shape == (1, 8, 8)
    torch.testing.assert_close(box.low, torch.full((1, 8, 8), -mean / std - margin))
    torch.testing.assert_close(box.high, torch.full((1, 8, 8), (1 - mean) / std + margin))
    assert box.contains(data.test[:]).all()


def test_the_box_of_points_is_around_each_coordinate():
    x = torch.tensor([[0.0, -3.0], [2.0, 5.0]])
    box = data_box(config_of("sampling.margin=0.5", name="toy"), Dataset("x", x, x))
    assert torch.equal(box.low, torch.tensor([-0.5, -3.5]))
    assert torch.equal(box.high, torch.tensor([2.5, 5.5]))


TINY = (
    "data.name=digits", "model.width=4", "model.latent=8", "model.projector=16", "model.embedding=8", "model.finer=14",
    "stage1.iterations=6", "stage2.iterations=6", "stage2.batch_size=20", "stage2.weights.agreement_walk=0.1",
    "stage2.weights.generative=0.1", "cluster.merge=[0.5]", "walk.steps=2", "walk.refresh=2", "sampling.buffer=40",
    "sampling.steps=2", "sampling.margin=0.25", "log_every=1",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["bytes", "floats"])
@pytest.mark.parametrize("initial", ["uniform", "normal"])
def test_training_on_stored_images_is_bit_for_bit_training_on_their_points(kind, initial):
    digits, config = load_digits(), config_of(*TINY, f"sampling.initial={initial}")
    stored = digits.train[:100].clone()
    stored[0], stored[1] = 0, 1  # with black and white in every pixel both have one box
    if kind == "bytes":
        stored = (stored * 255).round().to(torch.uint8)
    pixels = pixels_of(config.data)
    images = Dataset("digits", StoredImages(stored, pixels), StoredImages(stored[:20], pixels))
    points = Dataset("digits", pixels(stored), pixels(stored[:20]))
    runs, logs = [prepare(config, data=data) for data in (images, points)], ([], [])
    assert torch.equal(runs[0].box.low, runs[1].box.low)
    assert torch.equal(runs[0].box.high, runs[1].box.high)
    assert isinstance(runs[0].trainer.train, StoredImages)  # on its device, and still bytes
    assert runs[0].trainer.train.stored.dtype == stored.dtype
    for run, log in zip(runs, logs, strict=True):
        run.trainer.on_log = log.append
        train(run)
    assert logs[0] == logs[1]
    assert {record["stage"] for record in logs[0]} == {"stage1", "stage2"}
    assert sum("event" in record for record in logs[0]) == 1
    ours, theirs = (run.trainer.model.state_dict() for run in runs)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert torch.equal(runs[0].trainer.state.density["chains"].rows, runs[1].trainer.state.density["chains"].rows)


def prepared_with(train):
    return prepare(config_of(*SMALL, "model.clusters=2", name="digits"), data=Dataset("own", train, train))


SMALL = ("stage1.iterations=1", "stage2.iterations=1", "stage1.batch_size=8", "stage2.batch_size=8")


@pytest.mark.parametrize("scale", [(0.0, 1.0), (0.0, 255.0), (-0.1, 0.1)])
def test_images_on_another_scale_than_that_of_the_settings_are_told(scale):
    low, high = scale
    images = low + (high - low) * torch.rand(20, 1, 8, 8)
    with pytest.warns(UserWarning, match="pixels from .* black at -1 and white at 1.*mean=0.5, std=0.5"):
        prepared_with(images)


def test_images_on_the_scale_of_the_settings_are_not(recwarn):
    images = torch.rand(20, 1, 8, 8)
    prepared_with(2 * images - 1)
    prepared_with(StoredImages(images, Pixels(mean=0.5, std=0.5)))
    assert not recwarn.list
