"""Before training: can the knowledge name the symbols at all?"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gedi.errors import UserError

if TYPE_CHECKING:
    from gedi.logic.compiled import Compiled

_LISTED = 200_000  # solutions worth listing
_SAMPLED = 5_000  # of more than that
_WORK = 20_000_000  # partial maps x solutions that one step of the search may cost
_SHOWN = 5


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
    """

    symbols: tuple[Any, ...]
    maps: tuple[tuple[Any, ...], ...]
    count: int
    exact: bool

    @property
    def swaps(self) -> list[tuple[Any, ...]]:
        """Listed maps that rename one to one, without the identity."""
        return [m for m in self.maps if m != self.symbols and len(set(m)) == len(m)]

    @property
    def collapses(self) -> list[tuple[Any, ...]]:
        """Listed maps that merge symbols."""
        return [m for m in self.maps if len(set(m)) < len(m)]

    @property
    def names_symbols(self) -> bool:
        """Whether balanced clusters can only be named rightly: there is no swap, and that is certain."""
        return self.exact and not self.swaps

    def __str__(self) -> str:
        lines = [f"{'' if self.exact else 'at least '}{self.count:,} symbol maps satisfy the constraint"]
        for kind, maps in (("swap", self.swaps), ("collapse", self.collapses)):
            lines += [f"  {kind}: {self._arrow(m)}" for m in maps[:_SHOWN]]
            if len(maps) > _SHOWN:
                lines.append(f"  {kind}: and {len(maps) - _SHOWN:,} more listed")
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


def find_shortcuts(constraint: "Compiled", limit: int) -> Shortcuts:
    """Every map that keeps the constraint, by a search over partial maps.

    All variables share one map, so they must have one domain. A partial map is dropped as soon as a solution
    whose symbols are all mapped is mapped outside the constraint. With too many solutions to list, a sample of
    them prunes and a walk through the decision diagram decides.
    """
    domain = constraint.domains[0]
    if any(other != domain for other in constraint.domains):
        raise UserError("shortcuts looks for one map of all symbols: every variable must have the same domain")
    size, diagram = len(domain), constraint._diagram
    few = constraint.n_solutions <= _LISTED
    if not few and diagram is None:
        raise UserError(
            f"shortcuts of a constraint with {constraint.n_solutions:,} solutions needs its decision diagram: "
            f"make it by from_predicate or from_automaton"
        )
    if diagram is None:
        raise UserError("shortcuts needs a constraint over at most 100,000 solutions or with a decision diagram")
    rows = constraint._assignments(_LISTED) if few else _sample(diagram.levels, _SAMPLED)
    rows = np.unique(rows, axis=0)
    order = _order(rows, size)

    frontier = np.zeros((1, size), dtype=np.int16)
    known: list[int] = []
    exact = True
    for symbol in order:
        tests = _newly_known(rows, known, symbol)
        known.append(symbol)
        room = max(1, max(1_000, _WORK // max(len(tests), 1)) // size)
        if len(frontier) > room:  # too many to follow: the identity and what may become a swap go first
            frontier, exact = _promising(frontier, known[:-1])[:room], False
        frontier = np.repeat(frontier, size, axis=0)
        frontier[:, symbol] = np.tile(np.arange(size), len(frontier) // size)
        for test in tests:
            frontier = frontier[diagram.accepts(frontier[:, test])]
    if not few:
        frontier = frontier[[_included(diagram.levels, image) for image in frontier]]
    frontier = _promising(frontier, list(range(size)))  # a swap, if there is one, is the second
    maps = tuple(tuple(domain[k] for k in image) for image in frontier[: max(limit, 2)])
    return Shortcuts(tuple(domain), maps, len(frontier), exact)


def _promising(maps: np.ndarray, known: list[int]) -> np.ndarray:
    """The identity first, then what merges nothing so far, then the rest."""
    images = maps[:, known]
    ordered = np.sort(images, axis=1)
    merged = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    identity = (images == np.array(known, dtype=images.dtype)).all(axis=1)
    order = np.lexsort((merged, ~identity))
    return np.asarray(maps[order])


def _order(rows: np.ndarray, size: int) -> list[int]:
    """Symbols in the order that completes solutions soonest."""
    uses = [set(row.tolist()) for row in rows[:20_000]]
    chosen: list[int] = []
    while len(chosen) < size:
        have = set(chosen)
        open_ = [use - have for use in uses]
        score = np.zeros(size)
        for rest in open_:
            for symbol in rest:
                score[symbol] += 10.0 ** (1 - len(rest))
        score[chosen] = -1
        chosen.append(int(score.argmax()))
    return chosen


def _newly_known(rows: np.ndarray, known: list[int], symbol: int) -> np.ndarray:
    """The solutions whose last unknown symbol is this one."""
    within = np.isin(rows, [*known, symbol]).all(axis=1)
    return np.asarray(rows[within & (rows == symbol).any(axis=1)])


def _sample(levels: tuple[np.ndarray, ...], n: int) -> np.ndarray:
    """Random solutions: a random way to the end of the diagram, every node of which has one."""
    rng = np.random.default_rng(0)
    node = np.zeros(n, dtype=np.int64)
    columns = []
    for level in levels:
        weights = (level[node] >= 0) * rng.random((n, level.shape[1]))
        value = weights.argmax(axis=1)
        columns.append(value)
        node = level[node, value]
    return np.stack(columns, axis=1)


def _included(levels: tuple[np.ndarray, ...], image: np.ndarray) -> bool:
    """Whether every solution stays one under the map: the diagram walked in pairs (solution, its image)."""
    pairs = {(0, 0)}
    for level in levels:
        following = set()
        for a, b in pairs:
            for value, target in enumerate(level[a]):
                if target >= 0:
                    mapped = level[b, image[value]]
                    if mapped < 0:
                        return False
                    following.add((int(target), int(mapped)))
        pairs = following
    return True
