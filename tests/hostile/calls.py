"""A hostile call as data: what lies in the folder, what is typed or called, what must be said."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: What a file holds: text, bytes, or a function that makes it at the path it is given.
Content = str | bytes | Callable[[Path], object]


@dataclass(frozen=True)
class Typed:
    """A command that must be refused: exit code 2, one line that says what is wrong, nothing written.

    ``args`` are what follows ``gedi``, typed in a folder that holds ``files``; ``says`` is part of the line.
    """

    name: str
    args: str
    says: str
    files: Mapping[str, Content] = field(default_factory=dict)


@dataclass(frozen=True)
class Called:
    """A call from Python that must be refused with one line; ``call`` gets a folder of its own."""

    name: str
    call: Callable[[Path], Any]
    says: str
    error: type[Exception] = ValueError
