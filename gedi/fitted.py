"""What was learnt, ready for points that it has never seen."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn

from gedi.building import build_model, walk_settings
from gedi.checkpoints import write_whole
from gedi.config import Config, parse
from gedi.data import Pixels, Projection, Scaling, chunks
from gedi.densities.density import Place
from gedi.errors import UserError
from gedi.footprint import check_training
from gedi.methods import has_clusters, has_density
from gedi.nn import Model
from gedi.proposing import graph_walk
from gedi.random import Streams
from gedi.renamed import VERSION, VERSION_KEY, renamed_tensors
from gedi.run_files import Shape, checksum_of, read_json, read_tensors, refuse
from gedi.sampling import Box
from gedi.score import score
from gedi.types import Clustered, EnergyFn

Record = dict[str, Any]
Inputs = Scaling | Pixels
_AT_A_TIME = 4000  # points that go through the network together
WEIGHTS, ABOUT = "model.safetensors", "config.json"  # in the folder of a model


class Fitted:
    """A trained network and its density, asked in the units of the points that were given.

    Points are given as they were for training: rows (n, d) before scaling, or images as bytes or in [0, 1].

    Args:
        config: with its method's changes.
        model: trained.
        inputs: what makes points for the network of what is given.
        shape: of one point as the network sees it.
        clusters: how many there are.
        box: where the density lives.
        own_encoder: whether the encoder is one's own, which no file describes.

    Attributes:
        verdict: what training knows of itself without labels: ``word`` and ``why``; None where nobody judged.
    """

    def __init__(
        self,
        config: Config,
        model: Model,
        inputs: Inputs,
        shape: tuple[int, ...],
        clusters: int,
        box: Box,
        *,
        own_encoder: bool = False,
        verdict: Record | None = None,
    ) -> None:
        self.config, self.model, self.inputs, self.shape = config, model.eval(), inputs, shape
        self.clusters, self.box, self.own_encoder, self.verdict = clusters, box, own_encoder, verdict
        self.density = config.density.bind(Place(box, box))

    @property
    def energy(self) -> EnergyFn:
        """``-log p(x)`` up to a constant, of points as the network sees them."""
        return self.density.energy(self.model)

    def predict(self, points: Any) -> Tensor:
        """The cluster of each point, (n,); the density is not asked."""
        self._needs_clusters("predict")
        return self._each(points, lambda x: self._seen(x).logits.argmax(dim=1))

    def probabilities(self, points: Any) -> Tensor:
        """``p(y|x)``, (n, clusters)."""
        self._needs_clusters("probabilities")
        return self._each(points, lambda x: self._seen(x).logits.softmax(dim=1))

    def embed(self, points: Any) -> Tensor:
        """The embedding of each point on the unit sphere, (n, e); for a method that trains none, its latent."""
        return self._each(points, self._embedding)

    @property
    def width(self) -> int:
        """Numbers in an embedding."""
        with torch.no_grad():
            return int(self._embedding(torch.zeros(1, *self.shape)).shape[1])

    def log_density(self, points: Any) -> Tensor:
        """``log p(x)`` up to a constant, (n,): the higher, the more usual."""
        self._needs_density("log_density")
        return self._each(points, lambda x: self.density.log_density(self.model, x))

    def score(self, points: Any) -> Tensor:
        """``grad log p(x)`` in the units of what is given, (n, *shape)."""
        self._needs_density("score")
        energy = self.energy
        given = self._given(points)
        given = given.float() / 255 if given.dtype == torch.uint8 else given
        return torch.cat([score(lambda x: energy(self.inputs(x)), part) for part in chunks(given, _AT_A_TIME)])

    def sample(self, n: int, seed: int = 0) -> Tensor:
        """n points of the density, in the units of what was given."""
        self._needs_density("sample")
        check_count("sample", "points", n)
        return self.inputs.back(self.density.sample(self.model, n, Streams(seed)["sample"]))

    def walk(self, points: Any, seed: int = 0, steps: int | None = None) -> Tensor:
        """Where a walk on the density ends that begins at each point, in the units of what is given.

        Walks are as long as those of training, unless ``steps`` says otherwise.
        """
        self._needs_density("walk")
        config = self.config
        if steps is not None:
            check_count("walk", "steps", steps)
            config = config.model_copy(update={"walk": config.walk.model_copy(update={"steps": steps})})
        if config.walk.energy == "graph":
            return self.inputs.back(self._each(points, graph_walk(self.model, config, seed)))
        walk, energy = walk_settings(config), self.energy
        return self.inputs.back(self._each(points, lambda x: walk(energy, x, Streams(seed)["walk"])))

    def save(self, folder: str | Path) -> None:
        """Write the model into a folder: weights as safetensors, and what it takes to build the network as JSON."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        content = save({name: x.contiguous() for name, x in self.model.state_dict().items()})
        write_whole(folder / WEIGHTS, content)
        about = {
            VERSION_KEY: VERSION,
            "shape": list(self.shape),
            "clusters": self.clusters,
            "low": self.box.low.tolist(),
            "high": self.box.high.tolist(),
            "inputs": _written(self.inputs),
            "config": self.config.model_dump(mode="json"),
            "own_encoder": self.own_encoder,
            "verdict": self.verdict,
            "checksum": checksum_of(content),
        }
        write_whole(folder / ABOUT, json.dumps(about).encode())

    @classmethod
    def load(cls, folder: str | Path, encoder: nn.Module | None = None) -> "Fitted":
        """A model from its folder; one with an encoder of your own wants one like it again. No code is run."""
        weights, path = (Path(folder) / name for name in (WEIGHTS, ABOUT))
        if not weights.is_file():
            raise UserError(f"{str(folder)!r} has no model yet: finish its run with gedi run --resume")
        about = read_json(path, Shape)
        if about.get("own_encoder") and encoder is None:
            raise UserError(
                f"{str(folder)!r} was trained with an encoder of your own: give one like it to load(folder, encoder)"
            )
        try:
            fitted = _built(about, encoder)
        except (ValueError, TypeError, RuntimeError) as error:
            refuse(path, str(error).splitlines()[0])
        tensors = read_tensors(weights, about.get("checksum"))
        try:
            fitted.model.load_state_dict(renamed_tensors(tensors))
        except RuntimeError:  # whose message has a line for each tensor
            refuse(weights, f"its weights are not those of the network in {path.name}")
        return fitted

    def _needs_clusters(self, asked: str) -> None:
        if not has_clusters(self.config):
            raise UserError(
                f"{asked} needs clusters, and method {self.config.method} trains none: cluster what embed gives"
            )

    def _needs_density(self, asked: str) -> None:
        if not has_density(self.config):
            raise UserError(
                f"{asked} needs a density, and this model has none: gedi presets --parts says which have one"
            )

    def _embedding(self, x: Tensor) -> Tensor:
        own = has_clusters(self.config) or any(
            term.shapes == "embedding" for stage in self.config.stages.values() for term in stage.terms.values()
        )
        return self._seen(x).embedding if own else self._seen(x).latent

    def _seen(self, x: Tensor) -> Clustered:
        return self.model.clustered(x)

    def _given(self, points: Any) -> Tensor:
        """What was given, as a tensor of as many points as there are."""
        given = as_points(points)
        if given.dim() - 1 != len(self.shape) or self._shape_of(given) != self.shape:
            columns = self.inputs.columns if isinstance(self.inputs, Scaling) else None
            shape = self.shape if columns is None else (columns,)
            raise UserError(
                f"points must be like those trained on, (n, {', '.join(map(str, shape))}) as the network sees "
                f"them, got {tuple(given.shape)}"
            )
        return given

    def _shape_of(self, given: Tensor) -> tuple[int, ...]:
        if isinstance(self.inputs, Pixels):
            return tuple(self.inputs(given[:1]).shape[1:])
        same = self.inputs.columns in (None, given.shape[1])
        return self.shape if same and self.inputs.projection is not None else tuple(given.shape[1:])

    @torch.no_grad()
    def _each(self, points: Any, ask: Callable[[Tensor], Tensor]) -> Tensor:
        return torch.cat([ask(self.inputs(part)) for part in chunks(self._given(points), _AT_A_TIME)])


