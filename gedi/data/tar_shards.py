"""Shards that are .tar files in the manner of WebDataset, images decoded when they are asked for.

Members that share a name up to its first dot are one sample: ``000001.jpg``, ``000001.cls``.
Defined at https://github.com/webdataset/webdataset.
"""

import io
import json
import re
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from gedi.data.decode import header_of, pixels_of
from gedi.data.mapped import Stamp, mapped, stamp_of
from gedi.data.remember import remembered
from gedi.errors import UserError

_IMAGES = ("jpg", "jpeg", "png", "webp")
_SAMPLE = re.compile(r"((?:.*/)?[^./][^/.]*)\.([^/]+)")
_SQUEEZED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_AGAIN = "get it again"
_MOST_LABEL = 2**20  # bytes
_NAME = 100  # bytes of a member's name, at the beginning of the block before its content


@dataclass(frozen=True)
class TarIndex:
    """Where the images of one ``.tar`` file are, in their order, found in one pass that decodes none of them.

    Attributes:
        offset, size: (n,) bytes of each image in the file.
        width, height: (n,) upright.
        grey: (n,) whether it has no colours.
        label: (n,) as text, or (0,) if there are no labels.
    """

    offset: np.ndarray
    size: np.ndarray
    width: np.ndarray
    height: np.ndarray
    grey: np.ndarray
    label: np.ndarray

    def __len__(self) -> int:
        return len(self.offset)


