"""Learn symbols from raw data without labels: clustering, density and logic in one network."""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gedi import logic, losses, nn, sampling, views

__version__ = "0.1.0"
__all__ = ["logic", "losses", "nn", "sampling", "views"]


def __getattr__(name: str) -> ModuleType:
    """A room is imported when it is first asked for: the program answers ``--help`` without torch."""
    if name in __all__:
        return importlib.import_module(f"gedi.{name}")
    raise AttributeError(f"module 'gedi' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
