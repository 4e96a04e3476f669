"""Tasks with reasoning shortcuts: groups of images of digits, some combinations of which occur, each with an answer.

They are those of rsbench that can be made from images of digits. A network that names digits wrongly can give every
right answer; how many namings can is known before training, since a task says which combinations occur.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gedi.data.addition import AS_STORED, digit_source, free_images
from gedi.data.dataset import Dataset
from gedi.data.pixels import Pixels, StoredImages
from gedi.errors import UserError, unknown


@dataclass(frozen=True)
class Task:
    """What is shown and what is told.

    Attributes:
        symbols: digits 0 to ``symbols - 1`` take part.
        occurring: the combinations of digits that occur in training, all equally often.
        answer: what is observed of a combination.
        about: in a sentence.
    """

    symbols: int
    occurring: tuple[tuple[int, ...], ...]
    answer: Callable[..., Any]
    about: str

    @property
    def size(self) -> int:
        """Images in a group."""
        return len(self.occurring[0])

    @property
    def complete(self) -> "Task":
        """The same where every combination occurs: most shortcuts are gone."""
        return replace(self, occurring=tuple(product(range(self.symbols), repeat=self.size)))


def _both_ways(*pairs: tuple[int, int]) -> tuple[tuple[int, ...], ...]:
    return tuple(sorted({*pairs, *((b, a) for a, b in pairs)}))


def total(*digits: Any) -> Any:
    """What the digits add up to.

    Example:
        >>> total(2, 3)
        5
    """
    return sum(digits[1:], start=digits[0])


def differences(*digits: Any) -> tuple[Any, ...]:
    """A system of linear equations: how much each digit is above the next.

    Example:
        >>> differences(7, 5, 9)
        (2, -4)
    """
    return tuple(a - b for a, b in pairwise(digits))


def parity(*digits: Any) -> Any:
    """1 where an odd number of ones was shown.

    Example:
        >>> parity(1, 0, 1, 1)
        1
    """
    return sum(digits[1:], start=digits[0]) % 2


_HALVES = (range(3), range(3, 6))

# Half and even-odd have the pairs of rsbench's code (halfmnist.py, shortcutmnist.py). Its systems of equations and its
# formulas are drawn anew for each benchmark; those here are examples with one other naming each.
TASKS: dict[str, Task] = {
    "half": Task(
        5,
        _both_ways((0, 0), (0, 1), (2, 3), (2, 4)),
        total,
        "MNAdd-Half: sums of two digits, but only 0 + 0, 0 + 1, 2 + 3 and 2 + 4",
    ),
    "even-odd": Task(
        10,
        _both_ways((0, 6), (2, 8), (4, 6), (4, 8), (1, 5), (3, 7), (1, 9), (3, 9)),
        total,
        "MNAdd-EvenOdd: sums of two digits, both even or both odd, eight pairs of them",
    ),
    "math": Task(
        6,
        tuple(group for half in _HALVES for group in product(half, repeat=3)),
        differences,
        "as MNMath: a system a - b = x, b - c = y with given x and y, all digits 0 to 2 or all 3 to 5",
    ),
    "xor": Task(
        2,
        tuple(product(range(2), repeat=4)),
        parity,
        "as MNLogic: whether an odd number of four images shows a one",
    ),
}


def draw_groups(labels: Tensor, task: Task, n: int, rng: np.random.Generator) -> Tensor:
    """Indices (n, size) of images whose labels are combinations that occur, no image twice.

    Args:
        labels: (m,) the digit of each image.
        task: which combinations occur; each is as likely.
        n: how many groups.
        rng: everything drawn follows from it.

    Example:
        >>> labels = torch.arange(10).repeat(100)
        >>> groups = labels[draw_groups(labels, TASKS["half"], 50, np.random.default_rng(0))]
        >>> {tuple(group) for group in groups.tolist()} <= set(TASKS["half"].occurring)
        True
    """
    if n < 1:
        raise UserError(f"the number of groups must be >= 1, got {n}")
    if n * task.size > len(labels):
        raise UserError(
            f"{n} groups of {task.size} need {n * task.size} images, no image twice, but there are {len(labels)}; use "
            f"fewer groups (data.pairs, data.validation)"
        )
    every = torch.tensor(task.occurring)
    wanted = every[torch.from_numpy(rng.integers(0, len(every), n))].flatten()  # (n * size,) digits
    chosen = torch.empty(len(wanted), dtype=torch.int64)
    share = torch.bincount(every.flatten(), minlength=task.symbols) / len(every)  # of each digit, in a group
    for digit in range(task.symbols):
        places, pool = (wanted == digit).nonzero()[:, 0], (labels == digit).nonzero()[:, 0]
        if len(places) > len(pool):
            most = int(min(float(len((labels == d).nonzero()) / share[d]) for d in range(task.symbols) if share[d] > 0))
            raise UserError(
                f"{n} groups need {len(places)} images of digit {digit}, no image twice, but there are {len(pool)}; "
                f"use at most about {int(0.9 * most)} groups (data.pairs, data.validation)"
            )
        chosen[places] = pool[torch.from_numpy(rng.permutation(len(pool))[: len(places)])]
    return chosen.view(n, task.size)


def task_dataset(
    source: str,
    name: str,
    n_groups: int,
    n_free: int,
    rng: np.random.Generator,
    data_dir: str | Path | None = None,
    *,
    n_validation: int = 0,
    every: bool = False,
    pixels: Pixels = AS_STORED,
) -> Dataset:
    """Images of a task: group after group with their answers, then free images of its digits.

    The test part is every test image of the task's digits. Labels are kept for diagnostics, for the supervised upper
    bound and for those few that a run asks for; learning by answers never sees them.

    Args:
        source: ``mnist`` (28 x 28, from files) or ``digits`` (8 x 8, comes with scikit-learn).
        name: one of :data:`TASKS`.
        n_groups: groups to train on.
        n_free: further images that are in no group.
        rng: everything drawn follows from it.
        data_dir: where the files of ``mnist`` are, see ``load_images``.
        n_validation: further groups, held out.
        every: all combinations occur, not only those of the task.
        pixels: how stored images become points.

    Example:
        >>> data = task_dataset("digits", "half", 100, 0, np.random.default_rng(0), n_validation=20)
        >>> data.train.shape, data.groups, len(data.validation_answers), sorted(set(data.answers))
        (torch.Size([200, 1, 8, 8]), 100, 20, [0, 1, 5, 6])
    """
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    task, images = TASKS[name].complete if every else TASKS[name], digit_source(source, data_dir)
    train_labels, test_labels = images.labels()
    drawn = draw_groups(train_labels, task, n_groups + n_validation, rng)
    groups, held_out = drawn[:n_groups], drawn[n_groups:]
    left_out = torch.cat([drawn.flatten(), (train_labels >= task.symbols).nonzero()[:, 0]])
    order = torch.cat([groups.flatten(), free_images(train_labels, left_out, n_free, rng)])
    tested = test_labels < task.symbols
    return Dataset(
        f"{source}-{name}",
        StoredImages(images.train[order], pixels),
        StoredImages(images.test[tested], pixels),
        train_labels[order],
        test_labels[tested],
        group_size=task.size,
        groups=n_groups,
        source=images.source,
        validation=StoredImages(images.train[held_out.flatten()], pixels) if n_validation else None,
        inputs=pixels,
        answers=_answers(task, train_labels[groups]),
        validation_answers=_answers(task, train_labels[held_out]) if n_validation else None,
        occurring=task.occurring,
    )


def _answers(task: Task, digits: Tensor) -> Sequence[Any]:
    return [task.answer(*group) for group in digits.tolist()]
