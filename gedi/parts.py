"""Parts that settings name: a part of ours by its kind, one from elsewhere by its import path.

A room of parts is a package with one part a file; the files are the list. Importing a stranger's module runs its code,
so a path is followed only into packages that were allowed by who runs the program (:func:`allow`).
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterable
from typing import Any, TypeVar

from gedi.errors import UserError, unknown

Part = TypeVar("Part")
_allowed: set[str] = set()


def allow(package: str) -> None:
    """Parts may be taken from a package from elsewhere: whoever says so trusts its code."""
    _allowed.add(package.partition(".")[0])


def kinds(room: str, base: type[Part]) -> dict[str, type[Part]]:
    """The parts of a room by their kind, in the order of their files' names.

    Example:
        >>> from gedi.objectives.objective import Objective
        >>> sorted(kinds("gedi.objectives", Objective))[:3]
        ['agreement', 'balance', 'barlow']
    """
    found: dict[str, type[Part]] = {}
    for module in pkgutil.iter_modules(importlib.import_module(room).__path__, f"{room}."):
        for part in _parts_in(module.name, base):
            found[_kind(part)] = part
    return found


def find(name: str, room: str, base: type[Part]) -> type[Part]:
    """The part of a kind, or the one at an import path ``package.module.Class``."""
    known = kinds(room, base)
    if name in known:
        return known[name]
    module, dot, cls = name.rpartition(".")
    word = room.rpartition(".")[2].removesuffix("s").replace("densitie", "density")
    if not dot:
        raise unknown(word, name, known)
    package = module.partition(".")[0]
    if package not in _allowed:
        raise UserError(
            f"{name!r} is code from elsewhere, and settings in a file run none unless you say so: "
            f"name it in a --set of your own, or call gedi.parts.allow({package!r}), if you trust it"
        )
    try:
        part = getattr(importlib.import_module(module), cls, None)
    except ImportError as error:
        raise UserError(f"{name!r} cannot be imported: {error}") from None
    if not (inspect.isclass(part) and issubclass(part, base)):
        raise UserError(f"{name!r} must be a subclass of {base.__module__}.{base.__name__}")
    return part


def path_of(part: type[Any], room: str) -> str:
    """What settings call a part: its kind if it is one of the room's, else its import path."""
    return _kind(part) if part.__module__.startswith(f"{room}.") else f"{part.__module__}.{part.__qualname__}"


def _parts_in(module: str, base: type[Part]) -> Iterable[type[Part]]:
    """Classes that a module defines and gives a kind."""
    for value in vars(importlib.import_module(module)).values():
        if inspect.isclass(value) and issubclass(value, base) and value.__module__ == module and "kind" in vars(value):
            yield value


def _kind(part: type[Any]) -> str:
    return str(part.kind)
