"""What a fitted estimator answers of points, in the units and the kind of frame that were given."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gedi.frames import FrameColumns, make_frame
from gedi.given import points_given

if TYPE_CHECKING:
    from gedi.fitted import Fitted

_LEAST = 1e-3  # of a log density: points that differ by less are equally usual
_ROWS = 2**16  # asked about at a time: what is memory-mapped is not read as a whole


class Answers(TransformerMixin):  # type: ignore[misc]  # set_output wraps what a transformer's own class defines
    """Clusters, embeddings, densities, samples and walks of a fitted :class:`gedi.GEDI`."""

    fitted_: "Fitted"
    columns_: FrameColumns | None
    frame_: str | None
    id_: str | None
    offset_: float
    border_: float
    median_: float

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each point, (n,)."""
        return self._asked("predict", X).astype(np.int64)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each cluster, (n, n_clusters)."""
        return self._asked("probabilities", X)

    def transform(self, X: Any) -> np.ndarray:
        """The embedding of each point, on the unit sphere, (n, e)."""
        return self._asked("embed", X)

    def score_samples(self, X: Any) -> np.ndarray:
        """The log density of each point up to a constant, (n,): the higher, the more usual."""
        return self._asked("log_density", X)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log density: what a grid search goes by if it is told nothing else."""
        return float(self.score_samples(X).mean())

    def decision_function(self, X: Any) -> np.ndarray:
        """``score_samples`` minus ``offset_``, (n,): below 0 are outliers, as scikit-learn's detectors count."""
        above: np.ndarray = self.score_samples(X) - self.offset_
        return above

    def outlier_score(self, X: Any) -> np.ndarray:
        """How strange each point is, (n,): 0 is as usual as the median training point, above 1 are outliers.

        By the log density, held half against that of the surroundings where the density stands on points, as that of
        tables does: what is strange near a tight group may be denser than what is usual in a wide one. Points that
        were learnt from are asked about as if they had not been, so that strange ones among them show.
        """
        check_is_fitted(self)
        from gedi.usual import how_usual

        points = points_given(self, X)
        parts = [how_usual(self.fitted_, points[at : at + _ROWS]).beside for at in range(0, len(points), _ROWS)]
        return self.strangeness(np.concatenate([part.numpy() for part in parts]))

    def strangeness(self, usual: np.ndarray) -> np.ndarray:
        """Outlier scores by what :func:`~gedi.usual.how_usual` says ``beside`` the surroundings, (n,)."""
        apart = max(self.median_ - self.border_, _LEAST)
        strange: np.ndarray = (self.median_ - usual) / apart
        return strange

    def sample(self, n: int = 1, random_state: Any = None) -> Any:
        """n points of the density, in the units of what was fitted; a frame, if that was one."""
        check_is_fitted(self)
        seed = _seed(random_state)
        return self._as_given(self.fitted_.sample(n, seed).numpy())

    def walk(self, X: Any, steps: int | None = None, random_state: Any = None) -> Any:
        """Where walks on the density end that begin at each point; as long as those of training, if not told."""
        check_is_fitted(self)
        points = points_given(self, X)
        return self._as_given(self.fitted_.walk(points, _seed(random_state), steps).numpy())

    def _asked(self, question: str, X: Any) -> np.ndarray:
        check_is_fitted(self)
        points = points_given(self, X)
        ask = getattr(self.fitted_, question)
        parts = [ask(points[at : at + _ROWS]).numpy() for at in range(0, len(points), _ROWS)]
        return np.concatenate(parts)

    def _as_given(self, rows: np.ndarray) -> Any:
        if self.columns_ is None or self.frame_ is None:
            return rows
        return make_frame(self.columns_.back(rows), self.frame_)


def _seed(random_state: Any) -> int:
    return seed_of(random_state) if random_state is not None else 0


def seed_of(random_state: Any) -> int:
    """A seed: the number given, or one drawn."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return int(check_random_state(random_state).randint(2**31 - 1))
