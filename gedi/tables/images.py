"""The image tables: clusters, ablations, features, samples and outliers."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gedi.tables.spec import Cell, Group, TableSpec, first_seed

if TYPE_CHECKING:
    from gedi.directory import RunDirectory

ROWS = ("mnist", "fashion-mnist", "svhn", "cifar10", "cifar100")
SMALL_ROWS = ("digits",)  # of a laptop alone: the paper has no such data
METHODS = {"JEM": "jem", "Barlow": "barlow", "SwAV": "swav", "GEDI": "gedi"}
VARIANTS = {"no NF, 2 enc.": "no-nf-2-enc", "no NF": "no-nf", "GEDI": "gedi"}
#: Data sets that each should find strange; the paper's pairs first.
STRANGE: dict[str, tuple[str, ...]] = {
    "mnist": ("fashion-mnist", "noise"),
    "fashion-mnist": ("mnist", "noise"),
    "svhn": ("cifar10", "cifar100", "noise"),
    "cifar10": ("svhn", "cifar100", "noise"),
    "cifar100": ("svhn", "cifar10", "noise"),
}
#: NMI, the best of 10 runs; over the whole test set or in batches the paper does not say.
PUBLISHED_NMI: dict[tuple[str, str], float] = {
    ("svhn", "JEM"): 0.04, ("svhn", "Barlow"): 0.20, ("svhn", "SwAV"): 0.24, ("svhn", "GEDI"): 0.39,
    ("cifar10", "JEM"): 0.04, ("cifar10", "Barlow"): 0.22, ("cifar10", "SwAV"): 0.39, ("cifar10", "GEDI"): 0.41,
    ("cifar100", "JEM"): 0.05, ("cifar100", "Barlow"): 0.46, ("cifar100", "SwAV"): 0.69, ("cifar100", "GEDI"): 0.72,
    ("svhn", "no NF, 2 enc."): 0.21, ("svhn", "no NF"): 0.31,
    ("cifar10", "no NF, 2 enc."): 0.38, ("cifar10", "no NF"): 0.40,
    ("cifar100", "no NF, 2 enc."): 0.75, ("cifar100", "no NF"): 0.76,
}  # fmt: skip
_SIX = ("JEM", "Barlow", "SwAV", "no NF, 2 enc.", "no NF", "GEDI")


def _published(rows: Mapping[str, tuple[float, ...]]) -> dict[tuple[str, str], float]:
    return {(row, method): value for row, values in rows.items() for method, value in zip(_SIX, values, strict=True)}


#: Accuracy of a linear classifier on frozen latents.
PUBLISHED_PROBE = _published(
    {
        "svhn": (0.20, 0.84, 0.44, 0.29, 0.52, 0.56),
        "cifar10": (0.23, 0.63, 0.53, 0.48, 0.50, 0.51),
        "cifar100": (0.03, 0.35, 0.14, 0.12, 0.15, 0.15),
    }
)
PUBLISHED_FID = _published(
    {
        "svhn": (166, 454, 489, 158, 173, 208),
        "cifar10": (250, 413, 430, 209, 265, 236),
        "cifar100": (240, 374, 399, 210, 237, 244),
    }
)
#: AUROC of ``-|grad log p|``, by the data set of the training and the strange one.
PUBLISHED_OOD: dict[tuple[str, str], dict[tuple[str, str], float]] = {
    (row, strange): {(row, method): value for method, value in zip(_SIX, values, strict=True)}
    for row, strange, values in (
        ("svhn", "cifar10", (0.75, 0.43, 0.21, 0.76, 0.97, 0.94)),
        ("svhn", "cifar100", (0.75, 0.5, 0.28, 0.75, 0.94, 0.93)),
        ("cifar10", "svhn", (0.43, 0.31, 0.24, 0.43, 0.31, 0.31)),
        ("cifar10", "cifar100", (0.54, 0.56, 0.51, 0.53, 0.53, 0.55)),
        ("cifar100", "svhn", (0.48, 0.43, 0.50, 0.47, 0.32, 0.38)),
        ("cifar100", "cifar10", (0.48, 0.42, 0.46, 0.47, 0.49, 0.50)),
    )
}

#: What a default recipe is held against: no density, noise as long as its walks, the paper's walk on its density, and
#: a density that decodes the latents of the clusters' encoder: trained first, or from the start beside them.
CONTROLS: dict[str, tuple[str, ...]] = {
    "clusters alone": ("stage1.iterations=0", "walk.composed=false"),
    "noise of the same length": ("walk.energy=noise",),
    "the paper's walk": ("walk.direction=constant", "walk.steps=10", "walk.radius=0.5"),
    "one encoder, density first": ("density.own_encoder=false", "stage2.density.denoising=1"),
    "one encoder, density beside": (
        "density.own_encoder=false", "stage1.iterations=0", "stage2.density.denoising=10", "walk.energy=live",
        "walk.start=0.4",
    ),
}  # fmt: skip

_NO_WARPS = ("augment.rotation=0", "augment.shear=0", "augment.scale=0")
#: Where the density might help: few images, or augmentation that says little of what may change.
REGIMES: dict[str, tuple[str, ...]] = {
    "1,000 images": ("data.limit=1000",),
    "2,000 images, shifts and noise only": ("data.limit=2000", *_NO_WARPS),
}
_SHORT = ("stage1.iterations=400", "stage2.iterations=600")
_ALONE = ("stage1.iterations=0",)
_NO_MERGING = ("stage2.moves.merge.moments=[]", "parts.agreement.start=0", "parts.balance.start=0")
_COMPOSED = ("walk.composed=true", "walk.refresh=200")
#: What the density adds to the clusters, one change each. The control's step is as long as the relaxing walk.
CONTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "clusters alone": _ALONE,
    "one encoder, energy first and beside": (
        "density.own_encoder=false", "stage2.fresh_optimiser=true",
        "stage2.density.generative=0.1", "stage2.density.penalty=0.001",
    ),
    "control, a step of noise": (*_ALONE, *_COMPOSED, "walk.energy=radial", "walk.steps=1", "walk.radius=8.0"),
    "the paper's walk": (*_COMPOSED, "walk.steps=10", "walk.radius=0.5"),
    "a walk that relaxes": (
        *_COMPOSED, "walk.steps=5", "walk.radius=4.0", "walk.direction=fresh",
        "walk.relax=6", "walk.relax_step_size=3.0",
    ),
}  # fmt: skip


def _line(row: str, column: str, steps: int | None, group: Group) -> dict[str, str]:
    published = PUBLISHED_NMI.get((row, column))
    cells = {"data": row, "method": column, "published NMI": _number(published)}
    cells["NMI, batches of 64"] = group.figure("nmi_batch64") if published is not None else ""
    cells["its chance level"] = group.figure("nmi_batch64_chance") if published is not None else ""
    for name, metric in (("NMI", "nmi"), ("AMI", "ami"), ("ARI", "ari"), ("accuracy", "accuracy")):
        cells[name] = group.figure(metric)
    cells["NMI"] = cells["NMI"] or "diverged"
    cells |= {"clusters used": group.figure("clusters_used"), "effective rank": group.figure("effective_rank")}
    cells["energy gap"] = group.figure("fresh_energy_gap")
    return cells | {"processor seconds": group.processor_seconds(), "seconds": group.seconds(), "runs": group.count()}


def _probe_line(row: str, column: str, steps: int | None, group: Group) -> dict[str, str]:
    return {
        "data": row,
        "method": column,
        "published linear probe": _number(PUBLISHED_PROBE.get((row, column))),
        "linear probe": group.measured("probe", "accuracy"),
        "k-NN": group.measured("probe", "knn"),
        "effective rank of latents": group.measured("probe", "effective_rank_of_latents"),
        "runs": group.count(),
    }


def _fid_line(row: str, column: str, steps: int | None, group: Group) -> dict[str, str]:
    cells = {
        "data": row,
        "method": column,
        "published FID": _number(PUBLISHED_FID.get((row, column))),
        "network": ", ".join(
            sorted({r["evaluation"]["fid"]["network"] for r in group.finished if "fid" in r["evaluation"]})
        ),
    }
    for kind in ("fresh", "buffer"):
        found = [r["evaluation"].get("fid", {}).get(kind, {}) for r in group.finished]
        keys = {key for figures in found for key in figures if key.startswith("fid") and not key.endswith("_samples")}
        for key in sorted(keys):
            cells[f"{key}, {kind} chains"] = group.measured("fid", kind, key)
        cells[f"precision, {kind}"] = group.measured("fid", kind, "precision")
        cells[f"recall, {kind}"] = group.measured("fid", kind, "recall")
    return cells | {"runs": group.count()}


def _ood_line(row: str, column: str, steps: int | None, group: Group) -> dict[str, str]:
    cells = {"trained on": row, "method": column}
    for strange in dict.fromkeys(name for names in STRANGE.values() for name in names):
        published = PUBLISHED_OOD.get((row, strange), {}).get((row, column))
        cells[f"{strange}: published"] = _number(published)
        for score in ("score_norm", "log_density", "max_probability"):
            cells[f"{strange}: {score.replace('_', ' ')}"] = group.measured("ood", strange, f"auroc_{score}")
    return cells | {"runs": group.count()}


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _cells(methods: Mapping[str, str]) -> Callable[[range, str], list[Cell]]:
    def cells(seeds: range, profile: str) -> list[Cell]:
        return [_method_cell(row, c, m, seed, profile) for row in ROWS for c, m in methods.items() for seed in seeds]

    return cells


def _method_cell(row: str, column: str, method: str, seed: int, profile: str) -> Cell:
    """A laptop's default recipes have no samples to train an energy by: JEM is made of their siblings that have."""
    sibling = f"{row}-energy" if method == "jem" and profile == "laptop" else ""
    return Cell(row, column, seed, None, (f"method={method}",), sibling)


