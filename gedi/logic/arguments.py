"""What a caller gives to make a constraint, checked: a mistake is named where it is made."""

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from gedi.errors import UserError
from gedi.logic.diagram import Limits

Domain = Sequence[Any]
_VALUES = 100_000  # of one variable


def whole(x: Any) -> TypeGuard[int]:
    """Whether it is a whole number; True and False are none."""
    return isinstance(x, int) and not isinstance(x, bool)


def limits_of(seconds: Any, size: Any) -> Limits:
    """Limits that can be compared with."""
    for name, given in (("time_limit", seconds), ("size_limit", size)):
        if isinstance(given, bool) or not isinstance(given, int | float) or not given >= 0:  # NaN is not
            raise UserError(f"{name} must be a number, at least 0, got {given!r}")
    return Limits(seconds, size)


def check_limit(limit: Any) -> None:
    """A number of things to list."""
    if not whole(limit) or limit < 0:
        raise UserError(f"limit must be a whole number, at least 0, got {limit!r}")


def checked_step(step: Callable[[Any, Any], Hashable]) -> Callable[[Any, Any], Hashable]:
    """The step of an automaton, whose states must be told apart."""
    if not callable(step):
        raise UserError(f"step must be a function (state, value) -> next state, got {step!r}")

    def checked(state: Any, value: Any) -> Hashable:
        try:
            following = step(state, value)
        except TypeError as error:
            raise UserError(
                f"step must take any state and value, but failed at ({state!r}, {value!r}): {error}"
            ) from None
        try:
            hash(following)
        except TypeError:
            raise UserError(f"states must be hashable (a tuple, not a list), but step gave {following!r}") from None
        return following

    return checked


def checked_accept(accept: Any) -> Callable[[Any], bool]:
    """Whether a last state is good, as a function."""
    if callable(accept):
        return _answered(accept)
    if not isinstance(accept, Iterable):
        raise UserError(f"accept must be a function of the last state, or the good states, got {accept!r}")
    try:
        return set(accept).__contains__
    except TypeError:
        raise UserError(f"the good states must be hashable (tuples, not lists), got {accept!r}") from None


def _answered(accept: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def answer(state: Any) -> bool:
        try:
            return bool(accept(state))
        except TypeError as error:
            raise UserError(f"accept must take any last state, but failed at {state!r}: {error}") from None

    return answer


def program_text(program: Any) -> str:
    """The text of a program, read if it is a file."""
    if isinstance(program, str):
        return program
    if not isinstance(program, Path):
        raise UserError(f"a program must be text or the Path of a file, got {type(program).__name__}")
    try:
        return program.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"the program {str(program)!r} cannot be read: {error}") from None


def check_names(names: Any, what: str) -> None:
    """Texts; one will do for a query."""
    if names is None or (isinstance(names, str) and what == "query"):
        return
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise UserError(f"{what} must be text or a list of texts, got {names!r}")


def is_domain_list(domain: Any) -> bool:
    """Whether it holds domains rather than values."""
    if isinstance(domain, range | str) or not isinstance(domain, Iterable):
        return False
    return all(isinstance(d, list | tuple | range) for d in domain)


def checked_domain(domain: Domain, name: str = "domain") -> list[Any]:
    """The values of a variable: different ones, at least one."""
    if not isinstance(domain, Iterable):
        use = f"; use range({domain})" if isinstance(domain, int) else ""
        raise UserError(f"{name} must be the values of a variable, got {domain!r}{use}")
    values = list(itertools.islice(domain, _VALUES + 1))
    if len(values) > _VALUES:
        raise UserError(f"{name} must hold at most {_VALUES:,} values; group them into coarser ones")
    try:
        different = len(set(values))
    except TypeError:
        raise UserError(f"{name} must hold values that can be told apart (not lists), got {values!r}") from None
    if len(values) < 1 or different != len(values):
        raise UserError(f"{name} must hold different values, at least one, got {values!r}")
    return values


def checked_domains(domains: Sequence[Domain]) -> list[Domain]:
    """The values of each variable, of at least one."""
    if not isinstance(domains, Iterable):
        raise UserError(f"domains must be a list, the values of each variable, got {domains!r}")
    checked: list[Domain] = [checked_domain(domain, f"domain {i}") for i, domain in enumerate(domains)]
    if not checked:
        raise UserError("a constraint needs at least one variable, got no domains")
    return checked