def check_count(asked: str, of: str, n: Any) -> None:
    """Refuse a number that counts nothing."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise UserError(f"{asked} needs the number of {of}, at least 1, got {n!r}")


def needs_encoder(folder: str | Path) -> bool:
    """Whether a model was trained with an encoder of one's own, which no file describes."""
    path = Path(folder) / ABOUT
    return path.is_file() and bool(read_json(path, Shape).get("own_encoder", False))


def as_points(points: Any) -> Tensor:
    """Rows (n, d) or images (n, c, h, w) of an array, a tensor, a list or a frame: finite numbers."""
    x = points.detach().cpu() if isinstance(points, Tensor) else _tensor_of(points)
    if x.is_complex():
        raise UserError(f"points must be real numbers, got {x.dtype}; give real and imaginary part apart")
    if x.dim() not in (2, 4) or 0 in x.shape:
        raise UserError(f"points must be (n, d), or images (n, c, h, w), with n > 0, got shape {tuple(x.shape)}")
    if x.dtype == torch.uint8 and x.dim() == 4:
        return x
    x = x if x.dtype == torch.float64 and x.dim() == 2 else x.float()
    if not math.isfinite(x.sum()) and not (finite := torch.isfinite(x.flatten(1)).all(dim=1)).all():
        raise UserError(
            f"points must be finite: {int((~finite).sum())} of {len(x)} hold NaN or infinity "
            f"(the first is number {int((~finite).nonzero()[0])}); drop or fill them"
        )
    if x.dim() == 4 and (x.min() < 0 or x.max() > 1):
        raise UserError(
            f"images must be bytes (uint8) or numbers in [0, 1], got {x.min():g} to {x.max():g}; divide them by the "
            f"value of white"
        )
    return x


