"""A set of shards: training and test part, labels, and what has to be known of all rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gedi.data.array_shards import ArrayShard, Summary
from gedi.data.decode import check_side
from gedi.data.image_arrays import check_kind, check_range, layout_of, numbered
from gedi.data.labels import check_labels
from gedi.data.npy import read_arrays
from gedi.data.shard_files import ShardFiles, find_shards
from gedi.data.shards import Shard, Shards
from gedi.data.split import fifth
from gedi.data.tar_shards import TarShard, open_tars
from gedi.data.values import MOST
from gedi.errors import UserError


@dataclass(frozen=True)
class ShardSet:
    """Train and test rows in shards, with their labels where there are any.

    Attributes:
        name: of their folder.
        train: (n, channels, height, width) uint8 or float in [0, 1], or a table (n, d) of floats.
        train_labels: (n,) int64, or None.
        test: (m, ...).
        test_labels: (m,) int64, or None.
        source: where it comes from, in words for the results.
        summary: of a table's training shards.
    """

    name: str
    train: Shards
    train_labels: Tensor | None
    test: Shards
    test_labels: Tensor | None
    source: str
    summary: Summary | None = None


def load_shards(path: str | Path, side: int | None = None) -> ShardSet:
    """A set that may be larger than memory: rows are read, and images decoded, when they are asked for.

    ==========  ==============================================================================================
    ``.tar``    WebDataset: ``000001.jpg`` (jpg, jpeg, png, webp), a label in ``000001.cls`` or as ``label`` in
                ``000001.json``; not compressed as a whole
    ``.npy``    ``x-0000.npy``, ...: images (n, h, w), (n, h, w, c) or (n, c, h, w), uint8 or float in [0, 1], or
                tables (n, d); labels (n,) of any kind in ``y-0000.npy``, ... beside them
    ==========  ==============================================================================================

    Shards called ``test-...`` are the test part; else a fifth of the shards, if there are five or more; else a
    fifth of the rows. It is always the same. Tar files are gone through once for the places of their images,
    float arrays once for the range of their values; what was found is kept until the file changes. Nothing in
    any of the files can run code, and nothing is unpacked to disk.

    Args:
        path: a folder of shards, or a pattern such as ``train-{0000..0127}.tar``.
        side: images of tar files are cropped in the middle to a square and scaled to this; None: all have one size.

    Example:
        >>> import tempfile
        >>> from gedi.data import write_shards
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = write_shards(np.zeros((60, 8, 8), np.uint8), folder, np.arange(60) % 3, per_shard=10)
        ...     held = load_shards(folder)
        >>> held.train.shape, held.test.shape, held.train_labels.bincount()
        (torch.Size([50, 1, 8, 8]), torch.Size([10, 1, 8, 8]), tensor([17, 16, 17]))
    """
    files = find_shards(path)
    if files.kind == ".tar":
        check_side(side)
        return _tar_set(files, side)
    if side is not None:
        raise UserError("data.side scales the images of tar files, arrays are taken as they are; leave it out")
    return _array_set(files)


def _tar_set(files: ShardFiles, side: int | None) -> ShardSet:
    shards, shape = open_tars([*files.train, *files.test], side)
    n = len(files.train)
    labels = _labels([_tar_labels(part) for part in (shards[:n], shards[n:])])
    return _set(files, shards[:n], shards[n:], shape, torch.uint8, labels)


def _array_set(files: ShardFiles) -> ShardSet:
    shards = [_laid_out(ArrayShard.open(path)) for path in (*files.train, *files.test)]
    first, n = shards[0], len(files.train)
    for shard in shards:
        if shard.shape[1:] != first.shape[1:] or shard.dtype != first.dtype:
            raise UserError(
                f"shards must hold rows of one shape and kind, but {str(shard.path)!r} holds {shard.shape[1:]} in "
                f"{shard.dtype} and {first.path.name!r} {first.shape[1:]} in {first.dtype}"
            )
    is_table, is_bytes = len(first.shape) == 2, first.dtype == np.uint8
    summaries = [shard.summary() for shard in shards] if is_table or not is_bytes else []
    for shard, summary in zip(shards, summaries, strict=False):
        if is_table and not np.isfinite(summary.mean).all():
            column = int(np.flatnonzero(~np.isfinite(summary.mean))[0])
            raise UserError(
                f"{str(shard.path)!r} must be finite, but column {column} holds NaN or infinity; fill it, or drop rows"
            )
        if is_table and max(-summary.low.min(), summary.high.max()) > MOST:
            column = int(np.maximum(-summary.low, summary.high).argmax())
            raise UserError(
                f"{str(shard.path)!r} must hold numbers up to {MOST:g}, which float32 can square, but column {column} "
                f"goes from {summary.low[column]:g} to {summary.high[column]:g}; mend it, drop rows or rescale it"
            )
        if not is_table:
            check_range(float(summary.low[0]), float(summary.high[0]), str(shard.path))
    labels = _labels([_array_labels(files, part) for part in (shards[:n], shards[n:])])
    dtype = torch.uint8 if is_bytes and not is_table else torch.float32
    made = _set(files, shards[:n], shards[n:], first.row_shape, dtype, labels)
    return replace(made, summary=Summary.joined(summaries[:n]) if is_table else None)


def _laid_out(shard: ArrayShard) -> ArrayShard:
    """A table of numbers, or images whose layout is known."""
    if len(shard.shape) == 2:
        if shard.dtype.kind not in "fiu":
            raise UserError(f"{str(shard.path)!r} must hold numbers, got {shard.dtype}; convert it")
        return shard
    layout = layout_of(shard.shape, str(shard.path))
    check_kind(shard.dtype, str(shard.path))
    return replace(shard, channels_last=layout == "hwc")


def _set(
    files: ShardFiles,
    train_files: Sequence[Shard],
    test_files: Sequence[Shard],
    shape: Sequence[int],
    dtype: torch.dtype,
    labels: tuple[Tensor | None, Tensor | None],
) -> ShardSet:
    train, y, y_test = Shards(train_files, shape, dtype), *labels
    if test_files:
        test = Shards(test_files, shape, dtype)
    else:
        kept, held = fifth(len(train), y)
        train, test = train.take(kept), train.take(held)
        y, y_test = (None, None) if y is None else (y[kept], y[held])
    count = f"{len(train_files) + len(test_files):,} {files.kind} files"
    source = f"shards {files.name}: {len(train):,} training and {len(test):,} test rows in {count}, {files.how}"
    return ShardSet(files.name, train, y, test, y_test, source)


def _tar_labels(shards: Sequence[TarShard]) -> np.ndarray | None:
    """The labels of one part, (n,) of text."""
    have = [len(shard.index.label) > 0 for shard in shards]
    _refuse_some([shard.path for shard in shards], have)
    return np.concatenate([shard.index.label for shard in shards]) if any(have) else None


def _array_labels(files: ShardFiles, shards: Sequence[ArrayShard]) -> np.ndarray | None:
    """The labels of one part, (n,) of any kind."""
    have = [shard.path in files.labels for shard in shards]
    _refuse_some([shard.path for shard in shards], have)
    if not any(have):
        return None
    read = []
    for shard in shards:
        path = files.labels[shard.path]
        read.append(check_labels(read_arrays(path, ("y",))["y"], len(shard), repr(str(path))))
    return np.concatenate(read)


def _refuse_some(paths: Sequence[Path], have: Sequence[bool]) -> None:
    if any(have) and not all(have):
        bare = paths[have.index(False)]
        raise UserError(f"every shard must have labels, or none, but {str(bare)!r} has none and others have")


def _labels(parts: Sequence[np.ndarray | None]) -> tuple[Tensor | None, Tensor | None]:
    """Labels as 0, 1, ...; text that is whole numbers is in their order, not in that of the letters."""
    try:
        train, test = (part if part is None or part.dtype.kind != "U" else part.astype(np.int64) for part in parts)
    except ValueError:
        train, test = parts
    return numbered(train, test)
