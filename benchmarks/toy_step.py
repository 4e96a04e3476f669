"""Iterations per second of the toy recipe against its plain eager form, in one process.

    python benchmarks/toy_step.py [--out FILE.json]

Only the ratios mean anything: they are medians over alternating blocks of both.
"""

import argparse
import json
import platform
import statistics
import time

import torch
from reference import Reference

from gedi.config import override, parse
from gedi.methods import build_model
from gedi.presets import preset
from gedi.random import Streams
from gedi.runs import prepare, train, versions
from gedi.training.step import walk_from


def alternate(ours, theirs, blocks: int = 7, calls: int = 20) -> dict[str, float]:
    """Milliseconds per call of both, measured in turns, and how many times faster ours is."""
    for warm in (ours, theirs):
        warm()
    times: dict[str, list[float]] = {"ours": [], "eager": []}
    for _ in range(blocks):
        for name, call, n in (("ours", ours, calls), ("eager", theirs, max(1, calls // 4))):
            began = time.perf_counter()
            for _ in range(n):
                call()
            times[name].append((time.perf_counter() - began) / n * 1e3)
    ratios = [b / a for a, b in zip(times["ours"], times["eager"], strict=True)]
    return {
        "ours_ms": round(statistics.median(times["ours"]), 3),
        "eager_ms": round(statistics.median(times["eager"]), 3),
        "ratio": round(statistics.median(ratios), 2),
    }


def stepper(stage: str, *settings: str):
    """One product step of a stage, already begun, as a function."""
    run = prepare(parse(override(preset("circles"), ["n_init=1", "log_every=1000000", *settings])))
    trainer = run.trainer
    while trainer.legs[trainer.leg].stage.name != stage:
        trainer.leg += 1
    trainer.network.train()
    trainer._begin(trainer.legs[trainer.leg])
    leg = trainer.legs[trainer.leg]

    def step():
        if trainer.iteration >= leg.stage.iterations - 1:
            trainer.iteration = 0
        trainer.step(leg)

    return step, run


def restarts() -> dict[str, float]:
    """Three tries against three runs, at a tenth of the length."""
    short = ["stage1.iterations=150", "stage2.iterations=140", "walk.steps=20", "good_enough=0", "log_every=1000000"]

    def seconds(n: int) -> float:
        run = prepare(parse(override(preset("circles"), [*short, f"n_init={n}"])))
        began = time.perf_counter()
        train(run)
        return time.perf_counter() - began

    seconds(1)
    ratios = [seconds(3) / seconds(1) for _ in range(3)]
    return {"three_tries_over_one": round(statistics.median(ratios), 2)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = parse(preset("circles"))
    step1, run = stepper("stage1")
    step2, run2 = stepper("stage2")
    model = build_model(config, (2,), 2, Streams(0))
    reference = Reference(model, config, run.box)
    x = run.data.train[: config.stage1.batch_size]
    walk = run2.trainer.legs[run2.trainer.leg].stage.walk
    energy = model.energy.snapshot()
    generator = torch.Generator().manual_seed(0)
    step2()  # walks every training point once, as each stage does

    began = time.perf_counter()
    walk_from(walk, energy, run.data.train, generator)
    walk_all = time.perf_counter() - began
    amortised_ms = walk_all / config.stage2.iterations * 1e3

    results = {
        "stage 1 step": alternate(step1, lambda: reference.stage1(x)),
        "stage 2 step, walks given": alternate(step2, lambda: reference.stage2(x, walked=x)),
        "walk of one batch": alternate(
            lambda: walk_from(walk, energy, x, generator), lambda: reference.walk(x), blocks=3, calls=4
        ),
    }
    given, walked = results["stage 2 step, walks given"], results["walk of one batch"]
    ours, eager = given["ours_ms"] + amortised_ms, given["eager_ms"] + walked["eager_ms"]
    results["stage 2 step, walks included"] = {
        "ours_ms": round(ours, 3),
        "eager_ms": round(eager, 3),
        "ratio": round(eager / ours, 2),
    }
    n1, n2 = config.stage1.iterations, config.stage2.iterations
    one = results["stage 1 step"]
    results["whole run"] = {
        "ours_s": round((n1 * one["ours_ms"] + n2 * ours) / 1e3, 1),
        "eager_s": round((n1 * one["eager_ms"] + n2 * eager) / 1e3, 1),
        "ratio": round((n1 * one["eager_ms"] + n2 * eager) / (n1 * one["ours_ms"] + n2 * ours), 2),
    }
    results["restarts"] = restarts()
    results["machine"] = {"processor": platform.processor() or platform.machine(), "threads": 1, **versions()}
    text = json.dumps(results, indent=2)
    print(text)
    if out:
        with open(out, "w") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
