"""Tables with strangers: rows to learn from, rows like them that were held out, and rows from elsewhere."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets

from gedi.data import load_images

_TESTED = 2000  # images of each kind


class Case(NamedTuple):
    """One question: rows (n, d) to learn from, rows of the same kind, and strange ones.

    ``height`` is that of the images that the rows are; None: they are none.
    """

    train: np.ndarray
    usual: np.ndarray
    strange: np.ndarray
    height: int | None = None


#: The questions of a row of the table for a seed; image files are looked for in a folder first.
Make = Callable[[int, Path | None], Iterator[Case]]


def _left_out(load: Callable[[], Any], *classes: int) -> Make:
    """A class that nobody sees before, once for each of some; of the others one half is to learn from."""

    def make(seed: int, data_dir: Path | None) -> Iterator[Case]:
        found, rng = load(), np.random.default_rng(seed)
        for strange in classes:
            usual = found.data[rng.permutation(np.flatnonzero(found.target != strange))]
            half = len(usual) // 2
            yield Case(usual[:half], usual[half:], found.data[found.target == strange])

    return make


def _made(draw: Callable[[np.random.Generator], Case]) -> Make:
    return lambda seed, data_dir: iter([draw(np.random.default_rng(seed))])


def _skewed(rng: np.random.Generator) -> Case:
    """Six columns such as a thyroid's hormones: positive, with long tails; those of the ill are shifted."""
    mixed = np.eye(6) + 0.3 * rng.normal(size=(6, 6))
    shift = np.array([1.0, -1.0, -0.8, 0.0, -0.6, 0.3])
    healthy, ill = (np.exp(0.4 * rng.normal(size=(n, 6)) @ mixed + at) for n, at in ((3600, 0.0), (90, shift)))
    return Case(healthy[:1800], healthy[1800:], ill)


def _moons(rng: np.random.Generator) -> Case:
    """Strangers are anywhere in the box, on the moons too."""
    rows = datasets.make_moons(1500, noise=0.06, random_state=int(rng.integers(2**31)))[0]
    return Case(rows[:1000], rows[1000:], rng.uniform(rows.min(axis=0), rows.max(axis=0), (500, 2)))


def _near_and_wide(rng: np.random.Generator) -> Case:
    """A tight group and a wide one; strangers are near the tight one, nearer than fellows are in the wide one."""

    def draw(n: int) -> np.ndarray:
        return np.concatenate([0.2 * rng.normal(size=(n // 2, 5)), 6 + 1.5 * rng.normal(size=(n // 2, 5))])

    way = rng.normal(size=(200, 5))
    strange = way / np.linalg.norm(way, axis=1, keepdims=True) * rng.uniform(1.2, 2.0, (200, 1))
    return Case(draw(1000), draw(500), strange)


def _between(columns: int) -> Make:
    """Five groups; strangers stand halfway between two of them."""

    def draw(rng: np.random.Generator) -> Case:
        centres = rng.normal(size=(5, columns)) * 4.8 / np.sqrt(columns)
        one = rng.integers(0, 5, 300)
        middle = (centres[one] + centres[(one + rng.integers(1, 5, 300)) % 5]) / 2
        rows = np.concatenate([centres[rng.integers(0, 5, 3000)], middle])
        rows += 1.2 * rng.normal(size=rows.shape) / np.sqrt(columns)
        return Case(rows[:2000], rows[2000:3000], rows[3000:])

    return _made(draw)


def _off_a_plane(rng: np.random.Generator) -> Case:
    """Rows near three dimensions of twenty; strangers stand three times as far off."""
    plane = np.linalg.qr(rng.normal(size=(20, 20)))[0][:3]
    off = np.repeat([0.05, 0.15], [1500, 300])[:, None]
    rows = rng.normal(size=(1800, 3)) @ plane + off * rng.normal(size=(1800, 20))
    return Case(rows[:1000], rows[1000:1500], rows[1500:])


def _images(known: str, strange: str) -> Make:
    """Every training image of one set; test images of both."""

    def make(seed: int, data_dir: Path | None) -> Iterator[Case]:
        rng = np.random.default_rng(seed)
        own = load_images(known, data_dir)
        tests = [own.test, load_images(strange, data_dir).test]
        parts = [test[np.sort(rng.permutation(len(test))[:_TESTED])] for test in tests]
        train, usual, unknown = (part.reshape(len(part), -1).numpy() for part in (own.train, *parts))
        yield Case(train, usual, unknown, own.train.shape[-2])

    return make


#: Every row of the table by its name.
DATA: dict[str, Make] = {
    "breast cancer: malignant": _left_out(datasets.load_breast_cancer, 0),
    "digits: each class": _left_out(datasets.load_digits, *range(10)),
    "wine: each class": _left_out(datasets.load_wine, *range(3)),
    "iris: each class": _left_out(datasets.load_iris, *range(3)),
    "skewed columns": _made(_skewed),
    "moons": _made(_moons),
    "near a tight group": _made(_near_and_wide),
    "between 5 Gaussians: 10 columns": _between(10),
    "between 5 Gaussians: 50 columns": _between(50),
    "between 5 Gaussians: 200 columns": _between(200),
    "off a plane": _made(_off_a_plane),
    "MNIST: Fashion-MNIST": _images("mnist", "fashion-mnist"),
    "Fashion-MNIST: MNIST": _images("fashion-mnist", "mnist"),
}
