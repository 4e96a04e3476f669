"""The settings of a run: frozen models, unknown keys refused, the defaults are the ``toy`` recipe."""

import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from gedi.errors import UserError, unknown
from gedi.yaml_text import read_yaml, write_yaml


def _number(value: Any) -> Any:
    """Only a number is one: ``true`` is not 1, the text ``"5"`` not 5. A whole 5.0 may stand for 5."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a valid number")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("must be a number below 2^63")
    return value


# numbers that every setting is made of
Whole = Annotated[int, BeforeValidator(_number)]
Real = Annotated[float, Field(allow_inf_nan=False), BeforeValidator(_number)]
Positive = Annotated[Whole, Field(gt=0)]
Count = Annotated[Whole, Field(ge=0)]
Width = Annotated[Real, Field(gt=0)]
Weight = Annotated[Real, Field(ge=0)]
Share = Annotated[Real, Field(ge=0, le=1)]
Switch = Annotated[bool, Field(strict=True)]
Place = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*$")]

TRIES = 1000  # at a stage, at most; far fewer are ever of use

Shape = Literal["moons", "circles", "rings", "spirals", "blobs", "pinwheel"]
#: What ``gedi data get`` gets.
KnownImages = Literal["mnist", "fashion-mnist", "svhn", "cifar10", "cifar100"]
METHODS = (
    "gedi",
    "jem",
    "barlow",
    "swav",
    "no-nf",
    "no-nf-no-train-1",
    "no-nf-2-enc",
    "no-constraint",
    "logic-alone",
    "supervised",
)

#: The paper's letters, for who types them: the nearest spelling would not lead here.
_LETTERS = {
    "T": "steps",
    "eps": "radius",
    "tau": "temperature",
    "lr": "learning_rate",
    "iters": "iterations",
    "sigma": "noise",
    "alpha": "step_size",
    "beta": "ridge",
}


class Section(BaseModel):
    """A frozen group of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DataConfig(Section):
    """What is learnt from."""

    name: Literal[Shape, "file", "images", "shards", KnownImages, "digits", "mnist-addition", "digits-addition"] = (
        "moons"
    )
    # "file": .npy, .npz, .csv, .tsv, .parquet; "images": a folder of them, or .npy, .npz;
    # "shards": a folder or pattern of .tar, .npy
    path: Place | None = None
    label: str | None = None  # a table: the column of labels, or none; None: label, labels, y, target or class
    id: str | None = None  # a table: the column that only numbers the rows, or none; None: it is found out
    drop: tuple[str, ...] = ()  # a table: further columns to leave out
    delimiter: str | None = None  # a table of text: between values; None: it is found out
    n_train: Positive = 5000  # toy shapes only
    n_test: Positive = 1000  # toy shapes only; a file gives a fifth of its rows
    noise: Width | None = None  # None: the shape's own
    factor: Annotated[Real, Field(gt=0, lt=1)] = 0.5  # circles: the inner radius
    turns: Width = 1.5  # spirals: how far they wind
    triplets: Positive = 100  # addition only
    free: Count = 0  # addition: further images in no triplet
    validation: Count = 0  # addition: further triplets held out of training, to choose settings by
    group_size: Positive = 1  # a file: so many rows in a row belong to one group of the constraint
    limit: Positive | None = None  # images, shards: so many of the training part, drawn by the seed; None takes all
    side: Positive | None = None  # images in a folder or in tar shards: scaled to this side; None wants them alike
    pad: Count = 0  # images: pixels of border added on every side
    channels: Annotated[Literal[1, 3], BeforeValidator(_number)] = 1  # images: 3 repeats gray ones, as the paper does
    mean: Real = 0.0  # images in [0, 1] are shifted and scaled by these
    std: Width = 1.0


