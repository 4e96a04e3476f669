"""A training in about as many seconds as are given: fewer iterations where those of the settings would take longer."""

import time
from collections.abc import Callable
from dataclasses import replace

from gedi.training import Trainer

_FIRST = 10  # iterations of a leg by which its speed is told
_LEAST = 20  # iterations of a leg, whatever the time


def pace(trainer: Trainer, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
    """Train to the end in about ``seconds``; more iterations than the settings say are never made.

    Every leg gets a part of the time that is left, by its share of the iterations that are left; its speed is told by
    its first iterations, and then its length is settled, so that learning rates and weights still run their whole
    course. What comes out depends on how fast the machine is.
    """
    course, end = trainer.course, clock() + seconds
    while not course.over:
        at, leg = course.at, course.leg
        left = sum(each.stage.iterations for each in course.legs[at:])
        began = clock()
        part = max(0.0, end - began) * leg.stage.iterations / left
        first = min(_FIRST, leg.stage.iterations)
        trainer.fit(stop_after=first)
        if course.at == at:
            speed = first / max(clock() - began, 1e-9)
            length = max(_LEAST, min(leg.stage.iterations, int(speed * part)))
            course.change(replace(leg.stage, iterations=length))
            trainer.fit(stop_after=max(0, length - first))
        while course.at == at:  # the guard has undone some
            trainer.fit(stop_after=1)
