"""Tables to be clustered, measured and made, parted into rows that are learnt from and unseen ones."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets

_UNSEEN = 5  # one row in so many is not learnt from


class Table(NamedTuple):
    """Rows (n, d) and their classes (n,)."""

    rows: np.ndarray
    classes: np.ndarray


class Parted(NamedTuple):
    """Rows that are learnt from, and rows that are only predicted, each with their classes."""

    learnt: Table
    unseen: Table


def parted(table: Table, seed: int) -> Parted:
    """A table with a fifth of its rows, drawn by the seed, kept away.

    Example:
        >>> learnt, unseen = parted(DATA["circles, 200"](0), 0)
        >>> len(learnt.rows), len(unseen.rows)
        (200, 50)
    """
    order = np.random.default_rng(seed).permutation(len(table.rows))
    kept = np.sort(order[len(order) // _UNSEEN :]), np.sort(order[: len(order) // _UNSEEN])
    return Parted(*(Table(table.rows[own], table.classes[own]) for own in kept))


def _more(points: Any) -> Any:
    """As many rows as it takes to learn from so many of them."""
    return tuple(map(_more, points)) if isinstance(points, tuple) else points * _UNSEEN // (_UNSEEN - 1)


def _known(load: Callable[[], Any]) -> Callable[[int], Table]:
    def make(seed: int) -> Table:
        found = load()
        return Table(found.data, found.target)

    return make


def _moons(points: int | tuple[int, int]) -> Callable[[int], Table]:
    return lambda seed: Table(*datasets.make_moons(_more(points), noise=0.06, random_state=seed))


def _circles(points: int | tuple[int, int]) -> Callable[[int], Table]:
    return lambda seed: Table(*datasets.make_circles(_more(points), noise=0.05, factor=0.4, random_state=seed))


def _mixture(columns: int) -> Callable[[int], Table]:
    """Five groups whose distance, in their own widths, does not depend on the number of columns."""

    def make(seed: int) -> Table:
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(5, columns)) * 4.8 / np.sqrt(columns)
        classes = rng.integers(0, 5, _more(2000))
        return Table(centres[classes] + rng.normal(size=(len(classes), columns)) * 1.2 / np.sqrt(columns), classes)

    return make


def _turned_moons(seed: int) -> Table:
    rng = np.random.default_rng(seed)
    rows, classes = datasets.make_moons(_more(2000), noise=0.05, random_state=seed)
    plane = np.linalg.qr(rng.normal(size=(10, 10)))[0][:2]
    return Table(rows @ plane + 0.02 * rng.normal(size=(len(rows), 10)), classes)


def _unequal_blobs(seed: int) -> Table:
    return Table(
        *datasets.make_blobs(
            [_more(n) for n in (1000, 300, 100, 50)],
            centers=[[0, 0], [3, 0], [0, 3], [3, 3]],
            cluster_std=[0.5, 0.4, 0.3, 0.3],
            random_state=seed,
        )
    )


def _with_outliers(seed: int) -> Table:
    """Moons, and one row in a hundred anywhere in a box three times as wide; these are not counted as a class."""
    rows, classes = _moons(1000)(seed)
    rng = np.random.default_rng(seed)
    middle, half = (rows.max(axis=0) + rows.min(axis=0)) / 2, (rows.max(axis=0) - rows.min(axis=0)) / 2
    strange = middle + 3 * half * rng.uniform(-1, 1, (len(rows) // 100, 2))
    return Table(np.concatenate([rows, strange]), np.concatenate([classes, np.full(len(strange), -1)]))


def _stretched(seed: int) -> Table:
    rows, classes = _moons(1000)(seed)
    return Table(rows * [1, 100], classes)


#: Every table by its name, made for a seed.
DATA: dict[str, Callable[[int], Table]] = {
    "iris": _known(datasets.load_iris),
    "wine": _known(datasets.load_wine),
    "breast cancer": _known(datasets.load_breast_cancer),
    "digits, 64 columns": _known(datasets.load_digits),
    "5 Gaussians, 10 columns": _mixture(10),
    "5 Gaussians, 50 columns": _mixture(50),
    "5 Gaussians, 200 columns": _mixture(200),
    "moons in 10 columns": _turned_moons,
    "moons, 200": _moons(200),
    "moons, 300": _moons(300),
    "moons, 500": _moons(500),
    "circles, 200": _circles(200),
    "circles, 300": _circles(300),
    "circles, 500": _circles(500),
    "moons 80/20": _moons((800, 200)),
    "moons 90/10": _moons((900, 100)),
    "circles 80/20": _circles((800, 200)),
    "circles 90/10": _circles((900, 100)),
    "unequal blobs": _unequal_blobs,
    "moons, 1 % outliers": _with_outliers,
    "moons, an axis times 100": _stretched,
}
