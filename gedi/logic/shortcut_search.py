"""The search for shortcuts: partial maps of symbols, dropped as soon as a group shows that they are none."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gedi.errors import UserError
from gedi.logic.arguments import items, shown
from gedi.logic.shortcuts import Shortcuts

if TYPE_CHECKING:
    from gedi.logic.compiled import Compiled

_LISTED = 200_000  # solutions worth listing
_SAMPLED = 5_000  # of more than that
_TABLE = 2_000_000  # assignments of which it is looked up whether, or to which answer, they fit
_WORK = 20_000_000  # partial maps x solutions that one step of the search may cost
#: Which rows of ``images``, (maps, variables), fit as the row of value numbers does that they are the image of.
Fits = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Kinds(NamedTuple):
    """Symbols of several domains, one after another.

    Attributes:
        of_variable: the kind of each variable.
        of_symbol: the kind of each symbol.
        first: the first symbol of each kind.
        sizes: how many symbols each kind has.
        names: what the symbols are called.
    """

    of_variable: list[int]
    of_symbol: list[int]
    first: list[int]
    sizes: list[int]
    names: list[Any]


def find_shortcuts(
    constraint: "Compiled",
    limit: int,
    answers: Sequence[Any] | None = None,
    data: Any = None,
    networks: Sequence[Any] | None = None,
) -> Shortcuts:
    """Every map that keeps what is known of the groups that occur, by a search over partial maps.

    Variables of one kind share one map: those of one domain, or of one network where ``networks`` says which. A
    partial map is dropped as soon as a group whose symbols are all mapped is mapped to what does not fit. With too
    many solutions to list, a sample of them prunes and a walk through the decision diagram decides.
    """
    kinds = kinds_of(constraint, networks)
    rows, fits, proven = occurring(constraint, answers, data, len(kinds.sizes) == 1)
    rows = np.unique(rows, axis=0)
    offset = np.array([kinds.first[kind] for kind in kinds.of_variable])
    symbols = rows + offset
    total = len(kinds.of_symbol)
    frontier = np.arange(total, dtype=np.int16)[None]
    known: list[int] = []
    exact = True
    for symbol in soonest_first(symbols, total):
        tests = completed_by(symbols, known, symbol)
        known.append(symbol)
        kind = kinds.of_symbol[symbol]
        size, first = kinds.sizes[kind], kinds.first[kind]
        room = max(1, max(1_000, _WORK // max(len(tests), 1)) // size)
        if len(frontier) > room:  # too many to follow: the identity and what may become a swap go first
            frontier, exact = _promising(frontier, known[:-1])[:room], False
        frontier = np.repeat(frontier, size, axis=0)
        frontier[:, symbol] = first + np.tile(np.arange(size), len(frontier) // size)
        for test in tests:
            frontier = frontier[fits(test - offset, frontier[:, test] - offset)]
    if proven is not None:
        frontier = frontier[[proven(image) for image in frontier]]
    frontier = _promising(frontier, list(range(total)))  # a swap, if there is one, is the second
    maps = tuple(tuple(kinds.names[k] for k in image) for image in frontier[: max(limit, 2)])
    several = tuple(kinds.of_symbol) if len(kinds.sizes) > 1 else ()
    return Shortcuts(tuple(kinds.names), maps, len(frontier), exact, several)


def groups_that_occur(constraint: "Compiled", data: Any) -> tuple[np.ndarray, Fits]:
    """Rows of value numbers that satisfy a constraint, those given or all, and what fits in the place of one."""
    rows, fits, proven = occurring(constraint, None, data, True)
    if proven is not None:
        raise UserError(f"a rule with more than {_LISTED:,} solutions is too large to go through; give data=")
    return np.unique(rows, axis=0), fits


def kinds_of(constraint: "Compiled", networks: Sequence[Any] | None) -> Kinds:
    """The symbols of a constraint by the maps that they share: one for each network, or else for each domain."""
    keys: list[Any] = list(constraint.domains)
    if networks is not None:
        if len(networks) != len(keys):
            raise UserError(f"networks must name one for each of {len(keys)} variables, got {shown(networks)}")
        keys = list(networks)
        for i, j in ((i, keys.index(key)) for i, key in enumerate(keys)):
            if constraint.domains[i] != constraint.domains[j]:
                raise UserError(f"variables of one network must have one domain, got another for variable {i} than {j}")
    different = list(dict.fromkeys(keys))
    domains = [constraint.domains[keys.index(key)] for key in different]
    sizes = [len(domain) for domain in domains]
    first = np.cumsum([0, *sizes[:-1]]).tolist()
    of_symbol = [kind for kind, size in enumerate(sizes) for _ in range(size)]
    names = [value for domain in domains for value in domain]
    return Kinds([different.index(key) for key in keys], of_symbol, first, sizes, names)


def occurring(
    constraint: "Compiled", answers: Sequence[Any] | None, data: Any, one_kind: bool
) -> tuple[np.ndarray, Fits, Callable[[np.ndarray], bool] | None]:
    """The groups that occur, what fits in their place, and, where they are a sample only, what proves a map."""
    if answers is not None and constraint.queries is None:
        raise UserError("answers say which of several queries occur, but this constraint has one; use data=")
    rows = None if data is None else _rows_of(constraint, data)
    if constraint.queries is not None:
        return _by_answers(constraint, answers, rows)
    diagram = constraint._diagram
    few = constraint.n_solutions <= _LISTED
    if not few and diagram is None:
        raise UserError(
            f"shortcuts of a constraint with {constraint.n_solutions:,} solutions needs its decision diagram: "
            f"make it by from_predicate or from_automaton"
        )
    if diagram is None:
        raise UserError("shortcuts needs a constraint over at most 100,000 solutions or with a decision diagram")

    def fits(row: np.ndarray, images: np.ndarray) -> np.ndarray:
        return diagram.accepts(images)

    if rows is not None:
        if not bool(diagram.accepts(rows).all()):
            wrong = rows[~diagram.accepts(rows)][0].tolist()
            named = [domain[k] for domain, k in zip(constraint.domains, wrong, strict=True)]
            raise UserError(f"data must be groups that satisfy the constraint, but {named} does not")
        return rows, fits, None
    if few:
        return constraint._assignments(_LISTED), fits, None
    if not one_kind:
        raise UserError(f"shortcuts over several domains lists solutions, at most {_LISTED:,}; give data=, what occurs")
    return _sample(diagram.levels, _SAMPLED), fits, lambda image: _included(diagram.levels, image)


def _by_answers(
    constraint: "Compiled", answers: Sequence[Any] | None, rows: np.ndarray | None
) -> tuple[np.ndarray, Fits, None]:
    """Of several queries, a map must keep the answer of every group that occurs."""
    sizes = constraint.sizes
    total = float(np.prod(np.array(sizes, dtype=np.float64)))
    if total > _TABLE:
        raise UserError(f"shortcuts of answers looks at every assignment, at most {_TABLE:,}, got {total:,.0f}")
    stride = np.cumprod([1, *sizes[:0:-1]])[::-1]
    table = np.full(int(total), -1, dtype=np.int32)
    for query in range(len(constraint.circuit.roots)):
        solved = constraint.circuit.solutions(sizes, query) @ stride
        if (table[solved] >= 0).any():
            raise UserError("shortcuts of answers needs queries that exclude one another, but two hold together")
        table[solved] = query
    if rows is None:
        rows = np.stack(np.unravel_index(np.flatnonzero(table >= 0), sizes), axis=1)
    elif (table[rows @ stride] < 0).any():
        raise UserError("data must be groups that have an answer, but some have none")
    if answers is not None:
        occurs = {k for k in constraint.numbered(list(answers)).tolist() if k >= 0}
        rows = rows[np.isin(table[rows @ stride], list(occurs))]
        if len(rows) == 0:
            raise UserError("no group has any of the answers: give answers that occur")

    def fits(row: np.ndarray, images: np.ndarray) -> np.ndarray:
        same: np.ndarray = table[images @ stride] == table[row @ stride]
        return same

    return rows, fits, None


def _rows_of(constraint: "Compiled", data: Any) -> np.ndarray:
    """Groups of values that occur, as value numbers."""
    from gedi.logic.compiled import numbers_of

    expected = f"data must be rows of {len(constraint.domains)} values, one for each variable"
    rows = [tuple(items(row, expected)) for row in items(data, expected)]
    if not rows:
        raise UserError(f"{expected}, got none")
    return numbers_of(rows, constraint.domains, constraint.variables).numpy()


def _promising(maps: np.ndarray, known: list[int]) -> np.ndarray:
    """The identity first, then what merges nothing so far, then the rest."""
    images = maps[:, known]
    ordered = np.sort(images, axis=1)
    merged = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    identity = (images == np.array(known, dtype=images.dtype)).all(axis=1)
    order = np.lexsort((merged, ~identity))
    return np.asarray(maps[order])


def soonest_first(rows: np.ndarray, size: int) -> list[int]:
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


def completed_by(rows: np.ndarray, known: list[int], symbol: int) -> np.ndarray:
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