def _cluster_cells(seeds: range, profile: str) -> list[Cell]:
    """The methods; at a laptop also the controls of its recipes."""
    if profile == "paper":
        return _cells(METHODS)(seeds, profile)
    return [
        cell
        for row in (*SMALL_ROWS, *ROWS)
        for cell in [
            *(_method_cell(row, column, m, seed, profile) for column, m in METHODS.items() for seed in seeds),
            *(Cell(row, name, seed, None, settings) for name, settings in CONTROLS.items() for seed in seeds),
        ]
    ]


def _ablation_cells(seeds: range, profile: str) -> list[Cell]:
    """The paper's variants of its own recipe; of ours, what the density and the merging contribute."""
    if profile == "paper":
        return [cell for cell in _cells(VARIANTS)(seeds, profile) if cell.row in ("svhn", "cifar10", "cifar100")]
    contributions = [
        Cell("mnist", f"{regime}: {name}", seed, None, (*_SHORT, *settings, *change), "mnist-energy")
        for regime, settings in REGIMES.items()
        for name, change in CONTRIBUTIONS.items()
        for seed in seeds
    ]
    parts = {
        "60,000 images: clusters alone": (),
        "60,000 images: no merging": (*_NO_MERGING,),
        "60,000 images: no finer clusters": (
            *_NO_MERGING, "stage2.terms.finer.weight=0", "model.finer=0",
        ),
    }  # fmt: skip
    alone = (*_ALONE, "stage2.iterations=1200")
    return contributions + [
        Cell("mnist", c, seed, None, (*alone, *s), "mnist-energy") for c, s in parts.items() for seed in seeds
    ]


