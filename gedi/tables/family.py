"""The family: every self-supervised class with every density on shapes, and every method by its name on MNIST."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gedi.tables.spec import Cell, Group, TableSpec, first_seed

if TYPE_CHECKING:
    from gedi.directory import RunDirectory

SHAPES = ("moons", "circles", "spirals")


def _in_place(*kinds: str) -> tuple[str, ...]:
    """Terms of the data, the view and the walk in place of Sinkhorn's."""
    left_out = ("stage2.terms.swapped=null", "stage2.terms.swapped_walk=null", "stage2.terms.negative_free=null")
    view = tuple(f"stage2.terms.{kind}={{weight: 1}}" for kind in kinds)
    return (*left_out, *view, f"stage2.terms.{kinds[0]}_walk={{kind: {kinds[0]}, look: walk, weight: 1}}")


#: What shapes clusters or embeddings, by its class: the preset's own walks and views.
OBJECTIVES: dict[str, tuple[str, ...]] = {
    "SwAV (GEDI)": (),
    "no Sinkhorn": ("method=gedi-no-sinkhorn",),
    "ProtoCPC": _in_place("proto_cpc"),
    "DeepCluster": _in_place("deep_cluster"),
    "InfoNCE": _in_place("contrastive"),
    "SimCLR": _in_place("nt_xent"),
    "Barlow Twins": _in_place("barlow"),
    "VICReg": _in_place("vicreg"),
    "W-MSE": _in_place("w_mse"),
    "MEC": _in_place("mec"),
    "CorInfoMax": _in_place("cor_info_max"),
}
#: Every density, and what it needs beside its name; the walk is the one that left its cluster least on seed 50.
DENSITIES: dict[str, tuple[str, ...]] = {
    "energy": (),
    "classifier's energy": ("density.kind=jem", "model.head=linear"),
    "contrastive energy": ("density.kind=contrastive",),
    "energy matching": ("density.kind=energy-matching",),
    "flow": ("density.kind=flow",),  # in the plane number by number is the same: each has one number to be given
    "VAE": (
        "density.kind=vae", "density.code=2", "walk.direction=latent", "walk.radius=0.1", "walk.steps=2",
    ),
    "denoiser": ("density.kind=denoiser", "walk.direction=denoise", "walk.radius=0.05", "walk.steps=10"),
    "kernel": ("density.kind=kernel", "stage1.iterations=0", "stage1.density=null", "stage2.density=null"),
    "none, walks on the score -x": (
        "density.kind=none", "stage1.iterations=0", "stage1.density=null", "stage2.density=null", "walk=radial",
    ),
}  # fmt: skip
#: At the laptop profile nothing has the preset's full length: there are too many cells.
_SHORT = ("n_init=1", "stage1.iterations=600", "stage2.iterations=200", "walk.steps=60")
_LONGER = ("stage1.iterations=1500",)  # densities whose steps cost a third, or less
_CHEAP = ("VAE", "denoiser")
#: Methods by their names, each on a preset's own network, views and steps.
METHODS = (
    "gedi", "gedi-no-sinkhorn", "swav", "deep-cluster", "proto-cpc", "cplearn", "simclr", "k-shot", "barlow", "vicreg",
    "w-mse", "mec", "cor-info-max", "ebclr", "jem",
)  # fmt: skip
_JOINED = " with "

_SAMPLED = ("jem",)  # methods that are the preset's energy, learnt by its samples
#: At the laptop profile everybody has a part of the preset's steps, so that the table ends within hours.
_IMAGES_SHORT = ("stage2.iterations=300",)


def _cells(seeds: range, profile: str) -> list[Cell]:
    short = _SHORT if profile == "laptop" else ("n_init=1",)
    alone = [Cell(row, m, seed, None, (f"method={m}", *short)) for row in SHAPES for m in METHODS for seed in seeds]
    together = [
        Cell(row, f"{objective}{_JOINED}{density}", seed, None, (*given, *_of(density, short), *model))
        for row in SHAPES
        for objective, given in OBJECTIVES.items()
        for density, model in DENSITIES.items()
        if not (density == "classifier's energy" and objective not in ("SwAV (GEDI)", "no Sinkhorn", "ProtoCPC"))
        for seed in seeds
    ]
    return alone + together


