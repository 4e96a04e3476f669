"""Images in a folder of one's own."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gedi.data.cache import cached
from gedi.data.decode import check_side, kind_of, pixels_of
from gedi.data.images import ImageSet
from gedi.data.limits import check_size
from gedi.data.split import fifth
from gedi.errors import UserError

_SUFFIXES = (
    *(".png", ".jpg", ".jpeg", ".webp", ".avif", ".gif", ".bmp"),
    *(".tif", ".tiff", ".pbm", ".pgm", ".ppm", ".pnm"),
)


def load_folder(path: str | Path, side: int | None = None) -> ImageSet:
    """The images of a folder, by the names of their files.

    Sub-folders are classes, numbered in the order of their names; a folder without sub-folders has no labels. If
    there is a folder ``train`` it is the training part, and ``test`` beside it the test part; else a fifth is the
    test part, always the same. Images get three channels if any of them is in colour. Transparency is dropped.
    What was decoded is memory-mapped from a cache until a file changes, see ``load_images``.

    Args:
        path: the folder.
        side: images are cropped in the middle to a square and scaled to this; None: they must all have one size.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("cat/1.png", "cat/2.png", "dog/1.png"):
        ...         (Path(folder) / name).parent.mkdir(exist_ok=True)
        ...         Image.new("RGB", (40, 30)).save(Path(folder) / name)
        ...     images = load_folder(folder, side=8)
        >>> images.train.shape, images.train_labels
        (torch.Size([3, 3, 8, 8]), tensor([0, 0, 1]))
    """
    path = Path(path).expanduser()
    if not path.is_dir():
        raise UserError(f"a folder of images must exist, but {str(path)!r} is not there")
    check_side(side)
    is_split = (path / "train").is_dir()
    if not is_split and (path / "test").is_dir():
        raise UserError(f"{str(path)!r} has a folder test, so it must have a folder train; make one, or rename test")
    train = images_in(path / "train" if is_split else path)
    test = images_in(path / "test") if (path / "test").is_dir() else []
    name = path.resolve().name
    return cached(name, path, [*train, *test], lambda: _decode(name, path, train, test, side), f"side {side}")


def images_in(folder: Path) -> list[Path]:
    """Every image below a folder, in the order of the names; hidden files are none."""
    found = [
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in _SUFFIXES
        and file.is_file()
        and not any(piece.startswith(".") for piece in file.relative_to(folder).parts)
    ]
    if not found:
        raise UserError(f"{str(folder)!r} must hold images ({' '.join(_SUFFIXES)}), but holds none")
    return sorted(found, key=lambda file: file.relative_to(folder).parts)


def _decode(name: str, path: Path, train: list[Path], test: list[Path], side: int | None) -> ImageSet:
    is_split = (path / "train").is_dir()
    classes = _classes(path / "train" if is_split else path, train)
    known = sorted(set(classes or ()))
    y = _numbers(classes, known, train)
    y_test = _numbers(_classes(path / "test", test), known, test) if test and classes else None
    pixels, lost = _read([*train, *test], side)
    x = torch.from_numpy(pixels)
    if test:
        x, x_test = x[: len(train)], x[len(train) :]
    else:
        kept, held = fifth(len(x), y)
        x, x_test = x[kept], x[held]
        y, y_test = (None, None) if y is None else (y[kept], y[held])
    how = "its own split" if test else "a fifth for the test"
    source = "; ".join([f"folder {name}: {len(x):,} training and {len(x_test):,} test images, {how}", *lost])
    return ImageSet(name, x, y, x_test, y_test, False, source)


def _classes(folder: Path, files: Sequence[Path]) -> list[str] | None:
    """The first folder below, file by file; None if the images lie in ``folder`` itself."""
    inside = [file.relative_to(folder).parts for file in files]
    loose = [parts[0] for parts in inside if len(parts) == 1]
    if loose and len(loose) < len(inside):
        raise UserError(
            f"every image of {str(folder)!r} must be in the folder of its class, or none, but {loose[0]!r} is in no "
            "folder and others are; move it"
        )
    return None if loose else [parts[0] for parts in inside]


def _numbers(classes: list[str] | None, known: list[str], files: Sequence[Path]) -> Tensor | None:
    if classes is None:
        return None
    for kind, file in zip(classes, files, strict=True):
        if kind not in known:
            raise UserError(f"classes must be those of the training part, but {str(file)!r} is of class {kind!r}")
    return torch.tensor([known.index(kind) for kind in classes])


def _read(files: Sequence[Path], side: int | None) -> tuple[np.ndarray, list[str]]:
    """Images (n, c, h, w) uint8 of one size, and in words what of them was not looked at."""
    kinds = [kind_of(file, str(file)) for file in files]  # every file is verified
    channels = 1 if all(grey for grey, _ in kinds) else 3
    counted = Counter(words for _, lost in kinds for words in lost)
    said = [f"{words} ({count:,} files)" for words, count in counted.items()]
    if channels == 3 and (greys := sum(grey for grey, _ in kinds)):
        said.append(f"{greys:,} grey images among those in colour")
    first = pixels_of(files[0], str(files[0]), channels, side)
    check_size(len(files) * first.size, f"{len(files):,} images of {first.shape}")
    images = np.empty((len(files), *first.shape), np.uint8)
    for image, file in zip(images, files, strict=True):
        pixels = pixels_of(file, str(file), channels, side)
        if pixels.shape != first.shape:
            (h, w), (first_h, first_w) = pixels.shape[1:], first.shape[1:]
            raise UserError(
                f"images must have one size, but {str(file)!r} is {w} x {h} and {files[0].name!r} is "
                f"{first_w} x {first_h}; give a side to scale them to"
            )
        image[:] = pixels
    return images, said
