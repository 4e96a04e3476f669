"""How much of an image training step is the network's own passes.

    python benchmarks/image_step.py [--width 128] [--repeats 5]

The step is that of the preset ``cifar10-paper``, stage 2: 20 Langevin moves and 10 walk moves of 64 images, then one
forward and backward pass of data, views, walk and samples. The bare passes are the same passes of the same network on
the same numbers of images, and nothing else: no draws, no buffer, no augmentation, no terms, no optimiser. Both are
timed in turns, in one process, on one thread, by CPU time; random images stand in for CIFAR-10. Also: the score
without parameter gradients against a backward pass that makes them, memory over iterations, and cost against the
number of moves.
"""

import argparse
import json
import platform
import resource
import statistics
import time
from pathlib import Path

import torch

from gedi.config import override, parse
from gedi.data import Dataset, Pixels, StoredImages
from gedi.presets import preset
from gedi.runs import prepare
from gedi.score import score


def clock(function) -> float:
    began = time.process_time()  # of this one thread: other work on the machine does not count
    function()
    return time.process_time() - began


def in_turns(functions, repeats):
    """Median seconds of each, the functions taking turns."""
    times = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            times[name].append(clock(function))
    return {name: statistics.median(values) for name, values in times.items()}


def make(width, *settings):
    g = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (512, 3, 32, 32), generator=g, dtype=torch.uint8)
    stored = StoredImages(images, Pixels(mean=0.48, std=0.25))
    labels = torch.arange(512) % 10
    data = Dataset("random", stored, stored, labels, labels)
    changes = [
        f"model.width={width}",
        f"model.projector={2 * width}",
        f"model.embedding={width}",
        "sampling.buffer=512",
    ]
    run = prepare(parse(override(preset("cifar10-paper"), [*changes, "stage1.iterations=0", *settings])), data=data)
    run.trainer.fit(stop_after=1)  # allocations and plans are made once
    return run


def bare_passes(run):
    """The network's passes of one step, without the rest."""
    trainer, c = run.trainer, run.method_config
    model, n = trainer.model, c.stage2.batch_size
    x = trainer.train[:n]
    many = torch.cat([x] * 5)  # anchor, view, walk, data, samples

    def passes():
        for _ in range(c.sampling.steps + c.walk.steps):
            score(model.energy, x)
        model.zero_grad()
        latents = torch.split(model.encoder(many), n)
        outputs = model.heads(latents[:3])
        energies = [model.energy.of_latent(latent).sum() for latent in latents[3:]]
        (sum(out.logits.sum() for out in outputs) + sum(energies)).backward()

    return passes


def measure(width, repeats):
    run = make(width)
    trainer = run.trainer
    leg = trainer.legs[0]
    times = in_turns({"step": lambda: trainer.step(leg), "bare passes": bare_passes(run)}, repeats)
    return {
        "width": width,
        "step_ms": round(times["step"] * 1e3, 1),
        "bare_passes_ms": round(times["bare passes"] * 1e3, 1),
        "share_of_the_step_in_bare_passes": round(times["bare passes"] / times["step"], 3),
    }


def score_without_parameters(width, repeats):
    run = make(width)
    model, x = run.trainer.model, run.trainer.train[:64]

    def with_parameters():
        y = x.clone().requires_grad_()
        model.zero_grad()
        model.energy(y).sum().backward()

    times = in_turns({"ours": lambda: score(model.energy, x), "with": with_parameters}, repeats)
    return round(times["with"] / times["ours"], 2)


def memory_over(iterations):
    """Peak resident memory (MiB) after a tenth of the iterations, and after all."""
    run = make(8, "sampling.steps=2", "walk.steps=1")
    leg = run.trainer.legs[0]
    peaks = []
    for upto in (iterations // 10, iterations):
        while run.trainer.iteration < upto:
            run.trainer.step(leg)
        peaks.append(round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1))
    return peaks


def against_moves(width, repeats):
    """Seconds of a step for several numbers of moves: linear if the increments are alike."""
    runs = {f"SGLD {n}": make(width, f"sampling.steps={n}", "walk.steps=1") for n in (5, 10, 20)}
    runs |= {f"T {n}": make(width, "sampling.steps=1", f"walk.steps={n}") for n in (5, 10, 20)}
    times = in_turns({name: (lambda r=r: r.trainer.step(r.trainer.legs[0])) for name, r in runs.items()}, repeats)
    return {name: round(value * 1e3, 1) for name, value in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    memory = memory_over(200)  # first: the peak never falls again
    record = {
        "steps": [measure(arguments.width, arguments.repeats), measure(32, 5)],
        "backward with parameters / score": score_without_parameters(32, 9),
        "peak_memory_mib": {"after 20 iterations": memory[0], "after 200": memory[1]},
        "step_ms_by_moves_at_width_16": against_moves(16, 7),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    print(json.dumps(record, indent=2))
    Path(__file__).with_suffix(".json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
