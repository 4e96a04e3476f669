"""The toy tables: moons, circles and other shapes in the plane."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from gedi.names import Shape
from gedi.tables.spec import Cell, Group, TableSpec, first_seed

if TYPE_CHECKING:
    from gedi.directory import RunDirectory

DATA = ("moons", "circles")
T_VALUES = (1, 2, 5, 8, 10)
VARIANTS = {
    "GEDI": "gedi",
    "no NF": "no-nf",
    "no NF, no train. 1": "no-nf-no-train-1",
    "no NF, 2 enc.": "no-nf-2-enc",
}
#: NMI, mean and standard deviation over 5 runs (the paper's toy table).
PUBLISHED: dict[tuple[str, str], tuple[float, float]] = {
    ("moons", "JEM"): (0.0, 0.0),
    ("moons", "SwAV"): (0.8, 0.1),
    ("moons", "GEDI"): (0.98, 0.02),
    ("circles", "JEM"): (0.0, 0.0),
    ("circles", "SwAV"): (0.0, 0.0),
    ("circles", "GEDI"): (1.00, 0.01),
}


def _line(row: str, column: str, steps: int | None, group: Group) -> dict[str, str]:
    published = PUBLISHED.get((row, column)) if steps is None else None
    cells = {"data": row, "method": column, "T": "" if steps is None else str(steps)}
    cells["published NMI"] = "" if published is None else f"{published[0]:.2f} ± {published[1]:.2f}"
    cells["NMI"] = group.figure("nmi") or "diverged"
    for name, metric in (("AMI", "ami"), ("ARI", "ari"), ("accuracy", "accuracy")):
        cells[name] = group.figure(metric)
    cells |= {"KL to truth": group.figure("kl"), "walks that cross": group.figure("walk_crossing")}
    cells["NMI >= 0.97"] = group.share(lambda r: r["metrics"]["nmi"] >= 0.97)
    cells["NMI >= 0.9"] = group.share(lambda r: r["metrics"]["nmi"] >= 0.9)
    cells["genuine density"] = group.share(lambda r: r["density"].get("genuine") if r["density"] else None)
    cells |= {"seconds": group.seconds(), "runs": group.count()}
    return cells


def _toy_cells(seeds: range, profile: str) -> list[Cell]:
    columns = {
        "JEM": ("method=jem",),
        "SwAV": ("method=swav",),
        "GEDI": ("method=gedi",),
        "control: radial walk": ("method=gedi", "walk=radial", "walk.corrector=0"),  # round and round, exactly
    }
    return [Cell(row, c, seed, None, s) for row in DATA for c, s in columns.items() for seed in seeds]


def _shape_cells(seeds: range, profile: str) -> list[Cell]:
    columns = {"GEDI": (), "SwAV": ("method=swav",)}
    return [Cell(row, c, seed, None, s) for row in get_args(Shape) for c, s in columns.items() for seed in seeds]


def _ablation_cells(seeds: range, profile: str) -> list[Cell]:
    """One try each, as in the paper: restarts would hide what a variant does."""
    walks = [
        Cell(row, column, seed, steps, (f"method={method}", "n_init=1"))
        for row in DATA
        for column, method in VARIANTS.items()
        for steps in T_VALUES
        for seed in seeds
    ]
    flat = [
        Cell(row, column, seed, None, (f"method={column.lower()}", "n_init=1"))
        for row in DATA
        for column in ("JEM", "SwAV")
        for seed in seeds
    ]
    return walks + flat


def _draw_toy(out: Path, done: Mapping[Cell, "RunDirectory"]) -> list[Path]:
    from gedi.report import table_figures

    first = first_seed(done)
    return [
        table_figures.labels(first, DATA, ("SwAV", "GEDI"), out / "labels.png"),
        table_figures.gallery(first, DATA, "GEDI", out / "landscape.png"),
    ]


def _draw_shapes(out: Path, done: Mapping[Cell, "RunDirectory"]) -> list[Path]:
    from gedi.report import table_figures

    return [table_figures.gallery(first_seed(done), get_args(Shape), "GEDI", out / "shapes.png")]


def _draw_ablation(out: Path, done: Mapping[Cell, "RunDirectory"]) -> list[Path]:
    from gedi.report import table_figures

    scores: dict[tuple[str, str, int | None], list[float]] = {}
    for cell, run in done.items():
        scores.setdefault((cell.row, cell.column, cell.steps), []).append(run.results()["metrics"]["nmi"])
    return [
        table_figures.against_steps(scores, DATA, ("GEDI",), ("JEM", "SwAV"), T_VALUES, out / "nmi_against_T.png"),
        table_figures.against_steps(scores, DATA, tuple(VARIANTS), (), T_VALUES, out / "ablation.png"),
    ]


TOY_TABLES: dict[str, TableSpec] = {
    "toy": TableSpec(
        _toy_cells,
        _line,
        _draw_toy,
        (
            "On the whole test set. JEM is the generative term alone by Langevin chains, without score matching; it "
            "has no cluster head, so k-means on its latents speaks for it. The paper's has one output, one symbol for "
            "every point, so that its published NMI is 0 by construction. The control walks on the score -x, with no "
            "model: where it succeeds, clustering proves nothing about the density.",
        ),
    ),
    "toy-shapes": TableSpec(
        _shape_cells,
        _line,
        _draw_shapes,
        ("One preset for every shape. A density is genuine when it keeps every bound of docs/density.md.",),
    ),
    "toy-ablation": TableSpec(
        _ablation_cells,
        _line,
        _draw_ablation,
        ("One try a run (n_init=1): restarts would hide what a variant does.",),
    ),
}