def _of(density: str, short: tuple[str, ...]) -> tuple[str, ...]:
    """The lengths for a density; what it needs beside its name comes after them."""
    return (*short, *_LONGER) if density in _CHEAP and len(short) > 1 else short


def _line(row: str, column: str, steps: int | None, group: Group) -> dict[str, str]:
    objective, _, density = column.partition(_JOINED)
    return {
        "data": row,
        "objective": objective,
        "density": density,
        "NMI": group.figure("nmi") or "diverged",
        "AMI": group.figure("ami"),
        "walks that cross": group.figure("walk_crossing"),
        "KL to truth": group.figure("kl"),
        "samples: 1-NN": group.figure("sample_1nn"),
        "seconds": group.seconds(),
        "runs": group.count(),
    }


def _image_cells(seeds: range, profile: str) -> list[Cell]:
    named = {method: "mnist-energy" if profile == "laptop" and method in _SAMPLED else "" for method in METHODS}
    short = _IMAGES_SHORT if profile == "laptop" else ()
    return [
        Cell("mnist", method, seed, None, (f"method={method}", *short), name)
        for method, name in named.items()
        for seed in seeds
    ]


def _image_line(row: str, column: str, steps: int | None, group: Group) -> dict[str, str]:
    return {
        "data": row,
        "method": column,
        "linear probe": group.measured("probe", "accuracy") or "diverged",
        "k-NN": group.measured("probe", "knn"),
        "NMI": group.figure("nmi"),
        "accuracy, clusters matched": group.figure("accuracy"),
        "seconds": group.seconds(),
        "runs": group.count(),
    }


def _measure(cell: Cell, profile: str) -> dict[str, Any]:
    return {"parts": ("probe",), "limit": 10_000 if profile == "laptop" else None}


def _draw(out: Path, done: Mapping[Cell, "RunDirectory"]) -> list[Path]:
    """On each shape: clusters of the methods, and what each density made of it."""
    from gedi.report import table_figures

    runs = first_seed(done)
    drawn = []
    for shape in SHAPES:
        named = {m: runs[shape, m] for m in METHODS if (shape, m) in runs}
        if named:
            drawn.append(table_figures.clusters(named, out / f"methods-{shape}.png"))
        grown = {d: runs[shape, c] for d in DENSITIES if (shape, c := f"SwAV (GEDI){_JOINED}{d}") in runs}
        grown = {d: run for d, run in grown.items() if not d.startswith("none")}
        if grown:
            found = {(d, "it"): run for d, run in grown.items()}
            drawn.append(table_figures.gallery(found, tuple(grown), "it", out / f"densities-{shape}.png"))
    return drawn


FAMILY_TABLES: dict[str, TableSpec] = {
    "family": TableSpec(
        _cells,
        _line,
        _draw,
        (
            "Methods by their names first, on the preset's own terms; then every objective with every density. The "
            "objective looks at the augmented view and at a walk on the density. Methods without a cluster head by "
            "k-means on their embedding. The last density is no model: where it succeeds, clusters prove nothing about "
            "a density. One try each; at the laptop profile 600 steps of the density alone (1,500 of VAE, denoiser), "
            "200 of everything and walks of 60 steps, where the preset has 1,500, 900 and 200.",
        ),
    ),
    "family-images": TableSpec(
        _image_cells,
        _image_line,
        lambda out, done: [],
        (
            "Accuracy of classifiers on frozen latents by labels; at the laptop profile on 10,000 images, after 300 "
            "steps of the last stage where the preset has 4,000.",
        ),
        folder="images",
        measure=_measure,
    ),
}