class ModelConfig(Section):
    """The network."""

    encoder: Literal["mlp", "conv", "resnet8"] = "mlp"
    width: Positive = 16  # channels: conv's first layer, resnet8's F
    stem: Annotated[Literal[1, 2], BeforeValidator(_number)] = (
        1  # resnet8: 2 halves the side in the first layer, for laptops
    )
    hidden: Annotated[tuple[Positive, ...], Field(min_length=1)] = (100, 100)
    latent: Positive = 8  # h
    activation: Literal["silu", "leaky_relu"] = "silu"
    first: Literal["silu", "leaky_relu", "sine"] = "sine"
    sharpness: Width | None = 4.0
    extent: Width = 1.0
    head: Literal["prototypes", "linear"] = "prototypes"  # linear: a plain classifier, for logic alone
    projector: Positive = 16
    normalise_latent: Switch = False  # the head begins with batch norm and LeakyReLU on the latent
    embedding: Positive = 8
    clusters: Annotated[Whole, Field(ge=2)] | None = None  # None: as many as the data set's labels say
    temperature: Width = 0.2  # tau
    finer: Count = 0  # prototypes of a second, finer head on the same embedding; 0 has none
    second_encoder: Switch = False


class SamplingConfig(Section):
    """Samples from the energy: Langevin chains in a replay buffer."""

    chains: Positive = 128
    steps: Count = 2
    noise: Width = 0.08  # sigma
    step_size: Width | None = None  # alpha; None: sigma^2 / 2, temperature 1
    metropolis: Switch = True
    teleports: Count = 1  # Metropolis jumps across the box, each step
    reinit: Share = 0.0  # blind re-initialisation, each draw
    buffer: Positive = 10_000
    initial: Literal["uniform", "normal"] = "uniform"  # on the box, or with the data's mean and spread
    margin: Weight = 0.5  # the box: the data's range and this much more
    clamp: Switch = True  # False: chains may leave the box (the literal setting)
    clip: Width | None = None
    data_noise: Weight = 0.0  # noise on the data that samples are held against


class WalkConfig(Section):
    """Manifold walks (DAM)."""

    energy: Literal["stage1", "live", "radial"] = "stage1"
    steps: Count = 200  # T
    radius: Width = 0.05  # epsilon
    direction: Literal["constant", "fresh", "carried"] = "carried"
    corrector: Weight = 0.001
    inertia: Share = 0.5
    relax: Count = 0  # Langevin moves after every step, back to the data
    relax_step_size: Width = 0.1
    relax_noise: Weight = 0.01
    composed: Switch = False  # augment the walk's end, instead of looking at it as it is
    refresh: Count = 0  # 0: once a stage; k: every k iterations; 1: each batch, each step


class AugmentConfig(Section):
    """What is done to images before the noise of ``cluster.view_noise``; all 0 leaves them."""

    rotation: Weight = 0.0  # degrees
    shear: Weight = 0.0
    scale: Weight = 0.0  # log factor, each axis on its own
    shift: Weight = 0.0  # pixels
    elastic: Weight = 0.0  # pixels
    crop: Count = 0  # reflect-pad by so many pixels, then crop back
    resized: Share = 0.0  # crop a share of the area between this and 1, and scale it back
    flip: Switch = False  # mirror every second image
    jitter: Share = 0.0  # probability of a colour jitter
    strength: Weight = 1.0  # of that jitter; 1 is (0.4, 0.4, 0.4, 0.1)
    grayscale: Share = 0.0
    both: Switch = False  # two augmented views; False: the data as they are, and one augmented view


class ConstraintConfig(Section):
    """What is known of a group of symbols."""

    rule: Literal["addition", "all-different", "sorted", "problog", "cnf"] | None = None
    variables: Positive = 3  # all-different, sorted: points in a group
    path: Place | None = None  # problog, cnf: the file
    query: str | None = None  # problog: what must hold; None takes the program's own
    start: Share = 0.0  # the term is off for this share of stage 2
    ramp: Share = 0.0  # and then rises over this share
    align: tuple[Share, ...] = ()  # moments of stage 2 at which symbols are aligned
    restarts: Positive = 200  # of the alignment's search
    decode: Switch = True  # alignment may also draw the prototypes anew, from finer clusters
    prior: Literal["uniform", "rule"] = "uniform"  # shares of the symbols: equal, or as the rule implies


