"""Which further rule would tell apart what a rule leaves open."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gedi.errors import UserError
from gedi.logic.shortcut_search import groups_that_occur
from gedi.logic.shortcuts import Shortcuts

if TYPE_CHECKING:
    from gedi.logic.compiled import Compiled


class Further(NamedTuple):
    """What a further rule leaves.

    Attributes:
        name: of the rule.
        maps: how many of the listed maps are left, the identity among them.
        swaps: how many of those rename one to one.
    """

    name: str
    maps: int
    swaps: int


def further_rules(
    found: Shortcuts, candidates: Mapping[str, "Compiled"], data: Mapping[str, Any] | None = None
) -> list[Further]:
    """What each of some further rules would leave of the other namings, the most telling first.

    A map stays only if it keeps the further rule too: every group that satisfies it still does, or keeps its answer.

    Args:
        found: of the rule there is, ``constraint.shortcuts(...)``.
        candidates: rules that could be known, or asked for, besides; each over any number of variables of the same
            symbols.
        data: of some of them the groups of values that would occur; of the others every group that satisfies them.

    Example:
        >>> from gedi.logic import Constraint, sorted_
        >>> near = Constraint.from_predicate(lambda a, b: abs(a - b) == 1, [range(4)] * 2)
        >>> open_ = near.shortcuts()                                        # forwards or backwards, and folded together
        >>> parity = Constraint.from_predicate(lambda a, b: (a + b) % 2 == 1, [range(4)] * 2)
        >>> [rule[::2] for rule in further_rules(open_, {"odd sum": parity, "order": sorted_(2, range(4))})]
        [('order', 0), ('odd sum', 1)]
    """
    if found.kinds:
        raise UserError("further rules are looked for where all variables have one domain, got several")
    unknown = set(data or {}) - set(candidates)
    if unknown:
        raise UserError(f"data must be of the candidates {', '.join(candidates)}, got {', '.join(sorted(unknown))}")
    place = {symbol: k for k, symbol in enumerate(found.symbols)}
    maps = np.array([[place[image] for image in m] for m in found.maps])
    swaps = np.array([len(set(m)) == len(m) for m in maps.tolist()]) if len(maps) else np.zeros(0, dtype=bool)
    left = []
    for name, rule in candidates.items():
        if set(rule.domains) != {found.symbols}:
            raise UserError(f"candidate {name!r} must be over the symbols {found.symbols}, got {rule.domains}")
        rows, fits = groups_that_occur(rule, None if data is None else data.get(name))
        kept = np.arange(len(maps))
        for row in rows:
            kept = kept[fits(row, maps[kept][:, row])]
        left.append(Further(name, len(kept), int(swaps[kept].sum()) - 1))  # the identity is no swap
    return sorted(left, key=lambda rule: (rule.swaps, rule.maps))
