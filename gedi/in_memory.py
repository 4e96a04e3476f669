"""Settings and points as a caller gives them, in memory: what :func:`gedi.fit` begins with."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gedi.config import Config, parse
from gedi.data import Dataset, Pixels, Scaling, StoredImages
from gedi.errors import UserError
from gedi.fitted import as_points
from gedi.logic import Constraint
from gedi.presets import completed, preset
from gedi.settings import merge
from gedi.sources import pixels_of


def settings_of(
    config: Config | Mapping[str, Any] | str | None, clusters: int | Literal["auto"] | None = None
) -> Config:
    """Settings, the name of a preset, or plain data laid over one, as a config."""
    if isinstance(config, Config):
        settings: Mapping[str, Any] = config.model_dump()
    elif isinstance(config, str):
        settings = preset(config)
    elif config is None or isinstance(config, Mapping):
        settings = completed(config or {})
    else:
        raise UserError(f"config must be settings or the name of a preset, got {type(config).__name__}")
    return parse(settings if clusters is None else merge(settings, {"model": {"clusters": clusters}}))


def dataset_of(
    points: Any,
    config: Config,
    constraint: Constraint | None = None,
    inputs: Scaling | Pixels | None = None,
    answers: Any = None,
) -> Dataset:
    """Points of one's own, all to learn from; they are judged on themselves.

    Args:
        points: rows (n, d), or images (n, c, h, w) as bytes or in [0, 1].
        config: how rows are scaled, or images shifted.
        constraint: its variables are the size of the groups that points come in.
        inputs: what makes points for the network of what is given; None: it follows from the points.
        answers: what was observed of each group, where the constraint has several queries.
    """
    given = as_points(points)
    size = 1 if constraint is None else len(constraint.domains)
    if len(given) % size:
        raise UserError(f"points must come in groups of {size}, as the constraint has variables, got {len(given)}")
    if answers is not None:
        if constraint is None:
            raise UserError(
                "answers are what was observed of groups, by the queries of a constraint: give a constraint"
            )
        answers = listed(answers)
    if inputs is None:
        inputs = (
            pixels_of(config.data)
            if given.dim() == 4
            else Scaling.of(given, config.data.columns, config.data.components)
        )
    x = StoredImages(given, inputs) if isinstance(inputs, Pixels) else inputs(given)
    groups = len(given) // size if size > 1 else 0
    return Dataset("points", x, x, group_size=size, groups=groups, inputs=inputs, answers=answers)


def listed(answers: Any) -> list[Any] | Tensor:
    """Answers, one for each group, as a list; or how likely each is, (groups, answers), as a tensor.

    Example:
        >>> import numpy as np
        >>> listed(np.array([3, 1])), listed(np.eye(2)).shape
        ([3, 1], torch.Size([2, 2]))
    """
    if getattr(answers, "ndim", 1) == 2:
        return torch.as_tensor(np.asarray(answers), dtype=torch.float32)
    given = answers.tolist() if hasattr(answers, "tolist") else answers
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        raise UserError(f"answers must be a list, one for each group or None, got {type(answers).__name__}")
    return [None if _missing(answer) else answer for answer in given]


def _missing(answer: Any) -> bool:
    """Whether nobody observed it: None, or NaN, as arrays and frames spell it."""
    return answer is None or (isinstance(answer, float) and math.isnan(answer))