@dataclass(frozen=True)
class TarShard:
    """The images of one ``.tar`` file, (n, channels, height, width).

    Attributes:
        path, stamp: the file, as it was when it was indexed.
        index: where its images are.
        shape: of every image.
        side: what images are scaled to; None: they are of that shape.
    """

    path: Path
    stamp: Stamp
    index: TarIndex
    shape: tuple[int, int, int]
    side: int | None = None

    def __len__(self) -> int:
        return len(self.index)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Those images, decoded."""
        content = mapped(self.path, self.stamp)
        images = np.empty((len(rows), *self.shape), np.uint8)
        for image, row in zip(images, rows, strict=True):
            start = int(self.index.offset[row])
            header = content[start - tarfile.BLOCKSIZE : start]
            name = f"{header[:_NAME].rstrip(bytes(1)).decode(errors='replace')} in {self.path}"
            pixels = pixels_of(
                io.BytesIO(content[start : start + int(self.index.size[row])]), name, self.shape[0], self.side
            )
            if pixels.shape != self.shape:
                raise UserError(f"{name!r} must be (c, h, w) {self.shape}, got {pixels.shape}; take it away")
            image[:] = pixels
        return images


def index_tar(path: Path, stamp: Stamp) -> TarIndex:
    """The index of a file, from the cache if there is one of it as it is."""
    return TarIndex(**remembered(path, stamp, "tar index", lambda: vars(_index(path))))


def _index(path: Path) -> TarIndex:
    with path.open("rb") as file:
        begins = file.read(8)
        squeezed = next((kind for magic, kind in _SQUEEZED.items() if begins.startswith(magic)), None)
        if squeezed is not None:
            raise UserError(
                f"shards must not be compressed as a whole, but {str(path)!r} is, by {squeezed}: nothing could be read "
                "from the middle; unpack it (images stay compressed inside)"
            )
        file.seek(0)
        try:
            samples = _samples(file, path)
        except UserError:
            raise
        except Exception as error:  # a damaged file makes tarfile stumble in many ways
            raise UserError(f"{str(path)!r} must be a whole .tar file, but is not ({error}); {_AGAIN}") from None
    if not samples:
        raise UserError(f"{str(path)!r} must hold images ({' '.join(_IMAGES)}), but holds none")
    labels = [sample.label for sample in samples if sample.label is not None]
    if labels and len(labels) < len(samples):
        bare = next(sample.name for sample in samples if sample.label is None)
        raise UserError(f"every image of {str(path)!r} must have a label, or none, but {bare!r} has none")
    offset, size, width, height, grey = np.array(
        [(s.offset, s.size, s.width, s.height, s.grey) for s in samples], np.int64
    ).T
    return TarIndex(offset, size, width, height, grey.astype(bool), np.array(labels, np.str_))


@dataclass
class _Sample:
    """One image and its label, as the members of a file say."""

    name: str
    offset: int
    size: int
    width: int
    height: int
    grey: bool
    label: str | None = None


def _samples(file: IO[bytes], path: Path) -> list[_Sample]:
    """The images of an open file in their order, each with its label where there is one."""
    images: dict[str, _Sample] = {}
    labels: dict[str, str] = {}
    end = path.stat().st_size
    with tarfile.open(fileobj=file, mode="r:") as tar:
        for member in tar:
            name = f"{member.name} in {path}"
            if member.size < 0 or member.offset_data + member.size > end:
                raise UserError(f"{str(path)!r} must be a whole .tar file, but ends inside {member.name!r}; {_AGAIN}")
            match = _SAMPLE.fullmatch(member.name)
            if match is None or match[2].lower() not in (*_IMAGES, "cls", "json"):
                continue
            key, kind = match[1], match[2].lower()
            if not member.isreg() or member.issparse():
                raise UserError(f"{name!r} must be a plain file, but is none; {_AGAIN}")
            held = tar.extractfile(member)
            assert held is not None
            if kind not in _IMAGES:
                if member.size > _MOST_LABEL:
                    raise UserError(f"{name!r} must hold a label, but is {member.size:,} bytes; take it away")
                if (label := _label(held.read(), kind, name)) is not None:
                    labels[key] = label
            elif key in images:
                raise UserError(f"a sample must hold one image, but {name!r} is the second after {images[key].name!r}")
            else:
                images[key] = _Sample(member.name, member.offset_data, member.size, *header_of(held, name))
        _refuse_what_is_left(file, tar.offset, path)
    for key, label in labels.items():
        if key not in images:
            raise UserError(f"a label must have its image, but {key!r} in {str(path)!r} has none ({' '.join(_IMAGES)})")
        images[key].label = label
    return list(images.values())


def _label(content: bytes, kind: str, name: str) -> str | None:
    """A label as text: all of a .cls file, ``label`` of a .json file if it has that."""
    try:
        text = content.decode()
        if kind == "cls":
            return text.strip()
        held: Any = json.loads(text)
        label = held.get("label") if isinstance(held, dict) else None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name!r} must hold a label, but cannot be read ({error}); mend it or take it away") from None
    if label is not None and not isinstance(label, (int, str)):
        raise UserError(f"{name!r} must hold a label that is a number or text, got {label!r}")
    return None if label is None else str(label)


def _refuse_what_is_left(file: IO[bytes], offset: int, path: Path) -> None:
    """What follows the last member must be zeros: tarfile takes a damaged header, or no more file, for the end."""
    file.seek(offset)
    if not file.read(tarfile.BLOCKSIZE):
        raise UserError(f"{str(path)!r} must be a whole .tar file, but has no end mark, so it was cut short; {_AGAIN}")
    file.seek(offset)
    while part := file.read(2**20):
        if part.strip(b"\0"):
            raise UserError(f"{str(path)!r} must be one whole .tar file, but is damaged after byte {offset}; {_AGAIN}")


def open_tars(paths: Sequence[Path], side: int | None) -> tuple[list[TarShard], tuple[int, int, int]]:
    """Shards whose images have one shape, and that shape: three channels if any image is in colour.

    Args:
        paths: the files.
        side: images are cropped in the middle to a square and scaled to this; None: they must all have one size.
    """
    stamps = [stamp_of(path) for path in paths]
    indices = [index_tar(path, stamp) for path, stamp in zip(paths, stamps, strict=True)]
    channels = 1 if all(index.grey.all() for index in indices) else 3
    width, height = (int(size[0]) for size in (indices[0].width, indices[0].height))
    for path, index in zip(paths, indices, strict=True):
        other = np.flatnonzero((index.width != width) | (index.height != height))
        if side is None and len(other):
            found = f"{index.width[other[0]]} x {index.height[other[0]]}"
            raise UserError(
                f"images must have one size, but image {other[0]} of {str(path)!r} is {found} and the first of "
                f"{paths[0].name!r} is {width} x {height}; give data.side to scale them to"
            )
    shape = (channels, height, width) if side is None else (channels, side, side)
    return [TarShard(*each, shape, side) for each in zip(paths, stamps, indices, strict=True)], shape