class ClusterConfig(Section):
    """The cluster term."""

    view_noise: Width = 0.03
    epsilon_start: Width = 0.2  # at model.temperature: above it the uniform state is stable and nothing forms
    epsilon: Width = 0.1
    anneal: Share = 0.5
    iterations: Positive = 3
    ridge: Width = 1e-4  # beta of the negative-free term
    start: Share = 0.0  # agreement and balance are off for this share of stage 2: finer clusters come first
    merge: tuple[Share, ...] = ()  # moments of stage 2 at which prototypes are merged from finer clusters
    finer_balance: Weight = 4.0  # weight of the balance within the finer clusters' term
    off_diagonal: Weight = 5e-3  # Barlow Twins: weight of the redundancy
    contrast_temperature: Width = 0.1  # tau of the contrastive term
    similarity: Literal["cosine", "distance"] = "cosine"  # of the contrastive term


class GuardConfig(Section):
    """When training counts as diverging, and what is done about it: docs/guard.md."""

    attempts: Count = 5  # softer attempts at a stage before giving up; 0 only stops at numbers that are not finite
    every: Positive = 50  # iterations between looks
    soften: Annotated[Real, Field(gt=0, lt=1)] = 0.25  # each attempt's factor on learning rate and step size
    penalty: Weight = 0.003  # each attempt's further weight of the squared energies, a share of the generative one
    gap: Width = 1e4  # limit of the energy gap, in nats
    drift: Width = 1.0  # limit of one move's drift, in diagonals of the box
    extent: Width = 1.0  # limit of the chains' distance from the box, in diagonals of it
    growth: Annotated[Real, Field(gt=1)] = 30.0  # limit of a rise over the usual size
    patience: Positive = 3  # looks for which a rise, or one cluster for all points, has to last


class Weights(Section):
    """The weight of each term; 0 leaves it out."""

    generative: Weight = 0.0
    denoising: Weight = 0.0
    penalty: Weight = 0.0
    negative_free: Weight = 0.0
    cluster_noise: Weight = 0.0
    cluster_walk: Weight = 0.0
    agreement: Weight = 0.0
    agreement_walk: Weight = 0.0
    balance: Weight = 0.0
    finer: Weight = 0.0
    barlow: Weight = 0.0
    contrastive: Weight = 0.0
    constraint: Weight = 0.0
    supervised: Weight = 0.0  # the upper bound: looks at labels


class StageConfig(Section):
    """One stage of training."""

    iterations: Count
    batch_size: Positive = 128
    learning_rate: Width
    betas: tuple[Share, Share]
    warmup: Count = 50
    final: Share = 0.02
    denoising: Width = 0.05  # width of the blur of score matching
    average: Annotated[Real, Field(ge=0, lt=1)] = 0.0
    fresh_optimiser: Switch = False  # forget the gradients' sizes of the stage before
    weights: Weights

    @field_validator("betas")
    @classmethod
    def _below_one(cls, betas: tuple[float, float]) -> tuple[float, float]:
        if max(betas) >= 1:
            raise ValueError("betas must be below 1")
        return betas


STAGE1 = StageConfig(
    iterations=1500,
    learning_rate=1e-2,
    betas=(0.0, 0.9),
    average=0.998,
    weights=Weights(generative=0.3, denoising=1.0),
)
# The density's weights are a tenth of stage 1's, in its ratio: enough to keep it alive beside the clusters.
STAGE2 = StageConfig(
    iterations=900,
    learning_rate=3e-3,
    betas=(0.9, 0.999),
    weights=Weights(generative=0.03, denoising=0.1, negative_free=2.5e-6, cluster_noise=1.0, cluster_walk=1.0),
)


class Config(Section):
    """Everything a run depends on."""

    preset: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")] = "toy"  # part of the default output path
    method: str = "gedi"
    seed: Count = 0
    n_init: Annotated[Positive, Field(le=TRIES)] = 4
    good_enough: Weight = 0.05  # a try whose cluster loss is this close to the perfect one is the last
    log_every: Positive = 50
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    sampling: SamplingConfig = SamplingConfig()
    walk: WalkConfig = WalkConfig()
    augment: AugmentConfig = AugmentConfig()
    cluster: ClusterConfig = ClusterConfig()
    constraint: ConstraintConfig = ConstraintConfig()
    guard: GuardConfig = GuardConfig()
    stage1: StageConfig = STAGE1
    stage2: StageConfig = STAGE2

    @field_validator("method", mode="before")
    @classmethod
    def _spelling(cls, value: Any) -> Any:
        """The paper's spellings are taken too: ``no NF, 2 enc.`` is ``no-nf-2-enc``."""
        return re.sub(r"[ ,._-]+", "-", value.lower()).strip("-") if isinstance(value, str) else value


