"""An estimator in a folder: its model, what its input is like, and a card. Nothing in it can run code."""

import json
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr
from torch import nn

from gedi.checkpoints import write_whole
from gedi.errors import UserError
from gedi.fitted import ABOUT, WEIGHTS, Fitted
from gedi.frames import FrameColumns
from gedi.run_files import read_json
from gedi.sharing.card import write_card
from gedi.verdicts import Verdict

ESTIMATOR = "estimator.json"
_CURE = "put back a copy, or fit it again"
E = TypeVar("E")


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Column(_Plain):
    name: StrictStr
    words: list[StrictStr] | None
    fill: StrictFloat | None
    whole: bool


class _Written(_Plain):
    """``estimator.json``."""

    parameters: dict[StrictStr, StrictInt | StrictFloat | bool | StrictStr | None]
    left_out: list[StrictStr]
    n_features: StrictInt = Field(gt=0)
    names: list[StrictStr] | None
    columns: list[_Column] | None
    id: StrictStr | None = None
    frame: StrictStr | None = Field(pattern="^(pandas|polars|pyarrow)$")
    medians: list[StrictFloat] | None
    offset: StrictFloat | None
    border: StrictFloat | None = None  # not kept before outlier scores looked at the surroundings
    median: StrictFloat | None
    results: dict[StrictStr, Any]


def save_estimator(estimator: Any, folder: str | Path) -> None:
    """Write a fitted estimator into a folder; labels of the rows that were fitted are not kept."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"a model is saved into a folder, but {str(folder)!r} is a file; give another name")
    estimator.fitted_.save(folder)
    given = {name: _plain(value) for name, value in estimator.get_params().items()}
    known = {name: value for name, value in given.items() if isinstance(value, int | float | str | None)}
    names, medians = getattr(estimator, "feature_names_in_", None), getattr(estimator, "medians_", None)
    columns = estimator.columns_
    written = {
        "parameters": known,
        "left_out": sorted(set(given) - set(known)),
        "n_features": int(estimator.n_features_in_),
        "names": None if names is None else [str(name) for name in names],
        "columns": None if columns is None else columns.written(),
        "frame": estimator.frame_,
        "id": estimator.id_,
        "medians": None if medians is None else medians.astype(float).tolist(),
        "offset": _finite(estimator.offset_),
        "border": _finite(estimator.border_),
        "median": _finite(estimator.median_),
        "results": estimator.results_,
    }
    write_whole(folder / ESTIMATOR, (json.dumps(written, indent=2) + "\n").encode())
    write_card(estimator, folder)


def load_estimator(kind: type[E], folder: str | Path, encoder: nn.Module | None = None) -> E:
    """A fitted estimator from a folder; one of a run's model alone is fitted too, and knows less of its input.

    Args:
        kind: the class, :class:`gedi.GEDI`.
        folder: what :func:`save_estimator` wrote, the folder ``model`` of a run, or the run.
        encoder: like the one that it was trained with, if that was one's own.
    """
    folder = model_folder(folder)
    fitted = Fitted.load(folder, encoder)
    path = folder / ESTIMATOR
    written = read_json(path, _Written, _CURE) if path.is_file() else None
    own = {} if encoder is None else {"encoder": encoder}
    known = {} if written is None else written["parameters"]
    made: Any = kind(**{**known, **own})
    made.fitted_, made.n_clusters_, made.page_, made.notes_ = fitted, fitted.clusters, None, []
    columns = (written or {}).get("columns")
    made.columns_ = None if columns is None else FrameColumns.read(columns)
    made.frame_, made.id_ = (written or {}).get("frame"), (written or {}).get("id")
    columns_in = getattr(fitted.inputs, "columns", None) or int(np.prod(fitted.shape))
    made.n_features_in_ = columns_in if written is None else written["n_features"]
    if written is not None and written["names"] is not None:
        made.feature_names_in_ = np.array(written["names"], dtype=object)
    if written is not None and written["medians"] is not None:
        made.medians_ = np.array(written["medians"])
    made.results_ = {} if written is None else written["results"]
    for name in ("offset", "border", "median"):
        value = None if written is None else written.get(name)
        setattr(made, f"{name}_", float("nan") if value is None else value)
    if written is not None and written["offset"] is not None and "border" not in written:
        made.border_, made.median_ = _found_again(made)
    if fitted.verdict is not None:
        made.verdict_ = Verdict.of(fitted.verdict)
    return made  # type: ignore[no-any-return]


def _found_again(made: Any) -> tuple[float, float]:
    """The border and the median of a model saved before they were kept: by the points that its density stands on."""
    from gedi.usual import border, usual_kept

    usual = usual_kept(made.fitted_)
    return (made.offset_, made.median_) if usual is None else border(usual.beside, made.contamination)


def model_folder(folder: str | Path) -> Path:
    """The folder of a model: the one given, or ``model`` in the directory of a run."""
    folder = Path(folder).expanduser()
    if folder.is_file():
        raise UserError(f"a model is a folder with {WEIGHTS} and {ABOUT}, got the file {folder.name!r}")
    if not folder.is_dir():
        raise UserError(f"a model's folder must exist, but {str(folder)!r} is not there")
    return folder if (folder / ABOUT).is_file() or not (folder / "model").is_dir() else folder / "model"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
