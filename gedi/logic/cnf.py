"""Clauses: a list, DIMACS text, or a DIMACS file."""

import functools
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gedi.errors import UserError
from gedi.logic.child import bounded
from gedi.logic.circuit import Circuit
from gedi.logic.limits import Budget, Limits
from gedi.logic.sdd import Space

Clauses = Sequence[tuple[int, ...]]
LITERALS = 2_000_000  # far more than what compiles
_BYTES = 20_000_000  # the same in a file
_NAME = 255  # no file has a longer name
_NUMBER = 12  # digits of the largest number that a file may hold
_UNWATCHED = 1000  # clauses or lines between two looks at the clock
_SMALL = 24  # so many Booleans have no large diagram: no child process is needed


def read_clauses(source: str | Path | Iterable[Iterable[int]], budget: Budget | None = None) -> tuple[Clauses, int]:
    """Clauses and the number of Booleans they are over.

    Example:
        >>> read_clauses([[1, -2], [2]])
        ([(1, -2), (2,)], 2)
    """
    budget = budget or Budget(Limits(), "use fewer clauses")
    if isinstance(source, str | Path):
        if isinstance(source, str) and ("\n" in source or source.lstrip().startswith(("p ", "c "))):
            return parse_dimacs(source, "the DIMACS text", budget)
        return parse_dimacs(_text_of(Path(source)), Path(source).name, budget)
    if not isinstance(source, Iterable):
        raise UserError(f"clauses must be a list, DIMACS text or a DIMACS file, got {source!r}")
    clauses, literals = [], 0
    for number, clause in enumerate(source, start=1):
        listed = None if not isinstance(clause, Iterable) else tuple(itertools.islice(clause, LITERALS + 1))
        if listed is None or not all(isinstance(x, int) and not isinstance(x, bool) and x for x in listed):
            raise UserError(f"clause {number} must be whole numbers other than 0, got {clause!r}")
        literals += len(listed) + 1
        _check_length(literals, number, budget)
        clauses.append(listed)
    return clauses, max((abs(x) for clause in clauses for x in clause), default=0)


def _check_length(literals: int, number: int, budget: Budget) -> None:
    """Clauses that have no end are not read to it."""
    if literals > LITERALS:
        raise UserError(f"clauses must have at most {LITERALS:,} literals together, got more; use fewer")
    if number % _UNWATCHED == 0:
        budget.check_time()


def _text_of(path: Path) -> str:
    try:
        is_there = len(path.name) <= _NAME and path.is_file()
        size = path.stat().st_size if is_there else 0
        if size > _BYTES:
            raise UserError(f"a DIMACS file must have at most {_BYTES:,} bytes, got {size:,}; use fewer clauses")
        if is_there:
            return path.read_text(errors="replace")
    except OSError as error:
        raise UserError(f"a DIMACS file must be readable, got {_shown(path)!r}: {error.strerror}") from None
    raise UserError(f"clauses must be a list, DIMACS text or a DIMACS file, but {_shown(path)!r} is not there")


def _shown(text: object) -> str:
    """A text as a message repeats it."""
    return str(text) if len(str(text)) <= _NAME else f"{str(text)[:40]}..."


def parse_dimacs(text: str, name: str, budget: Budget) -> tuple[Clauses, int]:
    """Clauses and the declared number of Booleans from DIMACS text."""
    header: tuple[int, int] | None = None
    clauses: list[tuple[int, ...]] = []
    clause: list[int] = []
    literals = 0
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        literals += len(words)
        _check_length(literals, number, budget)
        if not words or words[0] == "c":
            continue
        if words[0] == "%":  # how some old collections end a file
            break
        if words[0] == "p":
            if header is not None:
                raise UserError(f"{name} line {number}: a second 'p' line; there must be one")
            if len(words) != 4 or words[1] != "cnf" or not all(_is_count(word) for word in words[2:]):
                raise UserError(
                    f"{name} line {number} must read 'p cnf VARIABLES CLAUSES', got {_shown(line.strip())!r}"
                )
            header = int(words[2]), int(words[3])
            continue
        if header is None:
            raise UserError(f"{name} line {number}: clauses must follow a line 'p cnf VARIABLES CLAUSES'")
        column = 0
        for word in words:
            column = line.index(word, column) + 1
            try:
                literal = int(word)
            except ValueError:
                raise UserError(
                    f"{name} line {number} column {column} must be a whole number, got {_shown(word)!r}"
                ) from None
            if abs(literal) > header[0]:
                raise UserError(
                    f"{name} line {number} column {column}: literal {_shown(word)}, but line 'p' declares {header[0]} "
                    f"variables"
                )
            if literal:
                clause.append(literal)
            else:
                clauses.append(tuple(clause))
                clause = []
    if header is None:
        raise UserError(f"{name} must hold a line 'p cnf VARIABLES CLAUSES'")
    if clause:
        clauses.append(tuple(clause))
    if len(clauses) != header[1]:
        raise UserError(f"{name} must hold {header[1]} clauses as line 'p' says, got {len(clauses)}")
    return clauses, header[0]


def _is_count(word: str) -> bool:
    return word.isdecimal() and len(word) <= _NUMBER


def compile_clauses(
    clauses: Clauses, domains: Sequence[Sequence[Any]], booleans: bool, budget: Budget
) -> tuple[Circuit | None, bool]:
    """The circuit of a conjunction, or None with whether everything (True) or nothing (False) satisfies it.

    With ``booleans`` literal i is "variable i is true"; otherwise the literals number the values of all
    variables one after another.
    """
    compute = functools.partial(_compile_clauses, clauses, domains, booleans, budget)
    small = sum(len(domain) for domain in domains) <= _SMALL and len(clauses) <= _UNWATCHED
    return compute() if small else bounded(compute, budget)


def _compile_clauses(
    clauses: Clauses, domains: Sequence[Sequence[Any]], booleans: bool, budget: Budget
) -> tuple[Circuit | None, bool]:
    space = Space([len(domain) for domain in domains], budget)
    place = [(variable, k) for variable, domain in enumerate(domains) for k in range(len(domain))]

    def literal(x: int) -> Any:
        variable, k = (abs(x) - 1, 1) if booleans else place[abs(x) - 1]
        return space.literal(variable, k, x > 0)

    # neighbours first: clauses over the same variables meet early, while the diagrams are small
    ordered = sorted(clauses, key=lambda clause: sorted(abs(x) for x in clause))
    formula = space.among_existing(space.any(literal(x) for x in clause) for clause in ordered)
    if space.is_false(formula) or space.is_true(formula):
        return None, space.is_true(formula)
    return space.circuit([formula]), False
