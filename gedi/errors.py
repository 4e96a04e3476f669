"""The form of a message: what must hold, what was given, what to do."""

import difflib
from collections.abc import Iterable

_LONGEST = 80  # characters of a wrong name that are repeated


class UserError(ValueError):
    """Something the user gave cannot work; the message is one line and says what to do."""


class DivergenceError(RuntimeError):
    """Training produced a number that is not finite; the message names the term and the moment."""


class EndedElsewhere(UserError):
    """Another process of the run has failed and said why; this one only ends."""


class ProcessLost(RuntimeError):
    """Another process of the run is gone, without a word."""


def unknown(kind: str, given: str, valid: Iterable[str], hint: str | None = None) -> UserError:
    """An error for a name that does not exist, with the nearest one that does.

    Args:
        kind: what the name stands for ("preset", "method", "key").
        given: the name as it was given.
        valid: every name that would have been accepted.
        hint: a valid name known to be meant, when spelling alone would not find it.

    Example:
        >>> print(unknown("preset", "cirlces", ["circles", "moons"]))
        unknown preset 'cirlces': did you mean 'circles'? Valid: circles, moons
    """
    names = sorted(valid)
    given = given if len(given) <= _LONGEST else f"{given[:_LONGEST]}..."
    near = [hint] if hint else difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    guess = f"did you mean {near[0]!r}? " if near else ""
    known = f"Valid: {', '.join(names)}" if names else "there is none here"
    return UserError(f"unknown {kind} {given!r}: {guess}{known}")
