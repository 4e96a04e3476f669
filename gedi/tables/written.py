"""A table of our own making, written as it comes: for reading, for programs and for spreadsheets."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gedi.checkpoints import write_whole
from gedi.errors import unknown


def rows_of(name: str, known: Mapping[str, object], only: Sequence[str]) -> list[str]:
    """The rows asked for, or all of them; one that there is not is refused."""
    for row in only:
        if row not in known:
            raise unknown(f"row of table {name}", row, known)
    return list(only) or list(known)


def write(
    out: Path, name: str, text: str, found: Mapping[str, Mapping[str, Sequence[NamedTuple]]], fields: Sequence[str]
) -> None:
    """The text as Markdown; every outcome, by its row and way, as JSON and as CSV."""
    write_whole(out / f"{name}.md", text.encode())
    plain = {row: {way: [o._asdict() for o in runs] for way, runs in ways.items()} for row, ways in found.items()}
    write_whole(out / f"{name}.json", json.dumps(plain).encode())
    with (out / f"{name}.csv").open("w", newline="") as file:
        lines = [[row, way, *o] for row, ways in found.items() for way, runs in ways.items() for o in runs]
        csv.writer(file).writerows([["data", "way", *fields], *lines])


def grid(names: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table.

    Example:
        >>> grid(["a", "b"], [["1", "2"]])
        ['| a | b |', '| --- | --- |', '| 1 | 2 |']
    """
    return [f"| {' | '.join(line)} |" for line in (names, ["---"] * len(names), *lines)]
