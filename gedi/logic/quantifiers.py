"""Words for rules in Python: if-then-else, for all, there is, how many."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gedi.errors import UserError
from gedi.logic.arguments import shown
from gedi.logic.expression import Expression, given, key_of, truth


@dataclass(frozen=True, eq=False)
class Choice(Expression):
    """One of two expressions, by a condition that is still open."""

    condition: Expression
    then: Any
    otherwise: Any
    key: Any

    @property
    def below(self) -> tuple[Any, ...]:
        """The condition and both branches."""
        return self.condition, self.then, self.otherwise

    def given(self, variable: int, value: Any) -> Any:
        """The branch, once the condition is known."""
        return if_then_else(*(given(part, variable, value) for part in self.below))


def if_then_else(condition: Any, then: Any, otherwise: Any) -> Any:
    """``then`` where the condition holds, else ``otherwise``: numbers, conditions or any other values, for rules.

    Both are computed, as Python computes what a function is given: a division by zero in either makes the rule false.

    Example:
        >>> from gedi.logic import Constraint
        >>> rule = Constraint.from_predicate(lambda a, b: if_then_else(a == 0, b == 2, b < a), [range(3)] * 2)
        >>> rule.solutions()
        [(0, 2), (1, 0), (2, 0), (2, 1)]
    """
    if isinstance(condition, Expression):
        key = ("if", key_of(condition), key_of(then), key_of(otherwise))
        return Choice(condition, then, otherwise, key)
    if isinstance(condition, np.ndarray):
        branches = [np.asarray(x) for x in (then, otherwise)]
        if any(x.dtype != np.bool_ for x in branches):  # Python's own numbers, which do not overflow
            branches = [np.asarray(x, dtype=object) for x in (then, otherwise)]
        return np.where(condition.astype(bool), *branches)
    return then if truth(condition) else otherwise


def for_all(members: Iterable[Any], condition: Callable[..., Any]) -> Any:
    """Whether a condition holds for every member of a group; a tuple is handed on as several arguments.

    Example:
        >>> from itertools import combinations
        >>> from gedi.logic import Constraint
        >>> def different(*group):
        ...     return for_all(combinations(group, 2), lambda a, b: a != b)
        >>> Constraint.from_predicate(different, [range(3)] * 3).n_solutions
        6
    """
    answer: Any = True
    for holds in _asked(members, condition):
        answer = answer & holds
    return answer


def exists(members: Iterable[Any], condition: Callable[..., Any]) -> Any:
    """Whether a condition holds for at least one member of a group.

    Example:
        >>> from gedi.logic import Constraint
        >>> Constraint.from_predicate(lambda *group: exists(group, lambda x: x == 1), [range(3)] * 2).n_solutions
        5
    """
    answer: Any = False
    for holds in _asked(members, condition):
        answer = answer | holds
    return answer


def count(members: Iterable[Any], condition: Callable[..., Any]) -> Any:
    """For how many members of a group a condition holds.

    Example:
        >>> from gedi.logic import Constraint
        >>> twice = Constraint.from_predicate(lambda *group: count(group, lambda x: x == 1) == 2, [range(3)] * 4)
        >>> twice.n_solutions                                  # which two, and what the others are
        24
    """
    return sum((if_then_else(holds, 1, 0) for holds in _asked(members, condition)), start=0)


def _asked(members: Iterable[Any], condition: Callable[..., Any]) -> list[Any]:
    if not callable(condition):
        raise UserError(f"a condition must be a function of a member, got {shown(condition)}")
    if isinstance(members, Expression) or not isinstance(members, Iterable):
        raise UserError(f"the members of a group must be a list of values, got {shown(members)}")
    return [condition(*m) if isinstance(m, tuple) else condition(m) for m in members]
