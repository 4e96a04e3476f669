"""What a table costs: seconds and memory of a fit, against rows and columns.

    python benchmarks/table_cost.py

Five Gaussians; every fit is a process of its own, so that its most memory is its own. Seconds are processor time.
"""

import argparse
import json
import multiprocessing
import resource
import time

ROWS = [(1_000, 20), (10_000, 20), (100_000, 20), (1_000_000, 20)]
COLUMNS = [(5_000, 2), (5_000, 10), (5_000, 50), (5_000, 200), (5_000, 1_000)]


def fitted(rows: int, columns: int, seed: int) -> dict[str, float]:
    """One fit, and the same rows predicted."""
    import numpy as np
    import torch
    from sklearn.metrics import normalized_mutual_info_score

    import gedi

    torch.set_num_threads(1)
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(5, columns)) * (8 / np.sqrt(columns)) ** 0.5 * 2
    labels = rng.integers(5, size=rows)
    points = (centres[labels] + rng.normal(size=(rows, columns))).astype(np.float32)
    began = time.process_time()
    model = gedi.fit(points, {"preset": "table", "seed": seed}, clusters=5)
    fit = time.process_time() - began
    said = model.predict(points)
    predict = time.process_time() - began - fit
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    nmi = normalized_mutual_info_score(labels, np.asarray(said))
    return {"fit": round(fit, 1), "predict": round(predict, 2), "memory": round(memory), "nmi": round(float(nmi), 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=200)
    asked = parser.parse_args()
    for rows, columns in ROWS + COLUMNS:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply(fitted, (rows, columns, asked.seed))
        print(json.dumps({"rows": rows, "columns": columns, **found}), flush=True)


if __name__ == "__main__":
    main()
