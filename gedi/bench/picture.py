"""The benchmark as one picture: bars of ratios, and lines of growth."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gedi.bench.findings import Growth, Ratio
from gedi.bench.record import Record
from gedi.report.figures import COLOURS, save

FILE = "bench.png"
_BAR = 0.24  # inches
_GREY = "#cbd5e0"


def draw(record: Record, path: Path) -> Path:
    """Speedups and costs as bars from 1, each growth with its line; parts that were not measured are not there."""
    colours = dict(zip(record.findings, COLOURS, strict=False))
    bars = {
        "times as long as ours": [(s, r) for s, r in record.of(Ratio) if r.kind == "speedup"],
        "what ours is made of": [(s, r) for s, r in record.of(Ratio) if r.kind == "cost"],
    }
    bars = {title: rows for title, rows in bars.items() if rows}
    grown = [row for _, row in record.of(Growth)]
    lines = -(-len(grown) // 3)
    heights = [0.9 + _BAR * len(rows) for rows in bars.values()] + [2.8] * lines
    figure = Figure(figsize=(12, max(2.0, sum(heights))), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(max(1, len(heights)), 3, height_ratios=heights or [1])
    for i, (title, rows) in enumerate(bars.items()):
        _bars(figure.add_subplot(grid[i, :]), title, rows, colours)
    for i, row in enumerate(grown):
        _line(figure.add_subplot(grid[len(bars) + i // 3, i % 3]), row, COLOURS[i % len(COLOURS)])
    return save(figure, path)


def _bars(ax: Axes, title: str, rows: list[tuple[str, Ratio]], colours: dict[str, str]) -> None:
    places = range(len(rows))
    lengths = [ratio.value - 1 for _, ratio in rows]
    ax.barh(places, lengths, left=1, color=[colours[subject] for subject, _ in rows], height=0.7)
    ax.hlines(places, [r.low for _, r in rows], [r.high for _, r in rows], color="black", linewidth=1)
    for place, (_, ratio) in zip(places, rows, strict=True):
        goal = ratio.at_least if ratio.at_least is not None else ratio.at_most
        if goal is not None:
            ax.plot([goal, goal], [place - 0.4, place + 0.4], color="black", linestyle=":")
        place_of_text = (max(ratio.high, 1), place)
        ax.annotate(f"{ratio.value:.3g}", place_of_text, (4, 0), textcoords="offset points", va="center", fontsize=7)
    ax.set_yticks(places, [f"{ratio.name}: {ratio.over} / {ratio.under}" for _, ratio in rows], fontsize=7)
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.margins(x=0.08)
    ax.axvline(1, color=_GREY, zorder=0)
    ax.set_title(f"{title} (dotted: target)", fontsize=11)
    _plain(ax)


def _line(ax: Axes, row: Growth, colour: str) -> None:
    ends = [min(row.x), max(row.x)]
    ax.plot(ends, [row.slope * x + row.intercept for x in ends], color=_GREY)
    ax.plot(row.x, row.y, "o", color=colour)
    ax.set_ylim(0, max(row.y) * 1.15)
    ax.set_xlabel(row.variable)
    ax.set_ylabel(row.unit)
    ax.set_title(f"{row.name} (R² {row.r_squared:.3f})", fontsize=9)
    _plain(ax)


def _plain(ax: Axes) -> None:
    for side in ax.spines.values():
        side.set_color(_GREY)
