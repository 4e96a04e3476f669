"""What the guard makes of settings that no energy model survives: is each run recovered, or stopped with its cause?

    python benchmarks/hostile.py [--seeds 50] [--first 0] [--jobs 2] [--out FILE.json] [--set section.key=value]...

Circles at thirty times the learning rate, with plain Langevin moves of a thousand times the step (no Metropolis test
that could refuse them). A run must end in one of two ways: trained to the end, with finite weights and figures, and
what the guard did in the results; or stopped with one line that names the cause. Anything else is a failure: NaN in the
model or the figures, no cause, or bad clusters without a word of the guard.
"""

import argparse
import json
import math
import multiprocessing
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch

from gedi.config import override, parse
from gedi.directory import RunDirectory
from gedi.errors import DivergenceError
from gedi.fitting import prepare
from gedi.presets import preset
from gedi.runs import execute, versions

LEARNING_RATE, STEP = 30, 1000


def hostile(settings):
    """The recipe for circles, thirty and a thousand times too fast."""
    calm = parse(preset("circles"))
    step = calm.density.noise**2 / 2  # what the recipe's step is tied to
    return parse(
        override(
            preset("circles"),
            [
                f"stage1.learning_rate={LEARNING_RATE * calm.stage1.learning_rate}",
                f"stage2.learning_rate={LEARNING_RATE * calm.stage2.learning_rate}",
                f"density.step_size={STEP * step}",
                "density.metropolis=false",
                "density.teleports=0",
                *settings,
            ],
        )
    )


def one(seed, settings):
    torch.set_num_threads(1)
    config = hostile([*settings, f"seed={seed}"])
    with tempfile.TemporaryDirectory() as folder:
        directory = RunDirectory.create(Path(folder, "run"))
        run = prepare(config)
        found = {"seed": seed}
        try:
            results = execute(run, directory)
            metrics = results["metrics"]
            numbers = [value for value in metrics.values() if isinstance(value, float)]
            found |= {
                "end": "trained",
                "nmi": metrics["nmi"],
                "kl": metrics["kl"],
                "genuine": results["density"]["genuine"],
            }
            found["figures_finite"] = all(math.isfinite(value) for value in numbers)
        except DivergenceError as error:
            found |= {"end": "stopped", "cause": str(error)}
        events = [record for record in directory.metrics() if record.get("event") == "guard"]
        found |= {"interventions": len(events), "causes": sorted({record["cause"] for record in events})}
        has_model = (directory.path / "model" / "model.safetensors").is_file()
        found["model_finite"] = (
            all(bool(x.isfinite().all()) for x in directory.fitted().model.state_dict().values())
            if has_model
            else None
        )
        return found


def failed(found):
    if found["end"] == "stopped":
        return found["model_finite"] is False or not found["cause"]
    silent = found["interventions"] == 0 and found["nmi"] < 0.97
    return silent or not (found["model_finite"] and found["figures_finite"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    options = parser.parse_args()
    runs = []
    with ProcessPoolExecutor(options.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        seeds = range(options.first, options.first + options.seeds)
        waiting = [pool.submit(one, seed, options.settings) for seed in seeds]
        for future in as_completed(waiting):
            runs.append(future.result())
            print(json.dumps(runs[-1]), flush=True)
            if options.out:
                runs.sort(key=lambda found: found["seed"])
                options.out.write_text(json.dumps({"runs": runs, "versions": versions()}, indent=1) + "\n")
    ends = {end: sum(found["end"] == end for found in runs) for end in ("trained", "stopped")}
    stepped_in = sum(found["interventions"] > 0 for found in runs)
    print(f"{len(runs)} runs: {ends}, the guard stepped into {stepped_in}; failures: {sum(map(failed, runs))}")
    raise SystemExit(any(map(failed, runs)))


if __name__ == "__main__":
    main()
