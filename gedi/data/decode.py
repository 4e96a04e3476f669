"""One image from a file, or from bytes that were found inside another."""

import math
import warnings
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from PIL import Image, ImageOps

from gedi.errors import UserError

#: Only these are tried, whatever a file is called: some that Pillow knows would start other programs.
_FORMATS = ("PNG", "JPEG", "WEBP", "AVIF", "GIF", "BMP", "TIFF", "PPM")
_GREY = ("1", "L", "LA", "La")
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")  # grey of 16 bits
_ORIENTATION = 0x0112  # in Exif
_MOST_PIXELS = 100_000_000  # of one image; a few bytes can claim any number
_LYING = (5, 6, 7, 8)  # orientations that exchange width and height


class Header(NamedTuple):
    """What an image says of itself before it is decoded."""

    width: int
    height: int
    grey: bool


def check_side(side: int | None) -> None:
    """Refuse a side that no image can be scaled to."""
    most = math.isqrt(_MOST_PIXELS)
    if side is not None and side < 1:
        raise UserError(f"side must be >= 1, got {side}")
    if side is not None and side > most:
        raise UserError(f"side must be at most {most}, got {side}")


def header_of(file: IO[bytes], name: str) -> Header:
    """Size, upright, and colours of an image, without decoding it; ``name`` is for errors."""
    try:
        with _opened(file) as picture:
            # only where it has been read already: a PNG would be decoded to look for it
            turned = "exif" in picture.info and picture.getexif().get(_ORIENTATION) in _LYING
            width, height = picture.size[::-1] if turned else picture.size
            return Header(width, height, picture.mode in (*_GREY, *_DEEP))
    except Exception as error:
        raise _unreadable(name, error) from None


def kind_of(file: Path, name: str) -> tuple[bool, tuple[str, ...]]:
    """Whether a whole image has no colours, and what of it will not be looked at; ``name`` is for errors."""
    try:
        with _opened(file) as picture:
            lost = {
                "transparency is dropped": picture.has_transparency_data,
                "of moving pictures the first is taken": getattr(picture, "n_frames", 1) > 1,
                "16 bits become 8": picture.mode in _DEEP,
            }
            picture.verify()  # decoding alone does not miss the end of a PNG
            return picture.mode in (*_GREY, *_DEEP), tuple(words for words, so in lost.items() if so)
    except Exception as error:
        raise _unreadable(name, error) from None


def pixels_of(file: Path | IO[bytes], name: str, channels: int, side: int | None) -> np.ndarray:
    """One image (c, h, w) uint8, upright.

    Args:
        file: where it is.
        name: what errors call it.
        channels: 3 gives colours, 1 grey; transparency is dropped.
        side: it is cropped in the middle to a square and scaled to this; None leaves its size.

    Example:
        >>> import io
        >>> held = io.BytesIO()
        >>> Image.new("RGB", (40, 30), "red").save(held, "PNG")
        >>> pixels_of(held, "red.png", 3, 8).shape
        (3, 8, 8)
    """
    try:
        with _opened(file) as picture:
            upright = ImageOps.exif_transpose(picture)
            if upright.mode in _DEEP:
                values = np.asarray(upright).astype(np.int64)
                if values.min() < 0 or values.max() > 65535:
                    raise ValueError(f"its values go from {values.min()} to {values.max()}, not 0 to 65535")
                upright = Image.fromarray((values >> 8).astype(np.uint8))
            if upright.mode == "P":  # a palette may hold transparency, which has no way to RGB of its own
                upright = upright.convert("RGBA")
            plain = upright.convert("RGB" if channels == 3 else "L")
            if side is not None:
                plain = ImageOps.fit(plain, (side, side), Image.Resampling.BICUBIC)
            return np.asarray(plain).reshape(plain.height, plain.width, channels).transpose(2, 0, 1)
    except Exception as error:  # a damaged image makes Pillow stumble in many ways
        raise _unreadable(name, error) from None


def _opened(file: Path | IO[bytes]) -> Image.Image:
    """An image of which only the header has been read; one that would unpack to more than any photograph is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # what it warns of is refused
        picture = Image.open(file, formats=_FORMATS)
    if picture.width * picture.height > _MOST_PIXELS:
        picture.close()
        raise ValueError(f"it is {picture.width} x {picture.height}, more than {_MOST_PIXELS:,} pixels")
    return picture


def _unreadable(name: str, error: Exception) -> UserError:
    said = " ".join(str(error).split())[:200]
    return UserError(f"{name!r} must be an image, but cannot be read ({said}); mend it or take it away")
