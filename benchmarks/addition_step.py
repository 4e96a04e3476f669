"""Where a training step of the addition preset goes: the network, the augmentation, the constraint.

    python benchmarks/addition_step.py

Random images stand in for MNIST: the cost is the same and no files are needed. One thread, medians, one process.
"""

import json
import platform
import statistics
import time
from pathlib import Path

import torch

from gedi.config import parse
from gedi.data import Dataset
from gedi.presets import preset
from gedi.runs import prepare
from gedi.training.stage import StepOutputs
from gedi.training.step import augmented
from gedi.types import Clustered

REPEATS = 15


def median_ms(function) -> float:
    for _ in range(3):
        function()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def main() -> None:
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(0)
    images = torch.rand(300, 1, 28, 28, generator=g)
    labels = torch.arange(300) % 10
    data = Dataset("random", images, images[:20], labels, labels[:20], group_size=3, groups=100)
    prepared = prepare(parse(preset("addition-100")), data=data)
    trainer = prepared.trainer
    trainer.fit(stop_after=1)
    leg = trainer.legs[0]
    stage = leg.stage
    x = images[: stage.batch_size]
    logits = torch.randn(2, stage.batch_size, 10, generator=g)

    def constraint() -> None:
        first, second = logits.clone().requires_grad_()
        out = StepOutputs(
            Clustered(first, first, first),
            {"noise": Clustered(second, second, second)},
            None,
            None,
            None,
            None,
            1.0,
            stage.batch_size,
        )
        stage.terms["constraint"][1](out).backward()

    def network() -> None:
        trainer.model.zero_grad()
        latents = torch.split(trainer.model.encoder(torch.cat([x, x])), len(x))
        sum(out.logits.sum() for out in trainer.model.heads(latents)).backward()

    figures = {
        "step": median_ms(lambda: trainer.step(leg)),
        "network alone, forward and backward": median_ms(network),
        "augmentation, both views": median_ms(lambda: [augmented(stage, x, g) for _ in range(2)]),
        "constraint, forward and backward": median_ms(constraint),
    }
    figures = {name: round(value, 2) for name, value in figures.items()}
    share = figures["constraint, forward and backward"] / figures["step"]
    record = {
        "milliseconds": figures,
        "constraint share of a step": round(share, 4),
        "batch": stage.batch_size,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    print(json.dumps(record, indent=2))
    Path(__file__).with_suffix(".json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
