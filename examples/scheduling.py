"""A schedule: what people would like is a probability, what must hold is a rule, and the best plans are asked for.

python examples/scheduling.py
"""

from itertools import pairwise
from typing import Any

import torch

from gedi.logic import Constraint, count, for_all

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri")
PEOPLE = ("Ada", "Ben", "Cleo", "Dan")


def fair(*shifts: Any) -> Any:
    """Nobody twice in a row, nobody more than twice, and everybody at least once."""
    follows = for_all(pairwise(shifts), lambda a, b: a != b)
    for person in range(len(PEOPLE)):
        times = count(shifts, lambda who, person=person: who == person)
        follows = follows & (times >= 1) & (times <= 2)
    return follows


def rule() -> Constraint:
    """One person on each day."""
    return Constraint.from_predicate(fair, [range(len(PEOPLE))] * len(DAYS))


def wishes() -> torch.Tensor:
    """How much each person would like each day, as shares of the day, (days, people)."""
    liked = torch.tensor([[5, 1, 1, 1], [5, 1, 1, 1], [5, 2, 1, 1], [1, 4, 1, 1], [1, 1, 1, 6]])
    return (liked / liked.sum(dim=1, keepdim=True)).double()


def plans(best: int = 3, **given: int) -> list[tuple[str, ...]]:
    """The most probable plans, best first; ``x3=2`` fixes the third day."""
    log_p = wishes().log()[None]
    if given:  # what is known is certain
        for day, person in given.items():
            log_p[0, int(day[1:]) - 1] = torch.full((len(PEOPLE),), -torch.inf, dtype=log_p.dtype)
            log_p[0, int(day[1:]) - 1, person] = 0.0
    found = rule().k_best(log_p, best)
    return [tuple(PEOPLE[k] for k in plan) for plan in found.values[0].tolist() if plan[0] >= 0]


if __name__ == "__main__":
    print(
        f"{rule().n_solutions} plans are fair; each wish alone would give", [PEOPLE[k] for k in wishes().argmax(dim=1)]
    )
    for plan in plans():
        print("  ", dict(zip(DAYS, plan, strict=True)))
    print("with Cleo on Wednesday:", plans(1, x3=2)[0])
    share = rule().posterior(wishes().log()[None])[0]  # what the rule makes of each wish
    print("Ada on each day:", [round(float(p), 2) for p in share[:, 0]])