def _small(profile: str, **more: Any) -> dict[str, Any]:
    """What an evaluation may cost at a profile: a laptop looks at part of the images."""
    return more | ({"limit": 5000, "samples": 300} if profile == "laptop" else {"samples": 5000})


def _measure_probe(cell: Cell, profile: str) -> dict[str, Any]:
    recipe = "sgd" if profile == "paper" else "lbfgs"
    return _small(profile, parts=("probe",), recipe=recipe)


def _measure_fid(cell: Cell, profile: str) -> dict[str, Any]:
    return _small(profile, parts=("fid",))


def _measure_ood(cell: Cell, profile: str) -> dict[str, Any]:
    return _small(profile, parts=("ood",), against=STRANGE[cell.row])


def _draw(out: Path, done: Mapping[Cell, "RunDirectory"]) -> list[Path]:
    """Clusters, samples and walks of the first seed's GEDI runs."""
    from gedi.report.page import image_pictures

    runs = first_seed(done)
    return [
        path for (row, column), run in runs.items() if column == "GEDI" for _, path in image_pictures(run, out / row)
    ]


def _draw_energies(out: Path, done: Mapping[Cell, "RunDirectory"]) -> list[Path]:
    """How dense each run finds its own images and others."""
    from gedi.report import image_figures
    from gedi.report.page import kept_energies

    drawn = []
    for (row, column), run in first_seed(done).items():
        if (run.path / "model" / "energies.safetensors").is_file():
            aurocs = {name: r["auroc_log_density"] for name, r in run.evaluation().get("ood", {}).items()}
            path = out / f"energies-{row}-{METHODS.get(column) or VARIANTS[column]}.png"  # no spaces: it becomes a link
            drawn.append(image_figures.energy_histogram(kept_energies(run), path, aurocs, f"{column} on {row}"))
    return drawn


IMAGE_TABLES: dict[str, TableSpec] = {
    "images": TableSpec(
        _cluster_cells,
        _line,
        _draw,
        (
            "NMI, AMI, ARI and accuracy (clusters matched to classes) on the whole test set. Methods without a cluster "
            "head by k-means. Published are the best of ten runs, ours are means. The paper does not say whether its "
            "NMI is over the whole test set or averaged over batches: ours stands here both ways, the latter with what "
            "clusters dealt out at random reach in it (docs/metrics.md). At the laptop profile GEDI walks by noise and "
            "denoising; its controls have no density, noise that is as long, the paper's walk on the same density, and "
            "one encoder for clusters and density.",
        ),
        folder="images",
    ),
    "image-ablation": TableSpec(
        _ablation_cells,
        _line,
        lambda out, done: [],
        (
            "Laptop: on MNIST, what the density and the merging contribute, one change a line. Warps are affine; the "
            "control's noise is as long as the relaxing walk. Paper: the paper's variants.",
        ),
        folder="images",
    ),
    "probe": TableSpec(
        _cells(METHODS | VARIANTS),
        _probe_line,
        lambda out, done: [],
        ("Accuracy of classifiers on frozen latents, by labels; at the laptop profile on 5,000 images.",),
        folder="images",
        measure=_measure_probe,
    ),
    "fid": TableSpec(
        _cells({name: method for name, method in (METHODS | VARIANTS).items() if name not in ("Barlow", "SwAV")}),
        _fid_line,
        _draw,
        ("Only a figure called fid, without a network's name, may be held against published ones.",),
        folder="images",
        measure=_measure_fid,
    ),
    "ood": TableSpec(
        _cells(METHODS | VARIANTS),
        _ood_line,
        _draw_energies,
        ("AUROC of telling the test images from others; published by the score's norm.",),
        folder="images",
        measure=_measure_ood,
    ),
}
