"""How much memory a file may take: a few bytes can claim, or unpack to, more than any machine has."""

import os
import re
from pathlib import Path

from gedi.errors import UserError

_NAME = "GEDI_MEMORY_LIMIT"
_SHARE = 4  # a quarter of the memory: data are copied once or twice before training begins
_UNKNOWN = 4 * 2**30  # where the system does not tell
_RATIO = 100  # times that real data shrink at most when they are packed
_SMALL = 2**28  # bytes that may shrink by any factor
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def memory_limit() -> int:
    """Bytes that the content of one file may take: ``GEDI_MEMORY_LIMIT`` (8G, 500M), else a quarter of free memory.

    Example:
        >>> os.environ["GEDI_MEMORY_LIMIT"] = "1.5G"
        >>> memory_limit()
        1610612736
        >>> del os.environ["GEDI_MEMORY_LIMIT"]
    """
    wish = os.environ.get(_NAME, "").strip()
    if not wish:
        return _free_memory() // _SHARE
    match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([KMGT]?)(?:i?B)?", wish, re.IGNORECASE)
    if match is None:
        raise UserError(f"{_NAME} must be a number of bytes such as 500M or 8G, got {wish!r}")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def check_size(size: int, name: str) -> None:
    """Refuse content of this number of bytes, before there is any, if it is more than memory should hold."""
    limit = memory_limit()
    if size > limit:
        raise UserError(
            f"{name} must fit in memory: it would take {in_words(size)}, the limit is {in_words(limit)}; "
            f"use shards (docs/shards.md), or set {_NAME} (such as 64G) if that is meant"
        )


def check_unpacked(packed: int, size: int, name: str) -> None:
    """Refuse what unpacks to more than memory should hold, or to so much more than it is that it is made to harm."""
    if size > max(_SMALL, _RATIO * packed) and not os.environ.get(_NAME):
        raise UserError(
            f"{name} must not unpack to more than {_RATIO} times its size: {in_words(packed)} claim to be "
            f"{in_words(size)}; set {_NAME} (such as {in_words(size, ceil=True)}) if that is meant"
        )
    check_size(size, name)


def in_words(size: int, ceil: bool = False) -> str:
    """So many bytes, for people.

    Example:
        >>> in_words(3 * 2**30), in_words(1500), in_words(7)
        ('3.0 GiB', '1.5 KiB', '7 bytes')
    """
    for unit in ("T", "G", "M", "K"):
        if size >= _UNITS[unit]:
            whole = -(-size // _UNITS[unit])
            return f"{whole}{unit}" if ceil else f"{size / _UNITS[unit]:,.1f} {unit}iB"
    return f"{size}" if ceil else f"{size} bytes"


def _free_memory() -> int:
    """Bytes that could be had now, on this machine and in this container."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 2**10)
        most, used = (Path(f"/sys/fs/cgroup/memory.{name}").read_text().strip() for name in ("max", "current"))
        if most != "max":
            found.append(max(0, int(most) - int(used)))
    except (OSError, ValueError):  # another system, or one without limits
        pass
    return min(found) if found else _UNKNOWN
