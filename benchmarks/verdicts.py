"""Does the verdict tell runs that failed from runs that did not? Every case below, held against labels it never saw.

    python benchmarks/verdicts.py [--seeds 2] [--first 200] [--only CASE]... [--out FILE.json]

The limits of the verdict were chosen on seeds below 200; what is reported is from 200 up. Exit code 1 if a run is
trusted whose NMI is below 0.9, or one of a shape with enough points is not trusted although its NMI is above 0.95.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import torch

from gedi.config import override, parse
from gedi.data import SHAPES
from gedi.presets import preset
from gedi.directory import RunDirectory
from gedi.fitting import prepare
from gedi.runs import execute, versions


def unequal(rng, n=6000, share=0.9):
    """Moons, 90 % of the points in one of them."""
    x, y = SHAPES["moons"]().draw(10 * n, rng)
    parts = [(y == k).nonzero()[: round(size), 0] for k, size in ((0, share * n), (1, (1 - share) * n))]
    rows = torch.cat(parts)[torch.from_numpy(rng.permutation(n))]
    return x[rows].numpy(), y[rows].numpy()


def even(rng, n=6000):
    """Points spread evenly over a square: there is nothing to find."""
    return rng.uniform(-1, 1, (n, 2)).astype("float32"), rng.integers(0, 2, n)


def normal(rng, n=6000):
    """One round cluster, of which two are asked for."""
    return rng.standard_normal((n, 2)).astype("float32"), rng.integers(0, 2, n)


def columns(rng, n=6000):
    """Three clusters far apart in ten columns."""
    y = rng.integers(0, 3, n)
    return (rng.standard_normal((n, 10)) + 6 * np.eye(10)[y]).astype("float32"), y


def turned(rng, n=6000):
    """Moons in a plane of ten columns, with noise in all of them."""
    x, y = SHAPES["moons"]().draw(n, rng)
    plane = np.linalg.qr(rng.standard_normal((10, 2)))[0]
    return (x.numpy() @ plane.T + 0.05 * rng.standard_normal((n, 10))).astype("float32"), y.numpy()


def stretched(rng, n=6000):
    """Moons whose second column is in other units."""
    x, y = SHAPES["moons"]().draw(n, rng)
    return x.numpy() * np.float32([1, 100]), y.numpy()


def outliers(rng, n=6000):
    """Moons with five points fifty times as far out as the others."""
    x, y = SHAPES["moons"]().draw(n, rng)
    x[:5] = 50 * torch.from_numpy(rng.standard_normal((5, 2))).float()
    return x.numpy(), y.numpy()


HEALTHY = tuple(SHAPES)
# case: what is drawn (a preset's own data if None), the preset, its settings
CASES = {
    **{name: (None, name, ()) for name in HEALTHY},
    "moons, 200 points": (None, "moons", ("data.n_train=200",)),
    "moons, 400 points": (None, "moons", ("data.n_train=400",)),
    "circles, 150 points": (None, "circles", ("data.n_train=150",)),
    "moons, 90 % in one": (unequal, "toy", ("model.clusters=2",)),
    "moons, much noise": (None, "moons", ("data.noise=0.25",)),
    "rings, 2 of 3 asked for": (None, "rings", ("model.clusters=2",)),
    "moons, 3 asked for": (None, "moons", ("model.clusters=3",)),
    "blobs, 2 of 3 asked for": (None, "blobs", ("model.clusters=2",)),
    "even noise": (even, "toy", ("model.clusters=2",)),
    "one normal cluster": (normal, "toy", ("model.clusters=2",)),
    "one normal cluster, short walks": (normal, "toy", ("model.clusters=2", "walk.steps=10")),
    "ten columns": (columns, "toy", ("model.clusters=3",)),
    "moons, turned into ten columns": (turned, "toy", ("model.clusters=2",)),
    "moons, an axis times 100": (stretched, "toy", ("model.clusters=2",)),
    "moons, five points far off": (outliers, "toy", ("model.clusters=2",)),
    "moons, walks that know no density": (None, "moons", ("walk=radial", "walk.corrector=0")),
    "moons, no stage 1": (None, "moons", ("stage1.iterations=1",)),
    "spirals, short walks": (None, "spirals", ("walk.steps=5",)),
}


def one(case, seed):
    """The verdict on one run, and beside it what labels say."""
    draw, name, settings = CASES[case]
    with tempfile.TemporaryDirectory() as folder:
        if draw is not None:
            x, y = draw(np.random.default_rng(seed))
            np.savez(Path(folder, "points.npz"), x=x, y=y)
            settings = (*settings, "data.name=file", f"data.path={folder}/points.npz")
        config = parse(override(preset(name), [*settings, f"seed={seed}"]))
        results = execute(prepare(config), RunDirectory.create(Path(folder, "run")))
    found = results["verdict"]
    return {
        "case": case,
        "seed": seed,
        "nmi": round(results["metrics"]["nmi"], 3),
        "word": found["word"],
        "against": [figure for figure, check in found["checks"].items() if check["word"] != "trusted"],
        "checks": {figure: float(f"{check['value']:.3g}") for figure, check in found["checks"].items()},
        "losses": [float(f"{loss:.3g}") for loss in results["restarts"]["selection_losses"]],
        "seconds": round(results["seconds"]["total"], 1),
    }


def wrong(found):
    """Trust in what failed, or none in a shape that was found."""
    if found["word"] == "trusted":
        return found["nmi"] < 0.9
    return found["case"] in HEALTHY and found["nmi"] > 0.95


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=200)
    parser.add_argument("--only", action="append", choices=CASES)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    runs = []
    for case in options.only or CASES:
        for seed in range(options.first, options.first + options.seeds):
            runs.append(one(case, seed))
            print(json.dumps(runs[-1]), flush=True)
            if options.out:
                options.out.write_text(json.dumps({"runs": runs, "versions": versions()}, indent=1) + "\n")
    words = {word: sum(found["word"] == word for found in runs) for word in ("trusted", "doubtful", "failed")}
    print(f"{len(runs)} runs: {words}; wrong: {[(found['case'], found['seed']) for found in runs if wrong(found)]}")
    raise SystemExit(any(map(wrong, runs)))


if __name__ == "__main__":
    main()
