"""A benchmark in words: lines for the terminal, tables for a page of the docs."""

import re
from pathlib import Path

from gedi.bench.findings import Figure, Finding, Growth, LeftOut, Ratio
from gedi.bench.record import Record
from gedi.errors import UserError

_BEGIN, _END = "<!-- gedi bench -->", "<!-- end of gedi bench -->"


def cells(found: Finding) -> tuple[str, str, str]:
    """What was measured, the figure, and what belongs to it.

    Example:
        >>> cells(Figure("compiling", 0.4211, "s"))
        ('compiling', '0.42 s', '')
    """
    match found:
        case Ratio():
            name = f"{found.name}: {found.over} / {found.under}"
            quartiles = f"{_short(found.low)} to {_short(found.high)}"
            return name, _short(found.value), "; ".join(filter(None, [quartiles, target(found)]))
        case Growth():
            name = f"{found.name}, against {found.variable}"
            line = f"R² {found.r_squared:.3f}, from {found.intercept:.3g} {found.unit}"
            return name, f"{found.slope:.3g} {found.unit} each", line
        case Figure():
            return found.name, f"{_short(found.value)} {found.unit}", ""
        case LeftOut():
            return found.name, "left out", found.why


def target(ratio: Ratio) -> str:
    """The target and whether it was reached; empty without one."""
    if ratio.reached is None:
        return ""
    wanted = f"at least {ratio.at_least:g}" if ratio.at_least is not None else f"at most {ratio.at_most:g}"
    return f"{wanted}: {'reached' if ratio.reached else 'missed'}"


def markdown(record: Record) -> str:
    """The tables of a record: speedups, costs, growth, figures, and what was left out."""
    parts = [_about(record)]
    for kind, head in (
        ("speedup", ("", "other", "ours", "other / ours", "quartiles", "target")),
        ("cost", ("", "over", "under", "over / under", "quartiles", "target")),
    ):
        rows = [_ratio_row(ratio) for _, ratio in record.of(Ratio) if ratio.kind == kind]
        if rows:
            parts.append(_table(head, rows))
    grown = [row for _, row in record.of(Growth)]
    if grown:
        head = ("", "against", "measured at", "values", "each one more", "R²")
        parts.append(_table(head, [_growth_row(row) for row in grown]))
    figures: list[tuple[str, ...]] = [
        (found.name, f"{_short(found.value)} {found.unit}") for _, found in record.of(Figure)
    ]
    if figures:
        parts.append(_table(("", "measured"), figures))
    parts += [f"Left out: {found.name} ({found.why})." for _, found in record.of(LeftOut)]
    return "\n\n".join(parts)


def fill(page: Path, record: Record) -> None:
    """Put the tables of a record into a page, between the two comments that mark the place."""
    text = page.read_text()
    place = re.compile(f"{re.escape(_BEGIN)}.*{re.escape(_END)}", re.DOTALL)
    if not place.search(text):
        raise UserError(
            f"{str(page)!r} must have the lines {_BEGIN!r} and {_END!r}, between which the tables go; add them"
        )
    page.write_text(place.sub(lambda _: f"{_BEGIN}\n{markdown(record)}\n{_END}", text))


def _about(record: Record) -> str:
    machine = record.machine
    command = "gedi bench --quick" if record.quick else "gedi bench"
    hardware = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB"
    threads = f"{machine['threads']} thread{'' if machine['threads'] == 1 else 's'}"
    return f"`{command}`: {hardware}, {threads}; {', '.join(map(' '.join, record.versions.items()))}."


def _ratio_row(row: Ratio) -> tuple[str, ...]:
    over = f"{row.over}, {_duration(row.over_ms)}"
    under = _duration(row.under_ms) if row.kind == "speedup" else f"{row.under}, {_duration(row.under_ms)}"
    return row.name, over, under, f"**{_short(row.value)}**", f"{_short(row.low)} to {_short(row.high)}", target(row)


def _growth_row(row: Growth) -> tuple[str, ...]:
    at = ", ".join(f"{value:g}" for value in row.x)
    values = ", ".join(f"{value:.3g}" for value in row.y)
    return row.name, row.variable, at, f"{values} {row.unit}", f"{row.slope:.2g} {row.unit}", f"{row.r_squared:.3f}"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _duration(milliseconds: float) -> str:
    return f"{milliseconds / 1e3:.3g} s" if milliseconds >= 1e3 else f"{milliseconds:.3g} ms"


def _short(value: float) -> str:
    """Two digits after the point, none where there are hundreds.

    Example:
        >>> _short(1.234), _short(2887.3), _short(0.0064)
        ('1.23', '2887', '0.0064')
    """
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
