"""The estimator: everything one wants from a table or from pictures of one's own, as scikit-learn spells it."""

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from gedi.answers import Answers, seed_of
from gedi.errors import UserError
from gedi.given import points_given
from gedi.verdicts import Verdict

if TYPE_CHECKING:
    from torch import nn

    from gedi.estimating import Page
    from gedi.fitted import Fitted


class GEDI(Answers, ClassNamePrefixFeaturesOutMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters, embeddings and a density of one's own data, learnt together and without labels.

    Rows (n, d) of an array, a frame or a tensor, or images (n, channels, height, width) as bytes or in [0, 1]. Scaling
    is inside; what comes out is in the units that went in.

    Args:
        n_clusters: how many to look for; ``"auto"``: as many as the graph of a table's rows falls into; 1: a
            density alone, whose embedding is not trained.
        method: of those that ``gedi presets --parts`` names; see docs/guide.md.
        encoder: ``"auto"``: a perceptron for rows, convolutions for images; ``"identity"``: rows are features already;
            a name such as ``"timm:resnet18"``, whose frozen features are clustered; or a module (n, *shape) -> (n, h).
        scaling: of columns: ``"together"``, ``"apart"``, ``"cosine"`` (only the direction of rows counts), or
            ``"auto"``, what their ranges speak for.
        missing: ``"refuse"`` values that are missing, or ``"fill"`` them with the median of their column.
        constraint: a :class:`gedi.logic.Constraint` on groups of rows, one after the other: it names the clusters.
        group_size: how many rows make a group; None: as many as the constraint has variables.
        iterations: training steps; None: the recipe's.
        max_time: seconds that training may take, about; fewer steps are made where the recipe's would take longer.
        n_init: tries, of which the best by its own loss is kept; None: the recipe's.
        batch_size: points in a step; None: the recipe's.
        contamination: share of the training points that counts as outliers; it sets ``offset_`` and ``border_``.
        device: ``"cpu"``, ``"cuda"``, ``"mps"`` or ``"auto"``.
        precision: ``"32-true"``, ``"bf16-mixed"`` or ``"16-mixed"``.
        random_state: a seed, on which all depends; None: another each time.
        verbose: whether to show progress.
        warm_start: whether a further ``fit`` goes on from the last one, with the same clusters by their numbers.

    Attributes:
        labels_: the cluster of each row that was fitted, (n,).
        n_clusters_: how many were looked for.
        n_features_in_: columns; of images, numbers in one.
        feature_names_in_: names of a frame's columns.
        verdict_: :class:`~gedi.verdicts.Verdict`: what training knows of itself without labels: ``.word``, ``.why``.
        offset_: the log density below which ``decision_function`` calls a point an outlier.
        border_, median_: what :func:`~gedi.usual.how_usual` says of the least usual point that is no outlier, and of
            the median one: where ``outlier_score`` is 1, and where it is 0.
        notes_: what was done to columns, in words.
        results_: figures, seconds, versions and the fingerprint of the data, as a run keeps them.
        fitted_: the :class:`~gedi.fitted.Fitted` behind it, on tensors.

    Example:
        >>> from sklearn.datasets import make_blobs
        >>> x, _ = make_blobs(200, centers=[[0, 0], [9, 9]], random_state=0)
        >>> model = GEDI(n_clusters=2, iterations=50, random_state=0).fit(x)
        >>> model.predict(x[:3]).shape, model.score_samples(x[:3]).shape, model.sample(4).shape
        ((3,), (3,), (4, 2))
        >>> bool(model.outlier_score([[50, -50]])[0] > 1)
        True
    """

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        method: str = "gedi",
        encoder: "str | nn.Module" = "auto",
        scaling: str = "auto",
        missing: str = "refuse",
        constraint: Any = None,
        group_size: int | None = None,
        iterations: int | None = None,
        max_time: float | None = None,
        n_init: int | None = None,
        batch_size: int | None = None,
        contamination: float = 0.01,
        device: str = "cpu",
        precision: str = "32-true",
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.method = method
        self.encoder = encoder
        self.scaling = scaling
        self.missing = missing
        self.constraint = constraint
        self.group_size = group_size
        self.iterations = iterations
        self.max_time = max_time
        self.n_init = n_init
        self.batch_size = batch_size
        self.contamination = contamination
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any = None, *, answers: Any = None) -> "GEDI":
        """Learn from every point; labels are not looked at.

        Args:
            X: rows or images; with a constraint, group after group.
            y: ignored.
            answers: what was observed of each group, where the constraint has several queries (a sum): one for each
                group, None or NaN where nothing was; or how likely each answer is, (groups, answers).
        """
        began = time.perf_counter()
        before: Fitted | None = getattr(self, "fitted_", None) if self.warm_start else None
        points = points_given(self, X, fitting=True)
        for note in self.notes_:
            warnings.warn(note, UserWarning, stacklevel=2)
        from gedi.estimating import estimate

        found = estimate(self, points, seed_of(self.random_state), before, began, answers)
        self.fitted_ = found.fitted
        self.n_clusters_: int = found.fitted.clusters
        self.labels_ = found.labels
        self.offset_, self.border_, self.median_ = found.offset, found.border, found.median
        self.results_: dict[str, Any] = found.results
        self.page_: Page | None = found.page
        self.verdict_ = Verdict.of(found.results["verdict"])
        return self

    def save(self, folder: str | Path) -> None:
        """Write a folder: weights as safetensors, settings as JSON, and a model card, README.md."""
        check_is_fitted(self)
        from gedi.sharing import save_estimator

        save_estimator(self, folder)

    @classmethod
    def load(cls, folder: str | Path, encoder: "nn.Module | None" = None) -> "GEDI":
        """What :meth:`save` has written; an encoder of your own must be given again. No code of the folder is run."""
        from gedi.sharing import load_estimator

        return load_estimator(cls, folder, encoder)

    def report(self, path: str | Path) -> Path:
        """Write a page on the fit, one HTML file: the verdict, figures and pictures."""
        check_is_fitted(self)
        if self.page_ is None:
            raise UserError("report needs what fit measured, and a model from a folder has none: fit it again")
        from gedi.estimating import write_page

        return write_page(self, Path(path))

    @property
    def _n_features_out(self) -> int:
        """Columns of what :meth:`transform` gives."""
        return int(self.fitted_.width)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "fill"
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
