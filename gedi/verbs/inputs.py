"""What the word DATA of a command means: a table, an array, a folder of images, a known data set."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from gedi.choosing import DRAWN as _DRAWN
from gedi.config import Config, parse
from gedi.data import Pixels, Wishes
from gedi.data.decode import pixels_of
from gedi.data.folder import images_in
from gedi.data.image_arrays import channels_first, layout_of
from gedi.data.limits import memory_limit
from gedi.data.npy import dimensions_of
from gedi.data.streaming import Part, Stream, stream_rows
from gedi.data.table import SUFFIXES
from gedi.errors import UserError, unknown
from gedi.fitted import Fitted
from gedi.names import KnownImages
from gedi.presets import preset
from gedi.settings import merge
from gedi.sources import load_image_set

_KNOWN = (*get_args(KnownImages), "digits")
_ARRAYS = (".npy", ".npz")
_AT_A_TIME = 256  # images


def table_wishes(
    label: str | None = None, id: str | None = None, drop: Sequence[str] | None = None, delimiter: str | None = None
) -> Wishes:
    """What was typed of a table; a tab may be written as ``\\t``."""
    return Wishes(label, id, tuple(drop or ()), "\t" if delimiter == "\\t" else delimiter)


def data_settings(data: str, wishes: Wishes, side: int | None) -> dict[str, Any]:
    """The settings that name some data."""
    if data in _KNOWN:
        _refuse_wishes(wishes, data)
        return {"name": data}
    path = Path(data).expanduser()
    if not path.exists():
        raise _nowhere(data)
    suffix = path.suffix.lower()
    if path.is_dir() or (suffix in _ARRAYS and dimensions_of(path) > 2):
        _refuse_wishes(wishes, data)
        return {"name": "images", "path": str(path), "side": side}
    if suffix not in (*SUFFIXES, *_ARRAYS):
        raise UserError(
            f"{path.name!r} must be a table or array ({' '.join((*SUFFIXES, *_ARRAYS))}), or a folder of images"
        )
    if suffix in _ARRAYS:
        _refuse_wishes(wishes, data)
    large = suffix != ".npz" and path.stat().st_size > memory_limit()
    return {
        "name": "file",
        "path": str(path),
        "label": wishes.label,
        "id": wishes.id,
        "drop": wishes.drop,
        "delimiter": wishes.delimiter,
        "limit": _DRAWN if large else None,
        "held_out": False,
    }


def provisional(settings: dict[str, Any], scaling: str, seed: int) -> Config:
    """Settings that read some data, before their shape is known."""
    of_images = settings["name"] in _KNOWN or settings["name"] == "images"
    base = preset("mnist" if of_images else "table")
    columns = {} if of_images else {"columns": scaling, "components": "auto"}
    return parse(merge(base, {"seed": seed, "data": {**settings, **columns}}))


def stream_for(
    fitted: Fitted, names: Sequence[str], id: str | None, data: str, wishes: Wishes, data_dir: Path | None = None
) -> Stream:
    """The points of DATA as a model takes them, in parts.

    Args:
        fitted: the model.
        names: of the columns it was trained on, if it knows.
        id: the column that named the rows then.
        data: as it was typed.
        wishes: what was typed of a table.
        data_dir: where known data sets are looked for first.
    """
    settings = data_settings(data, wishes, None)
    if settings["name"] == "file":
        if len(fitted.shape) != 1:
            raise UserError(f"the model is of images of shape {fitted.shape}, got the table {data!r}")
        return stream_rows(Path(settings["path"]), names, wishes, id)
    if len(fitted.shape) != 3:
        raise UserError(f"the model is of rows with {fitted.shape[0]} columns, got the images {data!r}")
    if settings["name"] == "images" and Path(settings["path"]).is_dir():
        files = images_in(Path(settings["path"]))
        parts = _of_folder(Path(settings["path"]), files, fitted.shape[0], fitted.config.data.side, _size(fitted))
        return Stream(parts, len(files), "file")
    return _stream_of_set(settings, data_dir)


def image_stream(data: str, side: int | None, data_dir: Path | None = None) -> Stream:
    """The images of DATA in colour, in parts, for a network that is no model of ours."""
    settings = data_settings(data, Wishes(), side)
    if settings["name"] == "file":
        raise UserError(f"a pretrained encoder takes images, got the table {data!r}")
    if settings["name"] == "images" and Path(settings["path"]).is_dir():
        files = images_in(Path(settings["path"]))
        return Stream(_of_folder(Path(settings["path"]), files, 3, side), len(files), "file")
    return _stream_of_set(settings, data_dir)


def _stream_of_set(settings: dict[str, Any], data_dir: Path | None) -> Stream:
    images = load_image_set(parse({"data": settings}).data, data_dir)
    return Stream(_of_set(images), len(images.train) + len(images.test), "image")


def _of_folder(
    folder: Path, files: Sequence[Path], channels: int, side: int | None, wanted: tuple[int, int] | None = None
) -> Iterator[Part]:
    for at in range(0, len(files), _AT_A_TIME):
        own = files[at : at + _AT_A_TIME]
        pixels = [pixels_of(file, str(file), channels, side) for file in own]
        wanted = wanted or pixels[0].shape[1:]
        for file, image in zip(own, pixels, strict=True):
            if image.shape[1:] != wanted:
                (h, w), (height, width) = image.shape[1:], wanted
                raise UserError(
                    f"images must have the size of those before, {width} x {height}, but {str(file)!r} is {w} x {h}; "
                    f"--side {height} of gedi fit scales them all"
                )
        yield Part([file.relative_to(folder).as_posix() for file in own], np.stack(pixels))


def _size(fitted: Fitted) -> tuple[int, int]:
    pad = fitted.inputs.pad if isinstance(fitted.inputs, Pixels) else 0
    _, height, width = fitted.shape
    return height - 2 * pad, width - 2 * pad


def _of_set(images: Any) -> Iterator[Part]:
    for part, held in (("train", images.train), ("test", images.test)):
        for at in range(0, len(held), _AT_A_TIME):
            own = held[at : at + _AT_A_TIME].numpy()
            first = channels_first(own, layout_of(own.shape, part)) if own.ndim == 3 else own
            yield Part([f"{part}/{number}" for number in range(at, at + len(own))], first)


def _refuse_wishes(wishes: Wishes, data: str) -> None:
    if wishes != Wishes():
        raise UserError(f"--label, --id, --drop and --delimiter are for tables (.csv, .tsv, .parquet), got {data!r}")


def _nowhere(data: str) -> UserError:
    if "/" not in data and "." not in data:
        return unknown("data set, and no file or folder:", data, _KNOWN)
    return UserError(f"DATA must be a file, a folder or a known data set, but {data!r} is not there")
