"""The data that a config names."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gedi.config import Config, DataConfig
from gedi.data import (
    CATALOGUE,
    TASKS,
    Dataset,
    ImageSet,
    Pixels,
    ScaledRows,
    Scaling,
    Shards,
    StoredImages,
    Wishes,
    addition_dataset,
    draw_toy,
    load_digits,
    load_folder,
    load_image_arrays,
    load_images,
    load_points,
    load_shards,
    spread,
    sum_dataset,
    task_dataset,
)
from gedi.errors import UserError
from gedi.random import Streams
from gedi.sampling import Box
from gedi.types import Points

_FEWEST = 5  # rows of a file: a fifth is for the test
_LOOKED_AT = 1000  # images, to tell their scale
_SLACK, _FLAT = 0.1, 0.6  # of the range from black to white: how far beyond it is no matter, and how much must be used


def load_data(config: Config, streams: Streams, data_dir: str | Path | None = None) -> Dataset:
    """The data of a config, train and test drawn apart."""
    d = config.data
    if d.name == "file":
        return _load_file(config, streams)
    if d.name == "shards":
        return _load_sharded(config, streams)
    if d.name in ("mnist-addition", "digits-addition"):
        source, rng = d.name.removesuffix("-addition"), streams.numpy("train")
        return addition_dataset(
            source,
            d.triplets,
            None if d.free == "all" else d.free,
            rng,
            data_dir,
            n_validation=d.validation,
            pixels=pixels_of(d),
        )
    if d.name in ("mnist-sum", "digits-sum"):
        source, rng = d.name.removesuffix("-sum"), streams.numpy("train")
        return sum_dataset(
            source, d.pairs, d.digits, _counted_free(d), rng, data_dir, n_validation=d.validation, pixels=pixels_of(d)
        )
    source, _, task = d.name.partition("-")
    if task in TASKS:
        rng = streams.numpy("train")
        return task_dataset(
            source,
            task,
            d.pairs,
            _counted_free(d),
            rng,
            data_dir,
            n_validation=d.validation,
            every=d.combinations == "all",
            pixels=pixels_of(d),
        )
    if d.name in CATALOGUE or d.name in ("digits", "images"):
        return image_dataset(config, load_image_set(d, data_dir), streams)
    options = {"circles": {"factor": d.factor}, "spirals": {"turns": d.turns}}.get(d.name, {})
    train, train_labels, truth = draw_toy(d.name, d.n_train, streams.numpy("train"), d.noise, **options)
    test, test_labels, _ = draw_toy(d.name, d.n_test, streams.numpy("test"), d.noise, **options)
    return Dataset(d.name, train, test, train_labels, test_labels, truth)


def _counted_free(d: DataConfig) -> int:
    """The number of free images, where not all others may be asked for."""
    if d.free == "all":
        raise UserError(f"data.free=all is of addition: for {d.name} give a number of images")
    return d.free


def load_image_set(d: DataConfig, data_dir: str | Path | None = None) -> ImageSet:
    """The images of a name, or of a folder or file of one's own."""
    if d.name == "digits":
        return load_digits()
    if d.name != "images":
        return load_images(d.name, data_dir)
    if d.path is None:
        raise UserError("data.name=images needs data.path, a folder of images or a .npy or .npz file")
    return load_folder(d.path, side=d.side) if Path(d.path).is_dir() else load_image_arrays(d.path)


def image_dataset(config: Config, images: ImageSet, streams: Streams) -> Dataset:
    """Images as a data set: kept as bytes, made into points batch by batch."""
    d = config.data
    stored, labels, source = images.train, images.train_labels, images.source
    chosen = _limited(d, len(stored), streams)
    if chosen is not None:
        stored = stored[chosen]
        labels = None if labels is None else labels[chosen]
        source = f"{source}; {d.limit} of its training images"
    if not len(images.test):
        raise UserError(f"{source}: at least 5 images are needed, of which a fifth is kept to judge by")
    pixels = pixels_of(d)
    return Dataset(
        images.name,
        StoredImages(stored, pixels),
        StoredImages(images.test, pixels),
        labels,
        images.test_labels,
        source=source,
        notes=(source,) if d.name == "images" else (),
        inputs=pixels,
    )


def _limited(d: DataConfig, n: int, streams: Streams) -> Tensor | None:
    """Which of n training points the config asks for; None: all of them."""
    if d.limit is None or d.limit >= n:
        return None
    return torch.from_numpy(np.sort(streams.numpy("limit").permutation(n)[: d.limit]))


