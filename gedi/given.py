"""What is given to the estimator: arrays, frames, tensors and images, checked and as numbers."""

from typing import Any, get_args

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from gedi.errors import UserError, unknown
from gedi.frames import FrameColumns, Missing, as_frame, kind_of_frame, with_text_names
from gedi.refused import clearer, plain_array

FEWEST = 4  # points that a clustering can be learnt from
_CHANNELS = (1, 3)


def points_given(estimator: Any, X: Any, *, fitting: bool = False) -> np.ndarray:
    """Rows (n, d) float, or images (n, channels, height, width).

    When fitting, the estimator learns what its input is like: ``n_features_in_``, ``feature_names_in_``, ``columns_``
    (how a frame's columns become numbers), ``frame_`` and ``notes_``; later input must be like it.

    Args:
        estimator: a :class:`gedi.GEDI`.
        X: an array, a frame, a tensor or a list.
        fitting: whether it is fitted now.
    """
    X = with_text_names(plain_array(X.detach().cpu().numpy() if hasattr(X, "detach") else X))
    if isinstance(estimator.encoder, str) and ":" in estimator.encoder:  # of a pretrained network
        from gedi.features import features_of

        X = features_of(estimator.encoder, X)
    if estimator.missing not in get_args(Missing):
        raise unknown("missing", str(estimator.missing), get_args(Missing))
    if fitting:
        estimator.columns_, estimator.frame_, estimator.id_, estimator.notes_ = None, None, None, []
    if np.ndim(X) == 4 if hasattr(X, "ndim") else False:
        return _images(estimator, np.asarray(X), fitting)
    if isinstance(X, np.ndarray) and X.ndim == 3:
        raise UserError(
            f"rows must be (n, d), and images (n, channels, height, width), got dim 3, {X.shape}: give X[:, None] if "
            "these are grey images, X.reshape(len(X), -1) if each is one row"
        )
    frame = as_frame(X)
    if frame is not None:
        return _of_frame(estimator, X, frame, fitting)
    return _of_array(estimator, X, fitting)


def _images(estimator: Any, images: np.ndarray, fitting: bool) -> np.ndarray:
    if images.shape[1] not in _CHANNELS and images.shape[3] in _CHANNELS:
        raise UserError(
            f"images must be (n, channels, height, width), got {images.shape}, which seems to have its channels last; "
            "give X.transpose(0, 3, 1, 2)"
        )
    if fitting:
        if len(images) < FEWEST:
            raise UserError(f"at least {FEWEST} images are needed, got n_samples={len(images)}")
        estimator.n_features_in_ = int(np.prod(images.shape[1:]))
        estimator.__dict__.pop("feature_names_in_", None)
    return images


def _of_frame(estimator: Any, X: Any, frame: Any, fitting: bool) -> np.ndarray:
    validate_data(estimator, X, reset=fitting, skip_check_array=True)  # names of columns, and how many
    if fitting:
        estimator.columns_ = FrameColumns.of(frame, estimator.missing)
        estimator.frame_ = kind_of_frame(frame)
        estimator.notes_ = estimator.columns_.notes(frame)
    if estimator.columns_ is None:  # fitted on an array
        return _of_array(estimator, X, fitting)
    fewest = FEWEST if fitting else 1
    numbers = estimator.columns_.numbers(frame)
    try:
        rows: np.ndarray = check_array(numbers, ensure_min_samples=fewest, estimator=estimator)
    except ValueError as error:
        raise clearer(error, numbers, estimator.missing, estimator.columns_.names) from None
    return rows


def _of_array(estimator: Any, X: Any, fitting: bool) -> np.ndarray:
    columns = estimator.columns_
    if columns is not None and any(column.words is not None for column in columns.columns):
        raise UserError("a frame with words was fitted: give a frame with the same columns, got no frame")
    fills = estimator.missing == "fill"
    try:
        rows: np.ndarray = validate_data(
            estimator,
            X,
            reset=fitting,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan" if fills else True,
            ensure_min_samples=FEWEST if fitting else 1,
        )
    except ValueError as error:
        raise clearer(error, X, estimator.missing) from None
    return _filled(estimator, rows, fitting) if fills else rows


def _filled(estimator: Any, rows: np.ndarray, fitting: bool) -> np.ndarray:
    """Rows with the medians that were fitted in place of what is missing."""
    missing = np.isnan(rows)
    if fitting:
        if missing.all(axis=0).any():
            raise UserError(f"column {int(missing.all(axis=0).argmax())} must hold numbers, but holds nothing")
        estimator.medians_ = np.nanmedian(rows, axis=0)
        if missing.any():
            count = int(missing.any(axis=0).sum())
            estimator.notes_ = [f"{int(missing.sum())} values in {count} columns are missing, filled with the medians"]
    return np.where(missing, estimator.medians_, rows).astype(rows.dtype)
