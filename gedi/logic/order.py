"""In which order a compiler should read variables: those that meet, side by side."""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee

_SWEEPS = 30  # of the forces; more hardly change the order
_LARGEST = 200  # variables of a clause whose pairs are still listed


def arranged(scopes: Sequence[Sequence[int]], n: int) -> list[int]:
    """The variables 0 to n - 1, in an order in which few are open at any time.

    A variable is open between the first and the last of those it shares a clause with, and a diagram grows with how
    many are open at once. The given order stays unless another has fewer.

    Args:
        scopes: the variables of each clause.
        n: how many there are.

    Example:
        >>> arranged([(0, 1), (1, 2), (2, 3)], 4)                    # a chain in order
        [0, 1, 2, 3]
        >>> arranged([(0, 2), (2, 1), (1, 3)], 4) in ([0, 2, 1, 3], [3, 1, 2, 0])
        True
    """
    listed = [np.unique(np.asarray(scope, dtype=np.int64)) for scope in scopes if len(scope) > 1]
    given = list(range(n))
    if not listed or n < 3:
        return given
    near = _matrix(listed, n)
    start = [reverse_cuthill_mckee(near, symmetric_mode=True).tolist(), given]
    return min([given, *start[:1], *(_by_forces(listed, order) for order in start)], key=lambda o: _open(listed, o))


def _matrix(scopes: Sequence[np.ndarray], n: int) -> coo_matrix:
    """Which variables meet in a clause; of a very long clause only neighbours in it."""
    rows, columns = [], []
    for scope in scopes:
        a, b = np.meshgrid(scope, scope) if len(scope) <= _LARGEST else (scope[:-1], scope[1:])
        rows.append(np.concatenate([a.ravel(), b.ravel()]))
        columns.append(np.concatenate([b.ravel(), a.ravel()]))
    i, j = np.concatenate(rows), np.concatenate(columns)
    return coo_matrix((np.ones(len(i), dtype=np.int8), (i, j)), shape=(n, n)).tocsr()


def _by_forces(scopes: Sequence[np.ndarray], order: Sequence[int]) -> list[int]:
    """Every variable moves to the middle of its clauses, again and again (FORCE, Aloul et al., 2003)."""
    n = len(order)
    member = np.concatenate(scopes)
    clause = np.repeat(np.arange(len(scopes)), [len(scope) for scope in scopes])
    length, met = np.bincount(clause), np.bincount(member, minlength=n)
    place = np.empty(n)
    place[np.asarray(order)] = np.arange(n)
    for _ in range(_SWEEPS):
        centre = np.bincount(clause, place[member]) / length
        pull = np.bincount(member, centre[clause], minlength=n)
        wanted = np.where(met > 0, pull / np.maximum(met, 1), place)
        place[np.argsort(wanted, kind="stable")] = np.arange(n)
    return np.argsort(place).tolist()  # type: ignore[no-any-return]


def _open(scopes: Sequence[np.ndarray], order: Sequence[int]) -> tuple[int, int]:
    """The most variables that are open at once, and how long they are open together."""
    n = len(order)
    place = np.empty(n, dtype=np.int64)
    place[np.asarray(order)] = np.arange(n)
    last = place.copy()  # of every variable, the last place it meets another
    for scope in scopes:
        np.maximum.at(last, scope, place[scope].max())
    change = np.bincount(place, minlength=n + 1) - np.bincount(last, minlength=n + 1)
    return int(np.cumsum(change).max()), int((last - place).sum())
