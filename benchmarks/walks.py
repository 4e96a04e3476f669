"""What a density makes of a shape when trained alone: do walks keep to their cluster, do samples pass for data?

    python benchmarks/walks.py [moons circles] [--seed 200] [--out FILE.json]

Densities, lengths and walks are those of `gedi table family`. A walk ends in another cluster if another curve of the
truth is likelier there; the two-sample test is of 500 samples and 500 test points; KL is to the true density, of those
whose likelihood is exact.
"""

import argparse
import json
from pathlib import Path

import torch

from gedi.building import walk_settings
from gedi.config import override, parse
from gedi.evaluation import mmd_test
from gedi.fitting import prepare
from gedi.presets import preset
from gedi.random import Streams
from gedi.tables.family import _SHORT, DENSITIES, _of

TESTED = 500
EXACT = ("flow", "kernel")


def measured(shape: str, name: str, seed: int) -> dict[str, float]:
    """One density on one shape."""
    settings = [*_of(name, _SHORT), *DENSITIES[name], "stage2.iterations=1", f"seed={seed}"]
    run = prepare(parse(override(preset(shape), settings)))
    walk = walk_settings(run.method_config)
    legs = run.trainer.course.legs
    run.trainer.fit(stop_after=legs[0].stage.iterations if len(legs) > 1 else 0)
    model, density = run.trainer.model.eval(), run.trainer.density
    energy, streams = density.energy(model), Streams(seed)
    x, y, truth = run.data.test, run.data.test_labels, run.data.truth
    ends = walk(energy, x, streams["walk"])
    found = {
        "walks that cross": float((truth.nearest_cluster(ends) != y).float().mean()),
        "length of a walk": float((ends - x).norm(dim=1).mean()),
    }
    samples = density.sample(model, TESTED, streams["samples"])
    found["two-sample p"] = mmd_test(samples, x[:TESTED], streams["test"])["p_value"]
    found["samples off the data"] = float(
        (truth.log_density(samples) < truth.log_density(x).quantile(0.01)).float().mean()
    )
    if name in EXACT:
        found["KL to the truth"] = float((truth.log_density(x) - density.log_density(model, x)).mean())
    return {key: round(value, 4) for key, value in found.items()}


def main() -> None:
    """Every density on every shape; what is there already stays."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=["moons", "circles"])
    parser.add_argument("--seed", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("walks.json"))
    given = parser.parse_args()
    found = json.loads(given.out.read_text()) if given.out.is_file() else {}
    for shape in given.shapes:
        for name in DENSITIES:
            if f"{shape}, {name}" in found or name.startswith("none"):
                continue
            found[f"{shape}, {name}"] = measured(shape, name, given.seed)
            given.out.write_text(json.dumps(found, indent=2) + "\n")
            print(shape, name, found[f"{shape}, {name}"], flush=True)


if __name__ == "__main__":
    main()