def _load_sharded(config: Config, streams: Streams) -> Dataset:
    """Shards as a data set: nothing is read now but what has to be known of all rows."""
    d = config.data
    if d.path is None:
        raise UserError("data.name=shards needs data.path, a folder of shards or a pattern")
    held = load_shards(d.path, side=d.side)
    train, labels, source = held.train, held.train_labels, held.source
    chosen = _limited(d, len(train), streams)
    if chosen is not None:
        train, labels = train.take(chosen), None if labels is None else labels[chosen]
        source = f"{source}; {d.limit} of its training rows"

    def points(part: Shards) -> Points:
        return StoredImages(part, pixels_of(d)) if held.summary is None else ScaledRows(part, held.summary, d.columns)

    learnt, kept = points(train), points(held.test)
    inputs = learnt.scaling if isinstance(learnt, ScaledRows) else pixels_of(d)
    return Dataset(held.name, learnt, kept, labels, held.test_labels, source=source, inputs=inputs)


def pixels_of(d: DataConfig) -> Pixels:
    """How the config wants images to become points."""
    return Pixels(d.pad, d.channels, d.mean, d.std)


def warn_of_scale(data: Dataset, config: Config) -> None:
    """Tell of images of one's own that are darker, brighter or flatter than those that the settings are for.

    Walks, noise and brightness are lengths on the scale of pixels that the settings say; on another they train badly,
    which nothing else would show.
    """
    if len(data.train.shape) != 4 or isinstance(data.train, StoredImages):
        return
    low, high = pixels_of(config.data).range
    some = data.train[spread(len(data.train), _LOOKED_AT)].float()
    least, most = float(some.min()), float(some.max())
    slack = _SLACK * (high - low)
    if low - slack <= least and most <= high + slack and most - least > _FLAT * (high - low):
        return
    warnings.warn(
        f"images of data {data.name!r} have pixels from {least:.3g} to {most:.3g}, but the settings are for black at "
        f"{low:g} and white at {high:g}: give StoredImages(images, Pixels(mean={config.data.mean:g}, "
        f"std={config.data.std:g})) of images in [0, 1], or set data.mean and data.std to those that made these",
        stacklevel=4,
    )


def data_box(config: Config, data: Dataset) -> Box:
    """The region that samples live in: around the data, coordinate by coordinate, or all pixels alike."""
    margin = config.density.beyond
    if isinstance(data.train, StoredImages):
        low, high = data.train.pixels.range
        shape = data.train.shape[1:]
        return Box(torch.full(shape, low - margin), torch.full(shape, high + margin))
    if isinstance(data.train, ScaledRows):
        return Box(data.train.low - margin, data.train.high + margin)
    return Box.around(data.train[:], margin)


def _load_file(config: Config, streams: Streams) -> Dataset:
    """A file's rows, a fifth of them for the test; groups of rows stay together."""
    d = config.data
    if d.path is None:
        raise UserError("data.name=file needs data.path, the .npy, .npz, .csv, .tsv or .parquet file to read")
    wishes = Wishes(d.label, d.id, d.drop, d.delimiter, d.answer)
    table = load_points(d.path, wishes, d.limit, streams.numpy("limit") if d.limit else None)
    x, y = table.points, table.labels
    size = d.group_size
    if len(x) % size:
        raise UserError(f"{d.path} must hold whole groups: {len(x)} rows are no multiple of data.group_size={size}")
    if len(x) < _FEWEST * size:
        raise UserError(
            f"{d.path} must hold at least {_FEWEST} {'rows' if size == 1 else 'groups'}, got {len(x) // size}"
        )
    groups = torch.randperm(len(x) // size, generator=torch.Generator().manual_seed(streams.seed))
    order = (groups[:, None] * size + torch.arange(size)).flatten()
    kept = max(1, len(groups) // 5) * size
    test, train = (order[:kept], order[kept:]) if d.held_out else (torch.arange(len(x)),) * 2
    learnt = groups[kept // size :] if d.held_out else torch.arange(len(groups))
    answers = None if table.answers is None else _of_groups(table.answers, learnt.tolist(), size)
    scaling = Scaling.of(x[train], d.columns, d.components)
    x = scaling(x)
    return Dataset(
        d.path,
        x[train],
        x[test],
        None if y is None else y[train],
        None if y is None else y[test],
        group_size=size,
        groups=len(train) // size if size > 1 else 0,
        source="; ".join(table.notes),
        notes=table.notes,
        inputs=scaling,
        names=table.names,
        id=table.id,
        answers=answers,
    )


def _of_groups(answers: list[Any], groups: list[int], size: int) -> list[Any]:
    """What the rows of each group say of it: they must not contradict one another; None where none says anything."""
    found = []
    for group in groups:
        said = {answer for answer in answers[group * size : (group + 1) * size] if answer is not None}
        if len(said) > 1:
            raise UserError(
                f"the rows of a group must have one answer, got {', '.join(map(str, sorted(said, key=str)))} in rows "
                f"{group * size} to {(group + 1) * size - 1}"
            )
        found.append(next(iter(said), None))
    return found