def parse(settings: Mapping[str, Any]) -> Config:
    """A config from plain data; the first thing wrong with it becomes a one-line error.

    Example:
        >>> parse({"walk": {"stps": 5}})
        Traceback (most recent call last):
        gedi.errors.UserError: unknown key 'walk.stps': did you mean 'walk.steps'? Valid: walk.composed, ...
    """
    try:
        config = Config.model_validate(_complete(settings))
    except ValidationError as error:
        raise _one_line(error) from None
    if config.method not in METHODS:
        raise unknown("method", settings.get("method", config.method), METHODS)
    if config.data.name == "file" and config.data.path is None:
        raise UserError("data.name=file needs data.path, the .npy, .npz, .csv, .tsv or .parquet file to read")
    if config.data.name == "shards" and config.data.path is None:
        raise UserError("data.name=shards needs data.path, a folder of shards or a pattern such as train-{00..99}.tar")
    if config.cluster.epsilon >= config.model.temperature:
        raise UserError(
            f"cluster.epsilon must be below model.temperature, or no cluster ever leaves the uniform state; "
            f"got {config.cluster.epsilon} and {config.model.temperature}"
        )
    if config.sampling.chains > config.sampling.buffer:
        raise UserError(
            f"sampling.chains must be at most sampling.buffer, got {config.sampling.chains} chains "
            f"for a buffer of {config.sampling.buffer}"
        )
    return config


def override(settings: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Settings with dotted assignments applied, later ones winning.

    Example:
        >>> override({}, ["walk.steps=5", "method=swav"])
        {'walk': {'steps': 5}, 'method': 'swav'}
    """
    changed = dict(settings)
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise UserError(f"--set takes section.key=value, got {assignment!r}")
        value = read_yaml(text, f"the value of --set {key}")
        key = key.strip()
        if key == "walk" and isinstance(value, str):
            key = "walk.energy"  # walk=radial, as the tables call the control
        changed = merge(changed, _nest(key.split("."), value))
    return changed


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``changes`` laid over it, section by section."""
    merged = dict(base)
    for key, value in changes.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(value, Mapping) and isinstance(below, Mapping) else value
    return merged


def to_yaml(config: Config) -> str:
    """The complete config as text that :func:`parse` takes back."""
    return write_yaml(config.model_dump(mode="json"))


def _complete(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Stages are given by their differences from the recipe's, so they are filled before validation."""
    filled = dict(settings)
    for name, default in (("stage1", STAGE1), ("stage2", STAGE2)):
        if isinstance(filled.get(name), Mapping):
            filled[name] = merge(default.model_dump(), filled[name])
    return filled


def _nest(path: Sequence[str], value: Any) -> dict[str, Any]:
    head, *rest = path
    return {head: _nest(rest, value) if rest else value}


def _one_line(error: ValidationError) -> UserError:
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    key = ".".join(path)
    if first["type"] == "extra_forbidden":
        section: Any = Config
        for part in path[:-1]:
            section = section.model_fields[part].annotation
        prefix = ".".join(path[:-1])
        valid = [f"{prefix}.{name}" if prefix else name for name in section.model_fields]
        letter = _LETTERS.get(path[-1])
        hint = next((name for name in valid if letter and name.split(".")[-1] == letter), None)
        return unknown("key", key, valid, hint)
    reason = first["msg"][0].lower() + first["msg"][1:]
    reason = reason.removeprefix("value error, ").replace("input should be", "must be")
    symbol = " (T)" if key == "walk.steps" else ""
    return UserError(f"{key}{symbol}: {reason}, got {_shown(first['input'])}")


def _shown(value: Any) -> str:
    """A value as it was given, cut short: a stranger's may be endless."""
    try:
        return reprlib.repr(value)
    except ValueError:  # a number of more digits than Python prints
        return f"one of type {type(value).__name__}"
