"""Reasoning shortcuts: other meanings of the symbols under which a constraint holds just as well."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gedi.logic.arguments import check_count

_SHOWN = 5


class Labels(NamedTuple):
    """Symbols worth a label, and what they leave open.

    Attributes:
        symbols: an example of each should be labelled, the most telling first.
        maps: how many listed maps are left once these symbols are called by their names, the identity among them.
        swaps: how many of those rename one to one.
    """

    symbols: tuple[Any, ...]
    maps: int
    swaps: int


@dataclass(frozen=True)
class Shortcuts:
    r"""The symbol maps f that a constraint cannot tell from the truth: :math:`C(y) \Rightarrow C(f(y))` for all y.

    The identity is always one. A network that learns another one satisfies the constraint just as well and is
    wrong: a *swap* renames symbols one to one, a *collapse* merges some. Clustering rules out collapses; only
    knowledge without swaps can name the clusters.

    Attributes:
        symbols: what is mapped.
        maps: the maps found, each a tuple of images in the order of ``symbols``; the identity comes first.
        count: how many there are, or a lower bound.
        exact: whether count is exact.
        kinds: which kind each symbol is of, where a map of its own belongs to each of several domains; none: all one.
    """

    symbols: tuple[Any, ...]
    maps: tuple[tuple[Any, ...], ...]
    count: int
    exact: bool
    kinds: tuple[int, ...] = ()

    @property
    def swaps(self) -> list[tuple[Any, ...]]:
        """Listed maps that rename one to one, without the identity."""
        return [m for m in self.maps if m != self.symbols and not self._merges(m)]

    @property
    def collapses(self) -> list[tuple[Any, ...]]:
        """Listed maps that merge symbols."""
        return [m for m in self.maps if self._merges(m)]

    @property
    def names_symbols(self) -> bool:
        """Whether balanced clusters can only be named rightly: there is no swap, and that is certain."""
        return self.exact and not self.swaps

    def __str__(self) -> str:
        maps = "symbol map satisfies" if self.count == 1 else "symbol maps satisfy"
        lines = [f"{'' if self.exact else 'at least '}{self.count:,} {maps} the constraint"]
        for kind, found in (("swap", self.swaps), ("collapse", self.collapses)):
            lines += [f"  {kind}: {self._arrow(m)}" for m in found[:_SHOWN]]
            if len(found) > _SHOWN:
                lines.append(f"  {kind}: and {len(found) - _SHOWN:,} more listed")
        if self.names_symbols:
            lines.append(
                "the constraint names the symbols"
                + (", once clustering rules the collapses out" if self.collapses else "")
            )
        elif self.swaps:
            lines.append("the constraint cannot name the symbols: some swap satisfies it too")
        else:
            lines.append("the search was cut short: whether a swap satisfies it is not known")
        return "\n".join(lines)

    def _arrow(self, images: tuple[Any, ...]) -> str:
        return ", ".join(f"{a}->{b}" for a, b in zip(self.symbols, images, strict=True) if a != b)

    def _merges(self, images: tuple[Any, ...]) -> bool:
        kinds = self.kinds or (0,) * len(images)
        return len(set(zip(kinds, images, strict=True))) < len(images)

    def label_these(self, k: int) -> Labels:
        """The k symbols whose labels leave the fewest other maps: swaps first, since clustering rules out collapses.

        Chosen one after another, each the best beside those before it, among the maps that are listed.

        Example:
            >>> from gedi.logic import all_different
            >>> all_different(4, range(4)).shortcuts().label_these(3)   # the fourth follows
            Labels(symbols=(0, 1, 2), maps=1, swaps=0)
        """
        check_count(k, "k")
        images = np.array([[self.symbols[i] == x for i, x in enumerate(m)] for m in self.maps])  # kept in place?
        merging = np.array([self._merges(m) for m in self.maps])
        left = np.ones(len(images), dtype=bool)
        chosen: list[int] = []
        for _ in range(min(k, len(self.symbols))):
            open_ = [
                ((left & kept & ~merging).sum(), (left & kept).sum(), i)
                for i, kept in enumerate(images.T)
                if i not in chosen
            ]
            best = min(open_)[2]
            chosen.append(best)
            left &= images[:, best]
        swaps = int((left & ~merging).sum()) - 1  # the identity is no swap
        return Labels(tuple(self.symbols[i] for i in chosen), int(left.sum()), swaps)
