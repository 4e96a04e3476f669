"""How much a compilation may take."""

import math
import time
from dataclasses import dataclass
from typing import TypedDict

from gedi.errors import UserError

GIGABYTE = 1_000_000_000


@dataclass(frozen=True)
class Limits:
    """What a compilation must stay within; infinity lifts a limit.

    Attributes:
        seconds: wall-clock time.
        size: nodes of the largest structure on the way.
        gigabytes: memory beyond what the process has already.
    """

    seconds: float = 60.0
    size: float = 1_000_000
    gigabytes: float = 2.0

    def __post_init__(self) -> None:
        wishes = {"time_limit": self.seconds, "size_limit": self.size, "memory_limit": self.gigabytes}
        for name, value in wishes.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise UserError(f"{name} must be a number, at least 0, got {value!r}; math.inf lifts it")


class LimitWishes(TypedDict, total=False):
    """The limits as keywords, for what hands them on."""

    time_limit: float
    size_limit: float
    memory_limit: float


class Budget:
    """A compilation under way: asked now and then whether it is still within its limits.

    Args:
        limits: what it must stay within.
        advice: what makes the rule cheaper, for the message.
    """

    def __init__(self, limits: Limits, advice: str) -> None:
        self.limits = limits
        self.advice = advice
        self.began = time.monotonic()

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.began + self.limits.seconds - time.monotonic()

    def check(self, size: float) -> None:
        """Raise if time or size ran out."""
        if size > self.limits.size:
            raise self.too_large()
        self.check_time()

    def check_time(self) -> None:
        """Raise if the time ran out."""
        if self.left < 0:
            raise self.too_long()

    def check_memory(self, numbers: float) -> None:
        """Raise if this number of numbers of 8 bytes are too much to hold."""
        if 8 * numbers > self.limits.gigabytes * GIGABYTE:
            raise self.too_much_memory()

    def too_large(self) -> UserError:
        """What to say when the size ran out."""
        return UserError(
            f"the constraint is too large to compile: more than {self.limits.size:,} nodes; {self.advice}, "
            f"or raise size_limit"
        )

    def too_long(self) -> UserError:
        """What to say when the time ran out."""
        return UserError(
            f"the constraint did not compile within {self.limits.seconds:g} s; {self.advice}, or raise time_limit"
        )

    def too_much_memory(self) -> UserError:
        """What to say when the memory ran out."""
        room = self.limits.gigabytes
        within = f"within {room:g} GB of memory" if room < math.inf else "in the memory there is"
        return UserError(f"the constraint did not compile {within}; {self.advice}, or raise memory_limit")
