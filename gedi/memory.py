"""What would not fit into memory is refused before any of it is made."""

import os
from collections.abc import Mapping
from pathlib import Path

from gedi.errors import UserError

_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB", "EB")
_GROUPS = Path("/sys/fs/cgroup")


def refuse_what_cannot_fit(parts: Mapping[str, float]) -> None:
    """Raise if the parts together need more memory than there is; the largest of them is named.

    Args:
        parts: bytes that are needed at least, by the setting that asks for them.

    Example:
        >>> refuse_what_cannot_fit({"density.buffer=10": 80})
        >>> refuse_what_cannot_fit({"model.clusters=10": 320, "data.n_train=1000000000000": 1e13})
        Traceback (most recent call last):
        gedi.errors.UserError: this needs at least 10 TB of memory, most of it for data.n_train=1000000000000, ...
    """
    needed, there = sum(parts.values()), available_memory()
    if there is not None and needed > there:
        largest = max(parts, key=lambda name: parts[name])
        raise UserError(
            f"this needs at least {_in_words(needed)} of memory, most of it for {largest}, and {_in_words(there)} are "
            f"available: choose a smaller one"
        )


def available_memory() -> int | None:
    """Bytes that may still be taken, as the system and the limits of a container tell; None where nothing does."""
    found = [of() for of in (_of_system, _of_group)]
    return min((amount for amount in found if amount is not None), default=None)


def _of_system() -> int | None:
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, ValueError, LookupError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _of_group() -> int | None:
    """The limit of a container, less what it holds and cannot give back."""
    for limit, used, cached in (
        ("memory.max", "memory.current", "memory.stat"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
    ):
        try:
            most, now = (int((_GROUPS / name).read_text()) for name in (limit, used))
            held = dict(line.split() for line in (_GROUPS / cached).read_text().splitlines())
        except (OSError, ValueError):  # no such group, or "max": no limit
            continue
        return max(0, most - now + int(held.get("inactive_file", held.get("total_inactive_file", 0))))
    return None


def _in_words(amount: float) -> str:
    unit = 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.3g} {_UNITS[unit]}"
