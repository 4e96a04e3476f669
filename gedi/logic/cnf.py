"""Clauses: a list, DIMACS text, or a DIMACS file."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gedi.errors import UserError
from gedi.logic.circuit import Circuit
from gedi.logic.diagram import Budget
from gedi.logic.sdd import Space

Clauses = Sequence[tuple[int, ...]]
_NAME = 255  # no file has a longer name


def read_clauses(source: str | Path | Iterable[Iterable[int]]) -> tuple[Clauses, int]:
    """Clauses and the number of Booleans they are over.

    Example:
        >>> read_clauses([[1, -2], [2]])
        ([(1, -2), (2,)], 2)
    """
    if isinstance(source, str | Path):
        if isinstance(source, str) and ("\n" in source or source.lstrip().startswith(("p ", "c "))):
            return parse_dimacs(source, "the DIMACS text")
        path = Path(source)
        if len(path.name) > _NAME or not path.is_file():
            shown = str(path) if len(str(path)) <= _NAME else f"{str(path)[:40]}..."
            raise UserError(f"clauses must be a list, DIMACS text or a DIMACS file, but {shown!r} is not there")
        return parse_dimacs(path.read_text(errors="replace"), path.name)
    clauses = []
    for number, clause in enumerate(source, start=1):
        literals = tuple(clause) if isinstance(clause, Iterable) else None
        if literals is None or not all(isinstance(x, int) and not isinstance(x, bool) and x for x in literals):
            raise UserError(f"clause {number} must be whole numbers other than 0, got {clause!r}")
        clauses.append(literals)
    return clauses, max((abs(x) for clause in clauses for x in clause), default=0)


def parse_dimacs(text: str, name: str) -> tuple[Clauses, int]:
    """Clauses and the declared number of Booleans from DIMACS text."""
    header: tuple[int, int] | None = None
    clauses: list[tuple[int, ...]] = []
    clause: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0] == "c":
            continue
        if words[0] == "%":  # how some old collections end a file
            break
        if words[0] == "p":
            if header is not None:
                raise UserError(f"{name} line {number}: a second 'p' line; there must be one")
            if len(words) != 4 or words[1] != "cnf" or not (words[2].isdecimal() and words[3].isdecimal()):
                raise UserError(f"{name} line {number} must read 'p cnf VARIABLES CLAUSES', got {line.strip()!r}")
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
                raise UserError(f"{name} line {number} column {column} must be a whole number, got {word!r}") from None
            if abs(literal) > header[0]:
                raise UserError(
                    f"{name} line {number} column {column}: literal {literal}, but line 'p' declares {header[0]} "
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


def compile_clauses(
    clauses: Clauses, domains: Sequence[Sequence[Any]], booleans: bool, budget: Budget
) -> tuple[Circuit | None, bool]:
    """The circuit of a conjunction, or None with whether everything (True) or nothing (False) satisfies it.

    With ``booleans`` literal i is "variable i is true"; otherwise the literals number the values of all
    variables one after another.
    """
    space = Space([len(domain) for domain in domains], budget)
    place = [(variable, k) for variable, domain in enumerate(domains) for k in range(len(domain))]

    def literal(x: int) -> Any:
        variable, k = (abs(x) - 1, 1) if booleans else place[abs(x) - 1]
        return space.value(variable, k) if x > 0 else space.negation(space.value(variable, k))

    # neighbours first: clauses over the same variables meet early, while the diagrams are small
    ordered = sorted(clauses, key=lambda clause: sorted(abs(x) for x in clause))
    formula = space.compiled(space.all_of_many(space.any(literal(x) for x in clause) for clause in ordered))
    if space.is_false(formula) or space.is_true(formula):
        return None, space.is_true(formula)
    return space.circuit([formula]), False
