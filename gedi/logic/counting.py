"""How many shortcuts there are, where they are too many to list: a count within a stated share of the truth."""

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gedi.errors import UserError
from gedi.logic.arguments import check_count, shown
from gedi.logic.shortcut_search import Fits, completed_by, kinds_of, occurring, soonest_first

if TYPE_CHECKING:
    from gedi.logic.compiled import Compiled

_TOGETHER = 2_000_000  # images of one step of the walks
_MOST_WALKS = 4096  # at a time


class ShortcutCount(NamedTuple):
    """A number of symbol maps, the identity among them, and an interval that holds it.

    Attributes:
        maps: the number, or the estimate of it.
        low, high: the interval; of an exact count both are the number.
        exact: whether the count is.
        epsilon, delta: of an estimate: it is more than a share epsilon off in at most a share delta of all seeds.
        walks: how many were made.
    """

    maps: float
    low: float
    high: float
    exact: bool
    epsilon: float
    delta: float
    walks: int


def count_shortcuts(
    constraint: "Compiled",
    epsilon: float = 0.2,
    delta: float = 0.05,
    *,
    answers: Sequence[Any] | None = None,
    data: Any = None,
    networks: Sequence[Any] | None = None,
    listed: int = 20_000,
    seconds: float = 60.0,
    seed: int = 0,
) -> ShortcutCount:
    r"""The number of symbol maps that a constraint cannot tell from the truth, within a factor of 1 +- epsilon.

    Partial maps are listed symbol by symbol while they are few: if that comes to the end the count is exact. From there
    on random walks: a listed partial map, each with the same probability, then an image for one symbol after another,
    each of the :math:`n_s` that the groups allow with the same probability. The product of the shares
    :math:`n_s / c_s` of allowed images, 0 where a walk ends early, is between 0 and 1, and its mean is the number of
    maps over (listed partial maps times all images of the rest). Walks are made until these add up to

    .. math:: 1 + 4 (e - 2) (1 + \epsilon) \ln(2 / \delta) / \epsilon^2

    and that, over the number of walks, is within epsilon of the mean, relatively, with probability 1 - delta.

    Args:
        constraint: the rule.
        epsilon: the share by which the count may be off.
        delta: in how many of all cases it may be off by more.
        answers, data, networks: as :meth:`Constraint.shortcuts` takes them.
        listed: partial maps held at a time.
        seconds: after which it is given up: few maps among very many take very many walks.
        seed: of the walks.

    Source: the stopping rule is that of Dagum, Karp, Luby and Ross (An optimal algorithm for Monte Carlo estimation,
    2000); unbiased walks through a search tree are Knuth's (1975).

    Example:
        >>> from gedi.logic import sorted_
        >>> rule = sorted_(2, range(6))                              # every rising map keeps it: 11! / (5! 6!)
        >>> found = count_shortcuts(rule, epsilon=0.3, listed=100)
        >>> found.exact, found.low <= 462 <= found.high
        (False, True)
    """
    _check(constraint, epsilon, delta, seconds)
    check_count(listed, "listed")
    until = time.monotonic() + seconds
    kinds = kinds_of(constraint, networks)
    rows, fits, proven = occurring(constraint, answers, data, len(kinds.sizes) == 1)
    offset = np.array([kinds.first[kind] for kind in kinds.of_variable])
    tree = _Tree(np.unique(rows, axis=0) + offset, offset, kinds.of_symbol, kinds.first, kinds.sizes, fits)
    partial, depth = tree.listed(listed, until)
    if depth == len(tree.order):
        found = len(partial) if proven is None else sum(map(proven, partial))
        return ShortcutCount(found, found, found, True, 0.0, 0.0, 0)
    enough = 1 + 4 * (math.e - 2) * (1 + epsilon) * math.log(2 / delta) / epsilon**2
    rng = np.random.default_rng(seed)
    most = len(partial) * math.prod(tree.size(symbol) for symbol in tree.order[depth:])
    total, walks = 0.0, 0
    while True:
        shares = tree.walks(partial, depth, rng, proven)
        upto = np.cumsum(shares) + total
        if upto[-1] >= enough:
            walks += int(np.searchsorted(upto, enough)) + 1
            break
        total, walks = float(upto[-1]), walks + len(shares)
        if time.monotonic() > until:
            raise UserError(
                f"the count is out of reach: after {walks:,} walks in {seconds:g} seconds they speak of about "
                f"{total / walks * most:,.0f} maps, with no bound; allow more seconds, a larger epsilon or more listed"
            )
    maps = enough / walks * most
    return ShortcutCount(maps, maps / (1 + epsilon), maps / (1 - epsilon), False, epsilon, delta, walks)