def _tensor_of(points: Any) -> Tensor:
    kind = f"a {type(points).__name__} that is no array"
    try:
        array = np.ascontiguousarray(points)
        kind = f"values of type {array.dtype.name}"
        return torch.from_numpy(array if array.flags.writeable else array.copy())
    except (TypeError, ValueError):  # no numbers, or rows of different lengths
        raise UserError(f"points must be numbers (n, d), or images (n, c, h, w), got {kind}") from None


def _built(about: Record, encoder: nn.Module | None) -> Fitted:
    version = {VERSION_KEY: about[VERSION_KEY]} if VERSION_KEY in about else {}
    config, shape, clusters = parse({**about["config"], **version}), tuple(about["shape"]), about["clusters"]
    box = Box(torch.tensor(about["low"]), torch.tensor(about["high"]))
    if tuple(box.low.shape) != shape or tuple(box.high.shape) != shape or not (box.low <= box.high).all():
        raise UserError(f"low and high must be the ends of a box of shape {shape}")
    check_training(config, shape, 1, clusters)
    model = build_model(config, shape, clusters, Streams(0), encoder, config.density.bind(Place(box, box)))
    own, verdict = bool(about.get("own_encoder")), about.get("verdict")
    inputs = _inputs_of_0_1(config, shape) if about.get("inputs") is None else _read(about["inputs"])
    return Fitted(config, model, inputs, shape, clusters, box, own_encoder=own, verdict=verdict)


class _Forgotten(Scaling):
    """Of rows of a table in 0.1, which scaled them and did not keep how."""

    def __call__(self, rows: Tensor) -> Tensor:
        """Refused."""
        raise UserError("this model is of gedi 0.1, which did not keep the scale of a table's rows: train it again")

    def back(self, points: Tensor) -> Tensor:
        """Refused."""
        return self(points)


def _inputs_of_0_1(config: Config, shape: tuple[int, ...]) -> Inputs:
    """What 0.1 did not keep beside a model, as far as its settings tell."""
    d = config.data
    if len(shape) == 3:
        return Pixels(d.pad, d.channels, d.mean, d.std)
    return _Forgotten() if d.name in ("file", "shards") else Scaling()


def _written(inputs: Inputs) -> Record | None:
    if isinstance(inputs, _Forgotten):
        return None
    if isinstance(inputs, Pixels):
        return {"pad": inputs.pad, "channels": inputs.channels, "mean": inputs.mean, "std": inputs.std}
    spread = inputs.spread.tolist() if isinstance(inputs.spread, Tensor) else inputs.spread
    more: Record = {} if inputs.length is None else {"length": inputs.length}
    if inputs.projection is not None:
        own = inputs.projection
        more["projection"] = {"axes": own.axes.tolist(), "beyond": own.beyond, "size": own.size}
    return {"centre": None if inputs.centre is None else inputs.centre.tolist(), "spread": spread, **more}


def _read(written: Record) -> Inputs:
    if "spread" in written:
        centre, spread = written["centre"], written["spread"]
        if isinstance(spread, list) and (centre is None or len(spread) != len(centre)):
            raise UserError("inputs must have a centre and a spread of each column")
        apart = _numbers(spread) if isinstance(spread, list) else float(spread)
        own = written.get("projection")
        projection = own and Projection(torch.tensor(own["axes"]), own["beyond"], own["size"])
        if projection is not None and (centre is None or projection.axes.shape[:1] != (len(centre),)):
            raise UserError("inputs must have axes of as many columns as their centre")
        return Scaling(None if centre is None else _numbers(centre), apart, written.get("length"), projection)
    return Pixels(**written)


def _numbers(written: list[float]) -> Tensor:
    """As they were before they were written: in single precision if that holds them."""
    exact = torch.tensor(written, dtype=torch.float64)
    return exact.float() if torch.equal(exact.float().double(), exact) else exact
