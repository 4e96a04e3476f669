"""How fast rows and images are predicted, against a bare pass of the same encoder.

    python benchmarks/predict_speed.py

In turns; the encoder is given what the network sees, so that scaling, heads, checks and the way out of the tensors are
all that ``predict`` has on top. It passes in parts of the same size, in one pass of all points as one would write it,
and with the heads behind it. Seconds are processor time, of which the medians count.
"""

import argparse
import json
import time
from statistics import median

import numpy as np
import torch

from gedi import GEDI

PART = 4000


def rows(n: int) -> tuple[GEDI, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(n, 20)).astype(np.float32)
    x[::2] += 5
    return GEDI(2, iterations=5, random_state=0).fit(x[:2000]), x


def images(n: int) -> tuple[GEDI, np.ndarray]:
    x = np.random.default_rng(0).random((n, 1, 28, 28)).astype(np.float32)
    return GEDI(2, iterations=2, random_state=0).fit(x[:200]), x


def ratios(model: GEDI, points: np.ndarray, rounds: int) -> dict[str, float]:
    """The throughput of ``predict`` over that of the network without it."""
    fitted = model.fitted_
    network, seen = fitted.model, fitted.inputs(torch.from_numpy(points)).contiguous()
    ways = {
        "predict": lambda: model.predict(points),
        "encoder in parts": lambda: [network.encoder(part) for part in torch.split(seen, PART)],
        "encoder at once": lambda: network.encoder(seen),
        "encoder and heads in parts": lambda: [network.clustered(part) for part in torch.split(seen, PART)],
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    with torch.no_grad():
        for _ in range(rounds + 1):
            for name, way in ways.items():
                began = time.process_time()
                way()
                seconds[name].append(time.process_time() - began)
    found = {name: median(times[1:]) for name, times in seconds.items()}  # the first round warms up
    return {name: round(time / found["predict"], 2) for name, time in found.items() if name != "predict"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for name, make, n in (("200,000 x 20", rows, 200_000), ("4,000 images", images, 4000)):
        print(json.dumps({"points": name, **ratios(*make(n), asked.rounds)}), flush=True)


if __name__ == "__main__":
    main()
