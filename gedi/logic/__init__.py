"""Logic: any finite constraint becomes a batched differentiable circuit."""

from gedi.logic.align import Alignment, align, decode
from gedi.logic.constraint import Constraint
from gedi.logic.expression import maximum, minimum
from gedi.logic.ready import all_different, at_most_k, exactly_k, sorted_, sums_to
from gedi.logic.shortcuts import Shortcuts

__all__ = [
    "Alignment",
    "Constraint",
    "Shortcuts",
    "align",
    "all_different",
    "at_most_k",
    "decode",
    "exactly_k",
    "maximum",
    "minimum",
    "sorted_",
    "sums_to",
]
