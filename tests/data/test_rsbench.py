"""Tasks with reasoning shortcuts: which combinations occur, and how many namings that leaves."""

from itertools import permutations, product

import numpy as np
import pytest
import torch

from gedi.data import TASKS, task_dataset
from gedi.data.rsbench import draw_groups
from gedi.errors import UserError
from gedi.logic import Constraint


def rule_of(task):
    return Constraint.from_function(task.answer, [range(task.symbols)] * task.size)


@pytest.mark.parametrize(
    ("name", "maps", "swaps"), [("half", 3, 0), ("even-odd", 36, 1), ("math", 16, 1), ("xor", 2, 1)]
)
def test_how_many_maps_fit_is_known_beforehand(name, maps, swaps):
    task = TASKS[name]
    found = rule_of(task).shortcuts(data=task.occurring)
    assert (found.count, len(found.swaps), found.exact) == (maps, swaps, True)
    assert found.label_these(1).swaps == 0
    for swap in found.swaps:  # each keeps every answer
        assert all(task.answer(*(swap[d] for d in group)) == task.answer(*group) for group in task.occurring)


def test_exchanges_are_all_that_trying_every_permutation_finds():
    task = TASKS["math"]
    kept = [
        p
        for p in permutations(range(6))
        if all(task.answer(*(p[d] for d in group)) == task.answer(*group) for group in task.occurring)
    ]
    assert set(kept) == {tuple(range(6)), *rule_of(task).shortcuts(data=task.occurring).swaps}


@pytest.mark.parametrize(("name", "maps"), [("half", 1), ("even-odd", 1), ("math", 1), ("xor", 2)])
def test_all_combinations_leave_fewer(name, maps):
    task = TASKS[name].complete
    assert len(task.occurring) == task.symbols**task.size
    assert rule_of(task).shortcuts(data=task.occurring).count == maps


def test_half_and_even_odd_have_the_benchmarks_pairs():
    assert set(TASKS["half"].occurring) == {(0, 0), (0, 1), (1, 0), (2, 3), (3, 2), (2, 4), (4, 2)}
    even_odd = TASKS["even-odd"].occurring
    assert len(even_odd) == 16
    assert all(a % 2 == b % 2 and (b, a) in even_odd for a, b in even_odd)


@pytest.mark.parametrize(("name", "groups"), [("half", 100), ("even-odd", 100), ("math", 80), ("xor", 40)])
@pytest.mark.parametrize("every", [False, True])
def test_groups_are_of_the_task_and_no_image_comes_twice(name, groups, every):
    data = task_dataset("digits", name, groups, 7, np.random.default_rng(0), n_validation=5, every=every)
    task = TASKS[name].complete if every else TASKS[name]
    shown = data.train_labels[: groups * task.size].view(groups, task.size).tolist()
    assert {tuple(group) for group in shown} <= set(task.occurring)
    assert data.answers == [task.answer(*group) for group in shown]
    assert (data.groups, data.group_size, len(data.validation)) == (groups, task.size, 5 * task.size)
    assert len(data.train) == groups * task.size + 7
    assert int(data.train_labels.max()) < task.symbols
    assert int(data.test_labels.max()) == task.symbols - 1
    assert data.occurring == task.occurring
    labels = torch.arange(10).repeat(200)
    drawn = draw_groups(labels, task, groups, np.random.default_rng(1))
    assert len(torch.unique(drawn)) == groups * task.size


def test_combinations_are_alike_often():
    labels = torch.arange(10).repeat(3000)
    drawn = labels[draw_groups(labels, TASKS["half"], 3500, np.random.default_rng(0))]
    counts = torch.unique(drawn, dim=0, return_counts=True)[1]
    assert len(counts) == 7
    assert counts.min() > 400  # of 500 each
    assert counts.max() < 600


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(UserError, match=r"use at most about \d+ groups"):
        task_dataset("digits", "xor", 100, 0, np.random.default_rng(0))
    with pytest.raises(UserError, match="no image twice, but there are"):
        task_dataset("digits", "half", 10**15, 0, np.random.default_rng(0))
    with pytest.raises(UserError, match="must be >= 1"):
        task_dataset("digits", "half", 0, 0, np.random.default_rng(0))
    with pytest.raises(UserError, match="unknown task"):
        task_dataset("digits", "halves", 10, 0, np.random.default_rng(0))


def test_differences_and_parity_are_rules_of_any_size():
    assert TASKS["math"].answer(5, 3, 4) == (2, -1)
    assert [TASKS["xor"].answer(*bits) for bits in product(range(2), repeat=2)] == [0, 1, 1, 0]
