"""Logic: any finite constraint becomes a batched differentiable circuit."""

from gedi.logic.align import Alignment, align, decode
from gedi.logic.constraint import Constraint
from gedi.logic.counting import ShortcutCount, count_shortcuts
from gedi.logic.ensemble import ensemble, names_left_open
from gedi.logic.estimate import Estimate, estimate
from gedi.logic.expression import maximum, minimum
from gedi.logic.further import Further, further_rules
from gedi.logic.inferred import Assignments
from gedi.logic.quantifiers import count, exists, for_all, if_then_else
from gedi.logic.ready import all_different, at_most_k, exactly_k, sorted_, sums_to
from gedi.logic.shortcuts import Labels, Shortcuts

__all__ = [
    "Alignment",
    "Assignments",
    "Constraint",
    "Estimate",
    "Further",
    "Labels",
    "ShortcutCount",
    "Shortcuts",
    "align",
    "all_different",
    "at_most_k",
    "count",
    "count_shortcuts",
    "decode",
    "ensemble",
    "estimate",
    "exactly_k",
    "exists",
    "for_all",
    "further_rules",
    "if_then_else",
    "maximum",
    "minimum",
    "names_left_open",
    "sorted_",
    "sums_to",
]
