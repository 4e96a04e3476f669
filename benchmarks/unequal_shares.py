"""Images whose classes have unequal shares: clusters with shares found on the way, and with equal ones.

    python benchmarks/unequal_shares.py --seeds 200 201 202

prints NMI, ARI and accuracy on test images with the same shares, a line a run.
"""

import argparse
import dataclasses

import numpy as np
import torch

from gedi.config import override, parse
from gedi.data import Dataset
from gedi.fitting import measured_run, prepare, train
from gedi.presets import preset
from gedi.random import Streams
from gedi.sources import load_data

#: The part of each class that is kept.
KEPT = {
    "all": np.ones(10),
    "five classes, a quarter of each": np.repeat([1.0, 0.25], 5),
    "less and less of each class": np.linspace(1, 0.15, 10),
    "one class, three tenths of the others": np.r_[np.full(9, 0.3), 1],
}


def thinned(data: Dataset, kept: np.ndarray, seed: int) -> Dataset:
    """The data with a part of each class; which classes are common is drawn by the seed."""
    rng = np.random.default_rng(seed)
    kept = rng.permutation(kept)

    def rows(labels: torch.Tensor) -> torch.Tensor:
        some = [rng.permutation(np.flatnonzero(labels.numpy() == y)) for y in range(10)]
        return torch.from_numpy(np.sort(np.concatenate([x[: round(len(x) * kept[y])] for y, x in enumerate(some)])))

    train_rows, test_rows = rows(data.train_labels), rows(data.test_labels)
    return dataclasses.replace(
        data,
        train=data.train[train_rows],
        train_labels=data.train_labels[train_rows],
        test=data.test[test_rows],
        test_labels=data.test_labels[test_rows],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="digits")
    parser.add_argument("--seeds", type=int, nargs="+", default=[200, 201, 202, 203, 204])
    parser.add_argument("--only", nargs="+", choices=list(KEPT), default=list(KEPT))
    parser.add_argument("--shares", nargs="+", default=["equal", "found"])
    parser.add_argument("--set", nargs="+", default=[])
    parser.add_argument("--data-dir")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for seed in asked.seeds:
        for kept in asked.only:
            for shares in asked.shares:
                settings = [f"seed={seed}", f"stage2.moves.merge.shares={shares}", *asked.set]
                config = parse(override(preset(asked.preset), settings))
                data = thinned(load_data(config, Streams(seed), asked.data_dir), KEPT[kept], seed)
                prepared = prepare(config, data=data)
                train(prepared)
                metrics, _ = measured_run(prepared)
                found = "  ".join(f"{name} {metrics[name]:.3f}" for name in ("nmi", "ari", "accuracy"))
                print(f"{kept:40} seed {seed}  shares {shares:6} {found}", flush=True)


if __name__ == "__main__":
    main()
