"""Constraints that many ask for. The limits are those of :meth:`Constraint.from_automaton`."""

from numbers import Real
from typing import Any, Unpack

from gedi.errors import UserError
from gedi.logic.arguments import Domain, check_count, checked_domain, shown
from gedi.logic.constraint import Constraint
from gedi.logic.limits import LimitWishes


def all_different(n: int, domain: Domain, **limits: Unpack[LimitWishes]) -> Constraint:
    """No two of n variables have the same value.

    Example:
        >>> all_different(3, range(4)).n_solutions
        24
    """
    bit = {value: 1 << k for k, value in enumerate(checked_domain(domain))}
    check_count(n, "n")
    if n > len(bit):
        raise UserError(f"{n} variables cannot all differ with {len(bit)} values")
    return Constraint.from_automaton(
        n, 0, lambda seen, v: None if seen & bit[v] else seen | bit[v], _any, domain, **limits
    )


def sorted_(n: int, domain: Domain, *, strictly: bool = False, **limits: Unpack[LimitWishes]) -> Constraint:
    """Values do not go down; ``strictly``: they go up. The order is that of the domain.

    Example:
        >>> sorted_(3, range(4), strictly=True).n_solutions
        4
    """
    place = {value: k for k, value in enumerate(checked_domain(domain))}

    def step(last: int, value: Any) -> int | None:
        here = place[value]
        return here if here >= last + strictly else None

    return Constraint.from_automaton(n, -1, step, _any, domain, **limits)


def sums_to(n: int, domain: Domain, total: float | None = None, **limits: Unpack[LimitWishes]) -> Constraint:
    """n variables add up to ``total``; without one, the last variable is the sum of the n before it.

    Example:
        >>> sums_to(2, range(10)).n_solutions, sums_to(2, range(10), total=3).n_solutions
        (55, 4)
    """
    check_count(n, "n")
    if total is not None:
        if not isinstance(total, Real):
            raise UserError(f"total must be a number, got {shown(total)}")
        return Constraint.from_automaton(n, 0, lambda s, v: s + v, {total}, domain, **limits)

    def step(state: tuple[int, Any], value: Any) -> tuple[int, Any] | None:
        read, s = state
        if read < n:
            return read + 1, s + value
        return (read + 1, None) if value == s else None

    return Constraint.from_automaton(n + 1, (0, 0), step, _any, domain, **limits)


def exactly_k(n: int, k: int, domain: Domain, value: Any = True, **limits: Unpack[LimitWishes]) -> Constraint:
    """Exactly k of n variables have a value.

    Example:
        >>> exactly_k(5, 2, [False, True]).n_solutions
        10
    """
    check_count(k, "k", least=0)
    return Constraint.from_automaton(
        n, 0, lambda c, v: c + (v == value) if c + (v == value) <= k else None, {k}, domain, **limits
    )


def at_most_k(n: int, k: int, domain: Domain, value: Any = True, **limits: Unpack[LimitWishes]) -> Constraint:
    """At most k of n variables have a value.

    Example:
        >>> at_most_k(5, 1, [False, True]).n_solutions
        6
    """
    check_count(k, "k", least=0)
    return Constraint.from_automaton(
        n, 0, lambda c, v: c + (v == value) if c + (v == value) <= k else None, _any, domain, **limits
    )


def _any(state: Any) -> bool:
    return True