def _check(constraint: Any, epsilon: Any, delta: Any, seconds: Any) -> None:
    from gedi.logic.compiled import Compiled

    if not isinstance(constraint, Compiled):
        raise UserError(f"count_shortcuts needs a Constraint, got {type(constraint).__name__}")
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not isinstance(value, float) or not 0 < value < 1:
            raise UserError(f"{name} must be between 0 and 1, got {shown(value)}")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise UserError(f"seconds must be a number above 0, got {shown(seconds)}")


class _Tree:
    """Partial maps: symbols in an order in which groups are soon complete; a group that breaks the rule ends a map."""

    def __init__(
        self, rows: np.ndarray, offset: np.ndarray, of: list[int], first: list[int], sizes: list[int], fits: Fits
    ) -> None:
        self.offset, self.of, self.first, self.sizes, self.fits = offset, of, first, sizes, fits
        self.order = soonest_first(rows, len(of))
        self.tests: list[np.ndarray] = []
        for place, symbol in enumerate(self.order):
            self.tests.append(completed_by(rows, self.order[:place], symbol))

    def size(self, symbol: int) -> int:
        """How many images a symbol may have."""
        return self.sizes[self.of[symbol]]

    def listed(self, most: int, until: float) -> tuple[np.ndarray, int]:
        """Partial maps of as many symbols as fit, and how many these are."""
        partial = np.arange(len(self.of), dtype=np.int16)[None]
        for depth, symbol in enumerate(self.order):
            if len(partial) * self.size(symbol) > most or time.monotonic() > until:
                return partial, depth
            grown, allowed = self._grown(partial, depth)
            partial = grown[allowed]
        return partial, len(self.order)

    def _grown(self, partial: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """Every image of one more symbol for each partial map, and which of them no group forbids."""
        symbol = self.order[depth]
        size = self.size(symbol)
        grown = np.repeat(partial, size, axis=0)
        grown[:, symbol] = self.first[self.of[symbol]] + np.tile(np.arange(size), len(partial))
        alive = np.arange(len(grown))
        for test in self.tests[depth]:
            alive = alive[self.fits(test - self.offset, grown[alive][:, test] - self.offset)]
            if len(alive) == 0:
                break
        allowed = np.zeros(len(grown), dtype=bool)
        allowed[alive] = True
        return grown, allowed

    def walks(
        self,
        partial: np.ndarray,
        depth: int,
        rng: np.random.Generator,
        proven: Callable[[np.ndarray], bool] | None,
    ) -> np.ndarray:
        """Random walks from the partial maps to the end: for each the product of the shares of images allowed."""
        widest = max(self.size(symbol) for symbol in self.order[depth:])
        n = min(_MOST_WALKS, max(16, _TOGETHER // widest))
        shares = np.ones(n)
        walker, at = np.arange(n), partial[rng.integers(0, len(partial), n)]
        for place in range(depth, len(self.order)):
            size = self.size(self.order[place])
            grown, allowed = self._grown(at, place)
            allowed = allowed.reshape(-1, size)
            number = allowed.sum(axis=1)
            shares[walker] *= number / size
            goes_on = number > 0
            if not goes_on.any():
                return shares
            # one of those allowed, each with the same probability
            chosen = (allowed * rng.random(allowed.shape)).argmax(axis=1)
            at = grown.reshape(-1, size, grown.shape[1])[np.arange(len(chosen)), chosen][goes_on]
            walker = walker[goes_on]
        if proven is not None:
            shares[walker[[not proven(image) for image in at]]] = 0.0
        return shares
