"""The benchmark: ratios against bare passes, peers and textbook forms, measured side by side in one process."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gedi.bench.findings import Subject

#: Every subject by its name on the command line; a new one is a file with a function of its name, and a word here.
SUBJECTS = ("steps", "samplers", "losses", "logic", "growth", "processes")

__all__ = ["SUBJECTS", "subject"]


def subject(name: str) -> "Subject":
    """What measures a subject; only then are its peers imported."""
    measure: Subject = getattr(importlib.import_module(f"gedi.bench.{name}"), name)
    return measure
