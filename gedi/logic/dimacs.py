"""Clauses as DIMACS writes them: text, or a file."""

from collections.abc import Sequence
from pathlib import Path

from gedi.errors import UserError
from gedi.logic.limits import Budget

Clauses = Sequence[tuple[int, ...]]
LITERALS = 2_000_000  # far more than what compiles
_BYTES = 20_000_000  # the same in a file
UNWATCHED = 1000  # clauses or lines between two looks at the clock
_NAME = 255  # no file has a longer name
_NUMBER = 12  # digits of the largest number that a file may hold


def check_length(literals: int, number: int, budget: Budget) -> None:
    """Clauses that have no end are not read to it."""
    if literals > LITERALS:
        raise UserError(f"clauses must have at most {LITERALS:,} literals together, got more; use fewer")
    if number % UNWATCHED == 0:
        budget.check_time()


def text_of(path: Path) -> str:
    """What a DIMACS file holds."""
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
        check_length(literals, number, budget)
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
