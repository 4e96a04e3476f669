"""Learn symbols from raw data without labels: clustering, density and logic in one network."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gedi import densities, logic, losses, nn, objectives, sampling, views
    from gedi.estimator import GEDI
    from gedi.fitted import Fitted
    from gedi.fitting import fit
    from gedi.naming import name_clusters

__version__ = "0.1.0"
__all__ = [
    "GEDI", "Fitted", "densities", "fit", "logic", "losses", "name_clusters", "nn", "objectives", "sampling", "views",
]  # fmt: skip
_FOUND_IN = {"GEDI": "estimator", "fit": "fitting", "Fitted": "fitted", "name_clusters": "naming"}


def __getattr__(name: str) -> Any:
    """A room is imported when it is first asked for: the program answers ``--help`` without torch."""
    if name in _FOUND_IN:
        return getattr(importlib.import_module(f"gedi.{_FOUND_IN[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"gedi.{name}")
    raise AttributeError(f"module 'gedi' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
