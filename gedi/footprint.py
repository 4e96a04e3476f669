"""What a run needs of memory at the very least, told by its settings before anything is read or made."""

import itertools
import math
from collections.abc import Sequence

from gedi.config import Config
from gedi.data import SHAPES
from gedi.memory import refuse_what_cannot_fit

_FLOAT = 4
_TRAINED = 4 * _FLOAT  # a weight, its gradient, and the two moments of Adam


def check_data(config: Config) -> None:
    """Refuse data that cannot be held, as far as the settings tell how large they are."""
    d = config.data
    padded = d.channels * (2 * d.pad + 1) ** 2 * _FLOAT  # of one image, however small it is without its border
    parts: dict[str, float] = {f"data.pad={d.pad}": padded}
    if d.name in SHAPES:
        row = 2 * 8 + 2 * _FLOAT + 8  # as drawn, as kept, and the label
        parts |= {f"data.n_train={d.n_train}": d.n_train * row, f"data.n_test={d.n_test}": d.n_test * row}
    elif d.name.endswith("-addition"):
        parts |= {
            f"data.triplets={d.triplets}": 3 * d.triplets * padded,
            f"data.free={d.free}": 0 if d.free == "all" else d.free * padded,
            f"data.validation={d.validation}": 3 * d.validation * padded,
        }
    if d.side is not None:
        parts[f"data.side={d.side}"] = d.side**2
    refuse_what_cannot_fit(parts)


def check_training(config: Config, shape: Sequence[int], points: int, clusters: int) -> None:
    """Refuse a network, chains or batches that cannot be held, for a number of points of a shape."""
    m, stages = config.model, config.stages.values()
    point = math.prod(shape) * _FLOAT
    of_point = f"points of shape {tuple(shape)}"
    rows = min(points, max((stage.batch_size for stage in stages if stage.iterations), default=1))
    layers = [*m.hidden, m.latent] if m.encoder == "mlp" else []
    widths = [math.prod(shape), *layers] if m.of_rows else [m.width * 9, m.width]
    heads = m.embedding if m.head == "prototypes" else m.latent
    parts: dict[str, float] = {
        f"a batch of {rows} {of_point}": rows * point,
        f"{'model.hidden' if m.encoder == 'mlp' else f'model.width={m.width}'}": config.density.encoders
        * sum(a * b for a, b in itertools.pairwise(widths))
        * _TRAINED,
        f"model.projector={m.projector}": m.projector * m.embedding * _TRAINED,
        f"model.clusters={clusters}": clusters * (heads * _TRAINED + rows * _FLOAT),
        f"model.finer={m.finer}": m.finer * (m.embedding * _TRAINED + rows * _FLOAT),
        f"model.latent={m.latent}": m.latent * rows * _FLOAT,
        f"model.embedding={m.embedding}": m.embedding * rows * _FLOAT,
    }
    for held, n in config.density.footprint().items():
        parts[f"{held} {of_point}"] = n * point
    refuse_what_cannot_fit(parts)
