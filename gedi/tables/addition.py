"""The addition tables: digits named by sums."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gedi.presets.addition import ENERGY
from gedi.tables.spec import Cell, Group, TableSpec, first_seed

if TYPE_CHECKING:
    from gedi.directory import RunDirectory

SIZES = ("addition-100", "addition-1000", "addition-10000")
METHODS = {
    "GEDI": ("method=gedi",),
    "without constraint": ("method=no-constraint",),
    "logic alone": ("method=logic-alone",),
    "supervised (upper bound)": ("method=supervised",),
}
NO_DENSITY = ("density.kind=none", "stage1.density=null", "stage1.iterations=0", "walk.composed=false")
#: What the density's walks are held against; the paper's own settings have no such walks.
CONTROLS = {
    "without the density": NO_DENSITY,
    "noise as long as the walks": ("walk.energy=noise",),
}
_FEWER = ("data.triplets=30", "stage2.batch_size=90")
_FEWER_WALKED = (*_FEWER, "stage1.batch_size=90")
#: Rows of the walks' table: the preset, what is said by hand of what may change in a digit, and further settings.
WALKED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "addition-100": ("addition-100", "warps", ()),
    "addition-100-crops": ("addition-100-crops", "crops and noise", ()),
    "addition-100-plain": ("addition-100-plain", "light noise", ()),
    "addition-30-warps": ("addition-100", "warps", _FEWER_WALKED),
    "addition-30-crops": ("addition-100-crops", "crops and noise", _FEWER_WALKED),
}
#: Accuracy and NMI, mean and standard deviation over 5 runs (the paper's addition table).
PUBLISHED: dict[tuple[str, str], tuple[tuple[float, float], tuple[float, float]]] = {
    ("addition-100", "logic alone"): ((0.10, 0.00), (0.00, 0.00)),
    ("addition-100", "without constraint"): ((0.08, 0.03), (0.28, 0.03)),
    ("addition-100", "GEDI"): ((0.25, 0.03), (0.41, 0.03)),
    ("addition-1000", "logic alone"): ((0.10, 0.00), (0.00, 0.00)),
    ("addition-1000", "without constraint"): ((0.09, 0.02), (0.47, 0.10)),
    ("addition-1000", "GEDI"): ((0.52, 0.26), (0.86, 0.06)),
    ("addition-10000", "logic alone"): ((0.10, 0.00), (0.00, 0.00)),
    ("addition-10000", "without constraint"): ((0.17, 0.12), (0.68, 0.09)),
    ("addition-10000", "GEDI"): ((0.98, 0.00), (0.97, 0.01)),
}

_SAMPLED = ("stage2.density.generative=0.1", "stage2.density.penalty=0.001")
_NO_AUGMENTATION = (
    "augment.rotation=0", "augment.shear=0", "augment.scale=0", "augment.shift=0", "augment.elastic=0",
)  # fmt: skip
_STAGE1 = (
    "stage1.iterations=300", "stage1.batch_size=60", "stage1.learning_rate=1e-3", "stage1.betas=[0.0,0.999]",
    "stage1.average=0.995", "stage1.density.generative=1.0", "stage1.density.penalty=0.003",
    "stage2.fresh_optimiser=true", *(f"density.{name}={json.dumps(value)}" for name, value in ENERGY.items()),
)  # fmt: skip
_WALK = (
    "stage2.terms.agreement_walk.kind=agreement", "stage2.terms.agreement_walk.look=walk",
    "stage2.terms.agreement_walk.weight=1.0", "walk.steps=5", "walk.radius=0.5", "walk.direction=constant",
)  # fmt: skip
#: One change each, from the recipe of addition-100 without its density; energies come in the density's place.
ABLATION: dict[str, tuple[str, ...]] = {
    "the recipe": (),
    "no alignment": ("stage2.moves.align.moments=[]",),
    "alignment by renaming only": ("stage2.moves.align.decode=false",),
    "uniform shares instead of the rule's": ("constraint.prior=uniform",),
    "crop and noise instead of warps": (*_NO_AUGMENTATION, "augment.crop=3", "augment.noise=0.3"),
    "noise alone instead of warps": (*_NO_AUGMENTATION, "augment.noise=0.3"),
    "energy trained first": _STAGE1,
    "energy trained first and beside": (*_STAGE1, *_SAMPLED),
    "energy first, walk as third view": (*_STAGE1, *_WALK),
    "the same, two encoders": (*_STAGE1, *_WALK, "density.own_encoder=true"),
    "30 triplets": _FEWER,
    "30 triplets, energy trained first": (*_FEWER, *_STAGE1),
    "noise alone, and walk, two encoders": (
        *_STAGE1, *_WALK, *_NO_AUGMENTATION, "augment.noise=0.3", "density.own_encoder=true",
    ),
}  # fmt: skip


def _line(row: str, column: str, steps: int | None, group: Group) -> dict[str, str]:
    published = PUBLISHED.get((row, column))
    paper = ["", ""] if published is None else [f"{mean:.2f} ± {std:.2f}" for mean, std in published]
    return {
        "triplets": row.split("-")[1],
        "method": column,
        "published accuracy": paper[0],
        "accuracy": group.figure("accuracy") or "diverged",
        "published NMI": paper[1],
        "NMI": group.figure("nmi"),
        "accuracy, clusters matched": group.figure("accuracy_matched"),
        "training triplets satisfied": group.figure("constraint_satisfied"),
        "seconds": group.seconds(),
        "runs": group.count(),
    }


def _walk_line(row: str, column: str, steps: int | None, group: Group) -> dict[str, str]:
    line = {name: value for name, value in _line(row, column, steps, group).items() if "published" not in name}
    return {"triplets": line.pop("triplets"), "augmentation": WALKED[row][1], **line}


def _cells(seeds: range, profile: str) -> list[Cell]:
    # the long runs first: two workers then end at about the same time
    methods = METHODS if profile == "paper" else METHODS | CONTROLS
    return [Cell(row, c, seed, None, s) for row in reversed(SIZES) for c, s in methods.items() for seed in seeds]


def _walk_cells(seeds: range, profile: str) -> list[Cell]:
    methods = {"GEDI": METHODS["GEDI"], **CONTROLS}
    return [
        Cell(row, column, seed, None, (*further, *settings), preset)
        for row, (preset, _, further) in WALKED.items()
        for column, settings in methods.items()
        for seed in seeds
    ]


def _ablation_cells(seeds: range, profile: str) -> list[Cell]:
    without = () if profile == "paper" else NO_DENSITY
    lines = {column: (*without, *settings) for column, settings in ABLATION.items()}
    if without:
        lines = {"the recipe, with the density": (), **lines}
    return [Cell("addition-100", column, seed, None, s) for column, s in lines.items() for seed in seeds]


def _draw(out: Path, done: Mapping[Cell, "RunDirectory"]) -> list[Path]:
    from gedi.report import table_figures

    runs = first_seed(done)
    return [table_figures.symbols(runs[row, "GEDI"], out / f"{row}.png") for row in SIZES if (row, "GEDI") in runs]


ADDITION_TABLES: dict[str, TableSpec] = {
    "addition": TableSpec(
        _cells,
        _line,
        _draw,
        (
            "On the whole MNIST test set. Accuracy is without matching: "
            "the symbol must be the digit. The supervised rows see the labels of the same images, through the same "
            "network and augmentation.",
        ),
    ),
    "addition-ablation": TableSpec(
        _ablation_cells,
        _line,
        lambda out, done: [],
        ("100 triplets; each line changes one thing in the recipe, which has no density but where a line says so.",),
    ),
    "addition-walks": TableSpec(
        _walk_cells,
        _walk_line,
        lambda out, done: [],
        (
            "On the whole MNIST test set, accuracy without matching; no image beside the triplets. Lines of one size "
            "and augmentation train as long: only where the second view begins differs, at the end of a walk, as far "
            "off in a direction that knows nothing, or at the image itself.",
        ),
    ),
}
