"""Points drawn from a model, as a table, an array or a picture."""

from io import BytesIO
from pathlib import Path

import numpy as np
import torch

from gedi.checkpoints import write_whole
from gedi.errors import UserError
from gedi.estimator import GEDI
from gedi.report.image_figures import image_grid
from gedi.verbs.outputs import RowWriter


def write_samples(run: Path, n: int, out: Path | None, seed: int) -> None:
    """Draw n points of a model's density and write them, in the units that it was trained on."""
    from gedi import threads

    threads.begin()
    model = GEDI.load(run)
    points = model.fitted_.sample(n, seed).numpy()
    suffix = "" if out is None else out.suffix.lower()
    if out is not None and suffix == ".npy":
        out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(out, _npy(points))
    elif points.ndim == 4:
        if out is None or suffix != ".png":
            raise UserError("samples that are images need --out with a file that ends in .npy or .png")
        image_grid(torch.from_numpy(points), out, low=0.0, high=1.0)
    else:
        names = [str(name) for name in getattr(model, "feature_names_in_", range(points.shape[1]))]
        with RowWriter(out) as writer:
            writer.write(dict(zip(names, points.T, strict=True)))


def _npy(points: np.ndarray) -> bytes:
    held = BytesIO()
    np.save(held, points, allow_pickle=False)
    return held.getvalue()
