"""The benchmark as one picture: bars of ratios, a panel for each subject, and lines of growth."""

from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gedi.bench.findings import Growth, Kind, Ratio
from gedi.bench.record import Record
from gedi.report.figures import COLOURS, save

FILE = "bench.png"
_TITLES: dict[Kind, str] = {"speedup": "times as long as ours", "cost": "ours over a part of it"}
_ROOM = {"panel": 0.9, "bar": 0.22, "line": 2.6}  # heights in inches
_PER_ROW = 3
_GREY = "#cbd5e0"


class _Panel(NamedTuple):
    title: str
    colour: str
    rows: list[Ratio]

    @property
    def height(self) -> float:
        return _ROOM["panel"] + _ROOM["bar"] * len(self.rows)


def draw(record: Record, path: Path) -> Path:
    """Ratios as bars from 1, each growth with its line; what was not measured is not there."""
    columns = _in_two(_panels(record))
    grown = [row for _, row in record.of(Growth)]
    bars = max((sum(panel.height for panel in column) for column in columns), default=0.0)
    lines = -(-len(grown) // _PER_ROW)
    heights = [height for height in (bars, _ROOM["line"] * lines) if height] or [1.0]
    figure = Figure(figsize=(14, sum(heights)), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    parts = list(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0])
    if columns:
        for part, column in zip(parts.pop(0).subfigures(1, len(columns), squeeze=False)[0], columns, strict=True):
            axes = part.subplots(len(column), 1, height_ratios=[panel.height for panel in column], squeeze=False)
            for ax, panel in zip(axes[:, 0], column, strict=True):
                _bars(ax, panel)
    if grown:
        axes = parts.pop(0).subplots(lines, _PER_ROW, squeeze=False).flat
        for i, ax in enumerate(axes):
            if i < len(grown):
                _line(ax, grown[i], COLOURS[i % len(COLOURS)])
            else:
                ax.set_axis_off()
    return save(figure, path)


def _panels(record: Record) -> list[_Panel]:
    """One for each subject and each way a ratio can be read."""
    panels = []
    for colour, subject in zip(COLOURS, record.findings, strict=False):
        for kind, title in _TITLES.items():
            rows = [ratio for name, ratio in record.of(Ratio) if (name, ratio.kind) == (subject, kind)]
            if rows:
                panels.append(_Panel(f"{subject}: {title}", colour, rows))
    return panels


def _in_two(panels: list[_Panel]) -> list[list[_Panel]]:
    """Two columns of about the same height, in order; one where there is only one panel."""
    half = sum(panel.height for panel in panels) / 2
    filled, cut = 0.0, 0
    while cut < len(panels) and filled + panels[cut].height / 2 <= half:
        filled += panels[cut].height
        cut += 1
    return [column for column in (panels[:cut], panels[cut:]) if column]


def _bars(ax: Axes, panel: _Panel) -> None:
    places, rows = range(len(panel.rows)), panel.rows
    ax.barh(places, [ratio.value - 1 for ratio in rows], left=1, color=panel.colour, height=0.7)
    ax.hlines(places, [ratio.low for ratio in rows], [ratio.high for ratio in rows], color="black", linewidth=1)
    for place, ratio in zip(places, rows, strict=True):
        goal = ratio.at_least if ratio.at_least is not None else ratio.at_most
        if goal is not None:
            ax.plot([goal, goal], [place - 0.4, place + 0.4], color="black", linestyle=":")
        number, end = f"{ratio.value:.0f}" if ratio.value >= 100 else f"{ratio.value:.2f}", (max(ratio.high, 1), place)
        ax.annotate(number, end, (4, 0), textcoords="offset points", va="center", fontsize=7)
    ax.set_yticks(places, [_label(ratio) for ratio in rows], fontsize=7)
    ax.tick_params(axis="x", labelsize=7)
    ax.invert_yaxis()
    if max(ratio.value for ratio in rows) > 20:
        ax.set_xscale("log")
    ax.margins(x=0.12)
    ax.axvline(1, color=_GREY, zorder=0)
    ax.set_title(
        f"{panel.title} (dotted: target)" if any(r.reached is not None for r in rows) else panel.title,
        fontsize=10,
        loc="right",  # the names of the bars take the left half
    )
    _plain(ax)


def _label(ratio: Ratio) -> str:
    return f"{ratio.name}: {ratio.over}" + ("" if ratio.kind == "speedup" else f" / {ratio.under}")


def _line(ax: Axes, row: Growth, colour: str) -> None:
    ends = [min(row.x), max(row.x)]
    ax.plot(ends, [row.slope * x + row.intercept for x in ends], color=_GREY)
    ax.plot(row.x, row.y, "o", color=colour)
    ax.set_ylim(0, max(row.y) * 1.15)
    ax.set_xlabel(row.variable, fontsize=8)
    ax.set_ylabel(row.unit, fontsize=8)
    ax.tick_params(labelsize=7)
    ax.set_title(row.name, fontsize=10)
    _plain(ax)


def _plain(ax: Axes) -> None:
    for side in ax.spines.values():
        side.set_color(_GREY)
