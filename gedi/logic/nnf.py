"""Circuits that others compiled, as text: d-DNNF as c2d and its like write it, and SDDs as libsdd writes them."""

from pathlib import Path
from typing import NamedTuple

from gedi.errors import UserError
from gedi.logic.arguments import shown
from gedi.logic.dimacs import UNWATCHED, text_of
from gedi.logic.limits import Budget


class Formula(NamedTuple):
    """A formula in negation normal form, a node at a time; the last one is what it says.

    Attributes:
        nodes: a literal, or whether all children must hold (True) or any (False) and their numbers, all below its own.
        highest: the largest number of a variable.
    """

    nodes: list[int | tuple[bool, tuple[int, ...]]]
    highest: int


def read_nnf(source: str | Path, budget: Budget) -> Formula:
    """The nodes of a file or text that begins with ``nnf NODES EDGES VARIABLES``.

    Example:
        >>> from gedi.logic.limits import Limits
        >>> read_nnf("nnf 3 2 2\\nL 1\\nL -2\\nA 2 0 1", Budget(Limits(), "")).nodes
        [1, -2, (True, (0, 1))]
    """
    lines = _lines(source, "nnf", 4, budget)
    number, words = lines[0]
    header = [_whole(word, number) for word in words[1:]]
    nodes: list[int | tuple[bool, tuple[int, ...]]] = []
    for number, (kind, *rest) in lines[1:]:
        values = [_whole(word, number) for word in rest]
        if kind == "L" and len(values) == 1 and values[0]:
            nodes.append(_literal(values[0], header[2], number))
            continue
        skipped = {"A": 0, "O": 1}.get(kind)
        if skipped is None or len(values) < skipped + 1 or len(values) != skipped + 1 + values[skipped]:
            raise _wrong(number, "'L literal', 'A count children' or 'O variable count children'", [kind, *rest])
        nodes.append((kind == "A", _children(values[skipped + 1 :], len(nodes), number)))
    if len(nodes) != header[0] or not nodes:
        raise UserError(f"an nnf file must hold the {header[0]} nodes that its first line says, got {len(nodes)}")
    return Formula(nodes, header[2])


def read_sdd(source: str | Path, budget: Budget) -> Formula:
    """The nodes of a file or text that begins with ``sdd NODES``; which vtree they are of does not matter here.

    Example:
        >>> from gedi.logic.limits import Limits
        >>> text = "sdd 4\\nL 1 0 1\\nL 2 2 -2\\nF 3\\nL 4 0 -1\\nD 0 1 2 1 2 4 3"
        >>> read_sdd(text, Budget(Limits(), "")).highest
        2
    """
    lines = _lines(source, "sdd", 2, budget)
    nodes: list[int | tuple[bool, tuple[int, ...]]] = []
    place: dict[int, int] = {}
    highest = 0
    for number, (kind, *rest) in lines[1:]:
        values = [_whole(word, number) for word in rest]
        pairs = values[3:]
        if kind in "TF" and len(values) == 1:
            nodes.append((kind == "T", ()))
        elif kind == "L" and len(values) == 3 and values[2]:
            nodes.append(values[2])
            highest = max(highest, abs(values[2]))
        elif kind == "D" and len(values) > 3 and len(pairs) == 2 * values[2] and set(pairs) <= place.keys():
            parts = [(place[p], place[s]) for p, s in zip(pairs[::2], pairs[1::2], strict=True)]
            first = len(nodes)
            nodes += [(True, part) for part in parts]
            nodes.append((False, tuple(range(first, first + len(parts)))))
        else:
            raise _wrong(
                number, "'F id', 'T id', 'L id vtree literal' or 'D id vtree count prime sub ...'", [kind, *rest]
            )
        place[values[0]] = len(nodes) - 1
    if not nodes:
        raise UserError("an sdd file must hold at least one node, got none")
    return Formula(nodes, highest)


def _lines(source: str | Path, kind: str, words: int, budget: Budget) -> list[tuple[int, list[str]]]:
    """Numbered lines without comments; the first must be the header."""
    if not isinstance(source, str | Path):
        raise UserError(f"a circuit must be text or the path of a file, got {shown(source)}")
    text = source if isinstance(source, str) and "\n" in source else text_of(Path(source))
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if number % UNWATCHED == 0:
            budget.check(number)
        parts = line.split()
        if parts and parts[0] != "c":
            found.append((number, parts))
    budget.check(len(found))
    if not found or found[0][1][0] != kind or len(found[0][1]) != words:
        expected = "nnf NODES EDGES VARIABLES" if kind == "nnf" else "sdd NODES"
        raise UserError(f"the file must begin with '{expected}', got {shown(' '.join(found[0][1]) if found else '')}")
    return found


def _whole(word: str, number: int) -> int:
    digits = word.removeprefix("-")
    if not digits.isdecimal() or len(digits) > 12:
        raise UserError(f"line {number} must hold whole numbers, got {shown(word)}")
    return int(word)


def _literal(x: int, highest: int, number: int) -> int:
    if abs(x) > highest:
        raise UserError(f"line {number}: literal {x}, but the first line declares {highest} variables")
    return x


def _children(values: list[int], node: int, number: int) -> tuple[int, ...]:
    if any(not 0 <= child < node for child in values):
        raise UserError(f"line {number}: children must be nodes of earlier lines, 0 to {node - 1}, got {shown(values)}")
    return tuple(values)


def _wrong(number: int, expected: str, words: list[str]) -> UserError:
    return UserError(f"line {number} must read {expected}, got {shown(' '.join(words))}")
