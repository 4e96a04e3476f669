"""Rules written in Python, kept as expressions so that they can be read variable by variable."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gedi.errors import UserError
from gedi.logic.arguments import said, shown

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    "min": min,
    "max": max,
    "not": lambda x, _: not truth(x),
}
_CONDITIONS = ("==", "!=", "<", "<=", "not")


class _Arithmetic:
    """``+ - * // %`` and ``abs`` make expressions."""

    def __add__(self, other: Any) -> Any:
        return _sum([self, other])

    __radd__ = __add__

    def __neg__(self) -> Any:
        return _binary("*", self, -1)

    def __sub__(self, other: Any) -> Any:
        return _sum([self, _binary("*", other, -1)])

    def __rsub__(self, other: Any) -> Any:
        return _sum([other, _binary("*", self, -1)])

    def __mul__(self, other: Any) -> Any:
        return _binary("*", self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return _binary("//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _binary("//", other, self)

    def __mod__(self, other: Any) -> Any:
        return _binary("%", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _binary("%", other, self)

    def __abs__(self) -> Any:
        return maximum(self, -self)


class _Conditions:
    """``== != < <= > >= & | ~`` make expressions, so nothing that is still open is true, false or hashable."""

    def __eq__(self, other: object) -> Any:
        return _binary("==", self, other)

    def __ne__(self, other: object) -> Any:
        return _binary("!=", self, other)

    def __lt__(self, other: Any) -> Any:
        return _binary("<", self, other)

    def __le__(self, other: Any) -> Any:
        return _binary("<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return _binary("<", other, self)

    def __ge__(self, other: Any) -> Any:
        return _binary("<=", other, self)

    def __and__(self, other: Any) -> Any:
        return _join(True, [self, other])

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return _join(False, [self, other])

    __ror__ = __or__

    def __invert__(self) -> Any:
        return _binary("not", self, None)

    def __bool__(self) -> bool:
        raise UserError(
            "a rule over this many assignments is read as an expression: write & | ~ instead of and, or, not, if, "
            "a < b < c or in; or use Constraint.from_automaton"
        )

    __hash__ = None  # type: ignore[assignment]


class Expression(_Arithmetic, _Conditions, ABC):
    """What a rule does with its variables, before their values are known.

    A rule may use ``+ - * // % == != < <= > >= & | ~``, ``abs``, :func:`minimum`, :func:`maximum` and the words of
    :mod:`gedi.logic.quantifiers`.
    """

    key: Any  # what makes two expressions the same

    @abstractmethod
    def given(self, variable: int, value: Any) -> Any:
        """The expression once a variable has its value, simplified; a plain value if nothing is open."""

    @property
    def below(self) -> tuple[Any, ...]:
        """What it is made of."""
        return ()


# Python's == builds an expression, so states are told apart by their keys, not by the expressions themselves.
class State:
    """A rule in the middle of being read, comparable and hashable."""

    __slots__ = ("key", "rule")

    def __init__(self, rule: Any) -> None:
        self.rule = rule
        self.key = key_of(rule)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def key_of(x: Any) -> Any:
    """What makes two expressions the same."""
    return x.key if isinstance(x, Expression) else x


@dataclass(frozen=True, eq=False)
class Variable(Expression):
    """A variable by its number."""

    index: int
    key: Any

    def given(self, variable: int, value: Any) -> Any:
        """The value, if this is the variable."""
        return value if variable == self.index else self


@dataclass(frozen=True, eq=False)
class Sum(Expression):
    """A flat sum: known parts are one number, so that different ways to one total are one state."""

    constant: Any
    parts: tuple[Expression, ...]
    key: Any

    @property
    def below(self) -> tuple[Any, ...]:
        """The open parts."""
        return self.parts

    def given(self, variable: int, value: Any) -> Any:
        """The sum with what became known added up."""
        return _sum([self.constant, *(part.given(variable, value) for part in self.parts)])


@dataclass(frozen=True, eq=False)
class Binary(Expression):
    """An operation on two sides."""

    operation: str
    left: Any
    right: Any
    key: Any

    @property
    def below(self) -> tuple[Any, ...]:
        """Both sides."""
        return self.left, self.right

    def given(self, variable: int, value: Any) -> Any:
        """The operation on what became known."""
        return _binary(self.operation, given(self.left, variable, value), given(self.right, variable, value))


@dataclass(frozen=True, eq=False)
class Join(Expression):
    """A flat ``and`` (``every``) or ``or``."""

    every: bool
    parts: tuple[Expression, ...]
    key: Any

    @property
    def below(self) -> tuple[Any, ...]:
        """The open parts."""
        return self.parts

    def given(self, variable: int, value: Any) -> Any:
        """The parts still open, or the answer."""
        return _join(self.every, [part.given(variable, value) for part in self.parts])


def given(x: Any, variable: int, value: Any) -> Any:
    """An expression, or a plain value, once a variable has its value."""
    return x.given(variable, value) if isinstance(x, Expression) else x


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two, for rules."""
    return _compared("min", a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two, for rules."""
    return _compared("max", a, b)


def operations(x: Any) -> Iterator[Binary]:
    """Every operation inside an expression but sums and ``& |``."""
    if isinstance(x, Binary):
        yield x
    if isinstance(x, Expression):
        for part in x.below:
            yield from operations(part)


def defined(rule: Expression) -> Any:
    """The rule, false wherever it divides by zero: Python would raise there, whatever the rest says."""
    divisors = {key_of(x.right): x.right for x in operations(rule) if x.operation in ("//", "%")}
    return _join(True, [rule, *(divisor != 0 for divisor in divisors.values())])


def means_otherwise(x: Any) -> bool:
    """Whether the operators of the rule are others on plain values or columns: ``~``, and numbers made of conditions.

    Python's own ``~True`` is -2, which is true, and NumPy's True + True is True.
    """
    if not isinstance(x, Expression):
        return False
    numbers = isinstance(x, Sum) or (isinstance(x, Binary) and x.operation not in _CONDITIONS)
    made = numbers and any(map(_is_condition, x.below))
    negated = isinstance(x, Binary) and x.operation == "not"
    return negated or made or any(map(means_otherwise, x.below))


def _is_condition(x: Any) -> bool:
    return isinstance(x, Join) or (isinstance(x, Binary) and x.operation in _CONDITIONS)


def truth(x: Any) -> bool:
    """A known condition: True, False, 1 or 0."""
    if x not in (0, 1):
        raise UserError(
            f"& | ~ join conditions, which are True or False, got {shown(x)}; use // and % for the bits of numbers"
        )
    return bool(x)


def _sum(parts: list[Any]) -> Any:
    constant: Any = 0
    open_: list[Expression] = []
    for part in parts:
        if isinstance(part, Sum):
            constant = constant + part.constant
            open_.extend(part.parts)
        elif isinstance(part, Expression):
            open_.append(part)
        else:
            constant = constant + part
    if not open_:
        return constant
    if len(open_) == 1 and constant == 0:
        return open_[0]
    keys = sorted((key_of(part) for part in open_), key=repr)
    return Sum(constant, tuple(open_), ("+", constant, tuple(keys)))


def _binary(operation: str, left: Any, right: Any) -> Any:
    if not isinstance(left, Expression) and not isinstance(right, Expression):
        return _OPERATIONS[operation](left, right)
    return Binary(operation, left, right, (operation, key_of(left), key_of(right)))


def _compared(operation: str, left: Any, right: Any) -> Any:
    try:
        return _binary(operation, left, right)
    except (TypeError, ValueError, RuntimeError) as error:  # text and numbers; arrays; tensors
        raise UserError(f"{operation}imum needs two values that can be compared: {said(error)}") from None


def _join(every: bool, parts: list[Any]) -> Any:
    open_: dict[Any, Expression] = {}
    for part in parts:
        if isinstance(part, Join) and part.every == every:
            open_ |= {key_of(inner): inner for inner in part.parts}
        elif isinstance(part, Expression):
            open_[key_of(part)] = part
        elif truth(part) != every:
            return not every  # one false ends an and, one true an or
    if not open_:
        return every
    last = next(iter(open_.values()))
    if len(open_) == 1 and _is_condition(last):
        return last  # a number stays inside, where it must turn out to be 0 or 1
    return Join(every, tuple(open_.values()), ("&" if every else "|", frozenset(open_)))
