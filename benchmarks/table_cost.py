"""What a table costs: seconds and memory of a fit, against rows and columns.

    python benchmarks/table_cost.py --picture docs/images/table-cost.png

Five Gaussians; every fit is a process of its own, so that its most memory is its own. Seconds are processor time.
"""

import argparse
import json
import multiprocessing
import resource
import time
from pathlib import Path

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


def drawn(found: list[dict[str, float]], path: Path) -> None:
    """Seconds and memory as curves: against rows on the left, against columns on the right."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2, sharex="col", sharey="row")
    for side, (of, sizes, fixed) in enumerate(
        (("rows", ROWS, f"{ROWS[0][1]} columns"), ("columns", COLUMNS, f"{COLUMNS[0][0]:,} rows"))
    ):
        lines = [line for line in found if (line["rows"], line["columns"]) in sizes]
        at = [line[of] for line in lines]
        for part, label in (("fit", "fit"), ("predict", "predict the same rows")):
            axes[0][side].plot(at, [line[part] for line in lines], "o-", label=label)
        axes[1][side].plot(at, [line["memory"] for line in lines], "o-", color="#4a5568")
        axes[0][side].set(title=f"against {of}, {fixed}", xscale="log")
        axes[1][side].set(xlabel=of, ylim=(0, None))
    axes[0][0].set_ylabel("processor seconds")
    axes[1][0].set_ylabel("most memory, MB")
    axes[0][0].legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=200)
    parser.add_argument("--picture", type=Path, help="where the curves go")
    asked = parser.parse_args()
    lines: list[dict[str, float]] = []
    for rows, columns in ROWS + COLUMNS:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply(fitted, (rows, columns, asked.seed))
        lines.append({"rows": rows, "columns": columns, **found})
        print(json.dumps(lines[-1]), flush=True)
    if asked.picture:
        drawn(lines, asked.picture)


if __name__ == "__main__":
    main()
