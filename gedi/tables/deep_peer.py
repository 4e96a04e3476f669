"""A deep way to cluster tables that is not ours: IDEC of ClustPy, where it is installed."""

import contextlib
import io
from functools import lru_cache
from typing import Any

import numpy as np

IDEC = "IDEC"


class Deep:
    """Improved deep embedded clustering, an autoencoder whose latents are drawn to centres, as ClustPy makes it.

    Its own settings: 100 epochs before, 150 with centres, batches of 256, a latent of 10 numbers.

    Args:
        clusters: how many.
        seed: on which it depends.

    Source: Guo et al. 2017; ClustPy's code.
    """

    def __init__(self, clusters: int, seed: int) -> None:
        from clustpy.deep import IDEC as Theirs

        self._own = Theirs(clusters, random_state=seed, device="cpu")

    def fit_predict(self, rows: np.ndarray) -> np.ndarray:
        """Learn from rows (n, d) and give the cluster of each."""
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):  # its progress
            found: np.ndarray = self._own.fit(rows.astype(np.float32)).labels_
        return found

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """The cluster of each row."""
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            found: np.ndarray = self._own.predict(rows.astype(np.float32))
        return found


@lru_cache
def deep_peers() -> dict[str, Any]:
    """IDEC by its name; none where ClustPy, or the torchvision that it imports, cannot be imported."""
    try:
        import clustpy.deep  # noqa: F401
    except (ImportError, RuntimeError):  # torchvision that does not fit torch fails in either way
        return {}
    return {IDEC: Deep}
