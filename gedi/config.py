"""The settings of a run: frozen models, unknown keys refused. Presets fill them; alone they train nothing."""

import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from gedi.densities.density import Density
from gedi.densities.energy import EnergyDensity
from gedi.errors import UserError, unknown
from gedi.moves.move import Move
from gedi.names import DigitTask, KnownImages, Shape
from gedi.objectives.objective import Objective
from gedi.parts import allow, find, kinds, path_of
from gedi.presets.toy import TOY
from gedi.renamed import VERSION, VERSION_KEY, renamed
from gedi.settings import (
    Amount,
    Count,
    Place,
    Positive,
    Real,
    Section,
    Settings,
    Share,
    Switch,
    Width,
    merge,
    number,
)
from gedi.yaml_text import read_yaml, write_yaml

TRIES = 1000  # at a stage, at most; far fewer are ever of use

#: The paper's letters, in case somebody types them: the nearest spelling would not lead here.
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


class DataConfig(Section):
    """What is learnt from."""

    name: Literal[Shape, "file", "images", "shards", KnownImages, "digits", DigitTask] = "moons"
    # "file": .npy, .npz, .csv, .tsv, .parquet; "images": a folder of them, or .npy, .npz;
    # "shards": a folder or pattern of .tar, .npy
    path: Place | None = None
    label: str | None = None  # a table: the column of labels, or none; None: label, labels, y, target or class
    id: str | None = None  # a table: the column that only numbers the rows, or none; None: it is found out
    drop: tuple[str, ...] = ()  # a table: further columns to leave out
    answer: str | None = None  # a table: the column that tells what was observed of the row's group
    delimiter: str | None = None  # a table of text: between values; None: it is found out
    n_train: Positive = 5000  # toy shapes only
    n_test: Positive = 1000  # toy shapes only; a file gives a fifth of its rows
    noise: Width | None = None  # None: the shape's own
    factor: Annotated[Real, Field(gt=0, lt=1)] = 0.5  # circles: the inner radius
    turns: Width = 1.5  # spirals: how far they wind
    triplets: Positive = 100  # addition only
    pairs: Positive = 1000  # sums: pairs of numbers whose sum is given; tasks with shortcuts: groups
    digits: Positive = 1  # sums: digits of each number
    free: Count | Literal["all"] = 0  # addition, sums: further images in no group; all: every other one (addition)
    validation: Count = 0  # addition, sums: further groups held out of training, to choose settings by
    # tasks with shortcuts: those combinations of digits that leave other namings, or all there are
    combinations: Literal["some", "all"] = "some"
    # a few labels beside a rule: of how many symbols, those that leave the fewest other namings; 0 has none
    label_these: Count = 0
    labelled: Positive = 10  # training images of each of these symbols whose label is told
    # rows of a table: one factor for all columns, one for each, what their ranges speak for, or all rows of one length
    columns: Literal["together", "apart", "auto", "cosine"] = "together"
    # rows: principal components kept, and the distance from them; auto: those above noise, of more than 128 columns
    components: Positive | Literal["auto"] | None = None
    group_size: Positive = 1  # a file: how many rows, one after the other, make a group of the constraint
    # images, shards: how many of the training part, drawn by the seed; a file: how many rows; None takes all
    limit: Positive | None = None
    held_out: Switch = True  # a file: a fifth of its rows is for the test; False: all are learnt from, and judged on
    side: Positive | None = None  # images in a folder or in tar shards: scaled to this side; None wants them alike
    pad: Count = 0  # images: pixels of border added on every side
    channels: Annotated[Literal[1, 3], BeforeValidator(number)] = 1  # images: 3 repeats gray ones, as the paper does
    mean: Real = 0.0  # images in [0, 1] are shifted and scaled by these
    std: Width = 1.0


class ModelConfig(Section):
    """The network."""

    encoder: Literal["mlp", "conv", "resnet8", "identity"] = "mlp"  # identity: rows are features already
    width: Positive = 16  # channels: conv's first layer, resnet8's F
    # resnet8: 2 halves the side in the first layer, for laptops
    stem: Annotated[Literal[1, 2], BeforeValidator(number)] = 1
    hidden: Annotated[tuple[Positive, ...], Field(min_length=1)] = (100, 100)
    latent: Positive = 8  # h
    activation: Literal["silu", "leaky_relu"] = "silu"
    first: Literal["silu", "leaky_relu", "sine"] = "sine"
    sharpness: Width | None = 4.0
    extent: Width = 1.0
    raw: Switch = False  # mlp: raw inputs go on beside the first layer
    # linear: a plain classifier, for logic alone; codes: frozen random ones, on an embedding of a cube
    head: Literal["prototypes", "linear", "codes"] = "prototypes"
    projector: Positive = 16
    normalise_latent: Switch = False  # the head begins with batch norm and LeakyReLU on the latent
    embedding: Positive = 8
    # None: as many as the data set's labels say; auto: as many as the spectrum of the points' graph says; 1: a density
    # alone
    clusters: Positive | Literal["auto"] | None = None
    temperature: Width = 0.2  # tau
    finer: Count = 0  # prototypes of a second, finer head on the same embedding; 0 has none

    @property
    def of_rows(self) -> bool:
        """Whether points are rows of a table."""
        return self.encoder in ("mlp", "identity")


class WalkConfig(Section):
    """Manifold walks (DAM)."""

    # noise: as long as a walk by stage1's; graph: from training point to training point, and then steps, noise and
    # sharpness follow from their distances
    energy: Literal["stage1", "live", "radial", "noise", "graph"] = "stage1"
    steps: Count = 200  # T
    # epsilon; of direction=denoise the width of the noise, and None lets the density choose it; of direction=latent the
    # share of the latent that is new at each step
    radius: Width | None = 0.05
    direction: Literal["constant", "fresh", "carried", "denoise", "latent"] = "carried"
    corrector: Amount = 0.001
    inertia: Share = 0.5
    relax: Count = 0  # Langevin moves after every step, back to the data
    relax_step_size: Width = 0.1
    relax_noise: Amount = 0.01
    composed: Switch = False  # augment the walk's end, instead of looking at it as it is
    refresh: Count = 0  # 0: once a stage; k: every k iterations; 1: each batch, each step
    start: Share = 0.0  # of a stage; before it points stay where they are, so that a density can learn beside them
    share: Share = 1.0  # of the points, drawn whenever they are walked; the others stay where they are


class AugmentConfig(Section):
    """How the augmented view is made."""

    noise: Width = 0.03  # added last, to points of any kind
    # what is done to images before; all 0 leaves them
    rotation: Amount = 0.0  # degrees
    shear: Amount = 0.0
    scale: Amount = 0.0  # log factor, each axis on its own
    shift: Amount = 0.0  # pixels
    elastic: Amount = 0.0  # pixels
    crop: Count = 0  # reflect-pad by this number of pixels, then crop back
    resized: Share = 0.0  # crop a share of the area between this and 1, and scale it back
    flip: Switch = False  # mirror every second image
    jitter: Share = 0.0  # probability of a colour jitter
    strength: Amount = 1.0  # of that jitter; 1 is (0.4, 0.4, 0.4, 0.1)
    grayscale: Share = 0.0
    light: Amount = 0.0  # log factor of the brightness
    start: Share = 0.0  # of a stage; before it images are left as they are, but for the noise
    both: Switch = False  # two augmented views; False: the data as they are, and one augmented view


class ConstraintConfig(Section):
    """What is known of a group of symbols."""

    # sum: two numbers of variables / 2 digits each, whose sum is given with the data
    # differences: how much each of them is above the next; parity: of their sum. Both are given like a sum
    rule: Literal["addition", "sum", "differences", "parity", "all-different", "sorted", "problog", "cnf"] | None = None
    variables: Positive = 3  # all rules but addition, problog and cnf: points in a group
    path: Place | None = None  # problog, cnf: the file
    query: str | None = None  # problog: what must hold; None takes the program's own
    prior: Literal["uniform", "rule"] = "uniform"  # shares of the symbols: equal, or as the rule implies


class GuardConfig(Section):
    """When training counts as diverging, and what is done about it: docs/guard.md."""

    attempts: Count = 5  # softer attempts at a stage before giving up; 0 only stops at numbers that are not finite
    every: Positive = 50  # iterations between looks
    soften: Annotated[Real, Field(gt=0, lt=1)] = 0.25  # each attempt's factor on learning rate and step size
    penalty: Amount = 0.003  # each attempt's further weight of the squared energies, a share of the generative one
    gap: Width = 1e4  # limit of the energy gap, in nats
    drift: Width = 1.0  # limit of one move's drift, in diagonals of the box
    extent: Width = 1.0  # limit of the chains' distance from the box, in diagonals of it
    growth: Annotated[Real, Field(gt=1)] = 30.0  # limit of a rise over the usual size
    patience: Positive = 3  # looks for which a rise, or one cluster for all points, has to last


def _named_parts(room: str, base: type[Any]) -> tuple[BeforeValidator, PlainSerializer]:
    """Settings ``{name: {kind: ..., ...}}`` as parts, the kind being the name if not given; and back."""

    def read(given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        asked = {name: value for name, value in given.items() if value is not None}  # null leaves out a preset's
        return {name: _part(name, value, room, base) for name, value in _paths_joined(asked, room, base).items()}

    def written(parts: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for name, part in parts.items():
            kind = path_of(type(part), room)
            found[name] = ({} if kind == name else {"kind": kind}) | part.model_dump(mode="json")
        return found

    return BeforeValidator(read), PlainSerializer(written)


def _part(name: str, value: Any, room: str, base: type[Any], called: str | None = None) -> Any:
    if isinstance(value, base):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must hold settings such as {{weight: 1}}, got {value!r}")
    cls = find(str(value.get("kind", name)), room, base)
    try:
        return cls.model_validate({key: setting for key, setting in value.items() if key != "kind"})
    except ValidationError as error:
        raise _one_line(error, cls, called or name) from None


def _paths_joined(given: Mapping[str, Any], room: str, base: type[Any]) -> dict[str, Any]:
    """``{my_package: {MyLoss: ...}}``, as dotted assignments make it, is ``{my_package.MyLoss: ...}``."""
    known = kinds(room, base)
    joined: dict[str, Any] = {}
    for name, value in given.items():
        below = isinstance(value, Mapping) and name not in known and "kind" not in value and bool(value)
        if below and all(isinstance(deeper, Mapping) for deeper in value.values()):
            joined |= _paths_joined({f"{name}.{part}": deeper for part, deeper in value.items()}, room, base)
        else:
            joined[name] = value
    return joined


def _filled(stage: Any, parts: Any) -> Any:
    """A stage whose terms have the settings that the run gives to their kind, below those of their own."""
    if not (isinstance(stage, Mapping) and isinstance(stage.get("terms"), Mapping) and isinstance(parts, Mapping)):
        return stage
    terms = {
        name: {**parts.get(term.get("kind", name), {}), **term} if isinstance(term, Mapping) else term
        for name, term in stage["terms"].items()
    }
    return {**stage, "terms": terms}


def _density(given: Any) -> Any:
    """The density of a kind, from its settings."""
    if not isinstance(given, Mapping):
        return given
    cls = find(str(given.get("kind", EnergyDensity.kind)), "gedi.densities", Density)
    try:
        return cls.model_validate({key: value for key, value in given.items() if key != "kind"})
    except ValidationError as error:
        raise _one_line(error, cls, "density") from None


def as_energy(density: Density, kind: str) -> Settings:
    """Settings of an energy of another kind: its own, with chains and steps as a density has them that is an energy."""
    wanted = find(kind, "gedi.densities", Density)
    related = isinstance(density, EnergyDensity) and issubclass(wanted, EnergyDensity)
    kept = {name: x for name, x in density.model_dump().items() if name in wanted.model_fields} if related else {}
    return {**kept, "kind": kind}


def _without_nothing(given: Any) -> Any:
    """Weights without those that are null, or without any."""
    if given is None:
        return {}
    return {name: x for name, x in given.items() if x is not None} if isinstance(given, Mapping) else given


class StageConfig(Section):
    """One stage of training: a list of terms and moves, and how they are descended."""

    iterations: Count
    batch_size: Positive = 128
    learning_rate: Width
    betas: tuple[Share, Share]
    warmup: Count = 50
    final: Share = 0.02
    average: Annotated[Real, Field(ge=0, lt=1)] = 0.0
    fresh_optimiser: Switch = False  # forget the gradients' sizes of the stage before
    # weights of the density's own terms; null leaves out a preset's
    density: Annotated[dict[str, Amount], BeforeValidator(_without_nothing)] = Field(default_factory=dict)
    density_start: Share = 0.0  # of the stage; before it they are not trained
    terms: Annotated[dict[str, Objective], *_named_parts("gedi.objectives", Objective)] = Field(default_factory=dict)
    moves: Annotated[dict[str, Move], *_named_parts("gedi.moves", Move)] = Field(default_factory=dict)

    @field_validator("betas")
    @classmethod
    def _below_one(cls, betas: tuple[float, float]) -> tuple[float, float]:
        if max(betas) >= 1:
            raise ValueError("betas must be below 1")
        return betas

    @property
    def looks(self) -> set[str]:
        """The looks at the data that its terms need."""
        return {look for term in self.terms.values() if term.weight > 0 for look in term.looks}

    @property
    def in_force(self) -> list[str]:
        """Names of all terms of positive weight, the density's first."""
        density = [name for name, weight in self.density.items() if weight > 0]
        return density + [name for name, term in self.terms.items() if term.weight > 0]


class Config(Section):
    """Everything a run depends on."""

    preset: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")] = "toy"  # part of the default output path
    method: str = "gedi"
    seed: Count = 0
    n_init: Annotated[Positive, Field(le=TRIES)] = 4
    good_enough: Amount = 0.05  # a try whose cluster loss is this close to the perfect one is the last
    log_every: Positive = 50
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    density: Annotated[
        Density,
        BeforeValidator(_density),
        PlainSerializer(lambda d: {"kind": path_of(type(d), "gedi.densities"), **d.model_dump(mode="json")}),
    ] = EnergyDensity()
    walk: WalkConfig = WalkConfig()
    augment: AugmentConfig = AugmentConfig()
    constraint: ConstraintConfig = ConstraintConfig()
    guard: GuardConfig = GuardConfig()
    parts: dict[str, dict[str, Any]] = Field(default_factory=dict)  # settings of terms, by their kind
    stages: dict[str, StageConfig] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _collected(cls, given: Any) -> Any:
        """Stages are sections of their own, ``stage1``, ``stage2`` and so on, in the order of their numbers."""
        if not isinstance(given, Mapping):
            return given
        names = sorted(filter(_is_stage, given), key=lambda key: int(key[5:]))
        rest = {key: value for key, value in given.items() if key not in names}
        parts = given.get("parts", {})
        stages = {name: _filled(given[name], parts) for name in names}
        return {**rest, "stages": {**rest.get("stages", {}), **stages}}

    def __getattr__(self, name: str) -> Any:
        """A stage by its name, as settings write it: ``config.stage2``."""
        if _is_stage(name) and name in self.stages:
            return self.stages[name]
        return super().__getattr__(name)  # type: ignore[misc]

    @model_serializer(mode="wrap")
    def _laid_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        return {**{key: value for key, value in written.items() if key != "stages"}, **written["stages"]}

    @field_validator("parts")
    @classmethod
    def _known(cls, parts: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """What no term of the run uses must be right too: it is a typing error otherwise."""
        for kind, settings in _paths_joined(parts, "gedi.objectives", Objective).items():
            _part(kind, {"weight": 0, **settings}, "gedi.objectives", Objective, f"parts.{kind}")
        return parts

    @field_validator("method", mode="before")
    @classmethod
    def _spelling(cls, value: Any) -> Any:
        """The paper's spellings are taken too: ``no NF, 2 enc.`` is ``no-nf-2-enc``."""
        if not isinstance(value, str) or not re.fullmatch(r"[\w ,.-]+", value):
            return value
        return re.sub(r"[ ,._-]+", "-", value.lower()).strip("-")


def parse(settings: Mapping[str, Any]) -> Config:
    """A config from plain data; the first thing wrong with it becomes a one-line error.

    Example:
        >>> parse({"walk": {"stps": 5}})
        Traceback (most recent call last):
        gedi.errors.UserError: unknown key 'walk.stps': did you mean 'walk.steps'? Valid: walk.composed, ...
    """
    try:
        config = Config.model_validate(_whole(settings))
    except ValidationError as error:
        raise _one_line(error) from None
    if config.data.name == "file" and config.data.path is None:
        raise UserError("data.name=file needs data.path, the .npy, .npz, .csv, .tsv or .parquet file to read")
    if config.data.name == "shards" and config.data.path is None:
        raise UserError("data.name=shards needs data.path, a folder of shards or a pattern such as train-{00..99}.tar")
    stages = dict(config.stages)
    for name, stage in stages.items():
        if not set(stage.density) & set(config.density.terms):  # of another density altogether
            stages[name] = _with_weights(stage, config.density)
        _check_density_weights(name, stages[name], config.density)
    return config.model_copy(update={"stages": stages})


def _weighed(weights: Mapping[str, float], terms: Sequence[str]) -> dict[str, float]:
    """Weights of the terms of one density as those of another: of terms that both have, and of its first.

    The first has the largest of the weights that are left over. So ``density.kind`` alone puts another density into a
    preset.

    Example:
        >>> _weighed({"generative": 0.3, "denoising": 1.0}, ("matching", "denoising", "penalty"))
        {'matching': 0.3, 'denoising': 1.0}
    """
    foreign = {term: weight for term, weight in weights.items() if weight > 0 and term not in terms}
    known = {term for kind in kinds("gedi.densities", Density).values() for term in kind.terms}
    if not foreign or not terms or not set(foreign) <= known:
        return dict(weights)
    common = {term: weight for term, weight in weights.items() if weight > 0 and term in terms}
    return {terms[0]: max(foreign.values())} | common


def _with_weights(stage: StageConfig, density: Density) -> StageConfig:
    """A stage whose weights are another density's, with those that this one has for them.

    One that needs no training needs no stage of its own either.
    """
    known = {term for kind in kinds("gedi.densities", Density).values() for term in kind.terms}
    if not density.exact or not set(stage.density) <= known:
        return stage.model_copy(update={"density": _weighed(stage.density, density.terms)})
    idle = {} if stage.terms else {"iterations": 0}
    return stage.model_copy(update={"density": {}, **idle})


def _check_density_weights(name: str, stage: StageConfig, density: Density) -> None:
    """Weights are of terms that the density has; those of another kind may be 0."""
    elsewhere = {term for kind in kinds("gedi.densities", Density).values() for term in kind.terms}
    for term, weight in stage.density.items():
        if term in density.terms or (weight == 0 and term in elsewhere):
            continue
        if not density.terms:
            raise UserError(
                f"density.kind={density.kind} has no terms to weigh: leave them out with {name}.density=null"
            )
        raise unknown(f"term of density.kind={density.kind} in {name}.density", term, density.terms)


def _whole(settings: Mapping[str, Any]) -> Settings:
    """Settings in the words of today; those without any stage are laid over the toy recipe."""
    version = settings.get(VERSION_KEY, VERSION)
    if type(version) is not int or version > VERSION:
        raise UserError(
            f"settings of version {_shown(version)} are of a later gedi: this one reads versions up to {VERSION}"
        )
    given = renamed({key: value for key, value in settings.items() if key != VERSION_KEY})
    return given if any(map(_is_stage, given)) else merge(TOY, given)


def _is_stage(name: object) -> bool:
    return re.fullmatch(r"stage\d+", str(name)) is not None


def override(settings: Mapping[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Settings with dotted assignments applied, later ones winning.

    Example:
        >>> override({}, ["walk.steps=5", "method=swav"])
        {'walk': {'steps': 5}, 'method': 'swav'}
    """
    changed = renamed(settings)
    if isinstance(changed.get("density"), dict):
        changed["density"].setdefault("kind", EnergyDensity.kind)
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise UserError(f"--set takes section.key=value, got {assignment!r}")
        value = read_yaml(text, f"the value of --set {key}")
        key = key.strip()
        if key == "walk" and isinstance(value, str):
            key = "walk.energy"  # walk=radial, as the tables call the control
        _allow_what_is_typed(key.split("."), value)
        assigned = _nest(key.split("."), value)
        before, after = changed.get("density"), assigned.get("density")
        kind = after.get("kind") if isinstance(after, Mapping) else None
        if kind is not None and isinstance(before, Mapping) and before.get("kind", EnergyDensity.kind) != kind:
            changed = _with_density(changed, str(kind))
        changed = merge(changed, renamed(assigned))
    return changed


def _with_density(settings: Settings, kind: str) -> Settings:
    """Settings with a density of another kind, the stages' weights going over to its terms."""
    terms = find(kind, "gedi.densities", Density).terms
    changed = {**settings, "density": as_energy(_density(settings["density"]), kind)}
    for name, stage in settings.items():
        if _is_stage(name) and isinstance(stage, Mapping) and isinstance(stage.get("density"), Mapping):
            weights = _without_nothing(stage["density"])
            if all(isinstance(weight, int | float) for weight in weights.values()):
                changed[name] = {**stage, "density": _weighed(weights, terms)}
    return changed


def _allow_what_is_typed(path: Sequence[str], value: Any) -> None:
    """Whoever types the import path of a part trusts it; a file's word is not enough."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            _allow_what_is_typed([*path, str(key)], below)
    elif path[-1] == "kind" and isinstance(value, str) and "." in value:
        allow(value)
    elif len(path) >= 5 and _is_stage(path[0]) and path[1] in ("terms", "moves"):  # stage2.terms.package.Class.key
        allow(path[2])


def to_yaml(config: Config) -> str:
    """The complete config as text that :func:`parse` takes back."""
    return write_yaml({VERSION_KEY: VERSION, **config.model_dump(mode="json")})


def _nest(path: Sequence[str], value: Any) -> dict[str, Any]:
    head, *rest = path
    return {head: _nest(rest, value) if rest else value}


def _one_line(error: ValidationError, model: type[Any] = Config, prefix: str = "") -> UserError:
    """The first thing wrong, in words."""
    first = error.errors()[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, UserError):  # a part has said it
        return cause
    path = [str(part) for part in first["loc"] if part != "stages"]
    key = ".".join(([prefix] if prefix else []) + path)
    if first["type"] == "extra_forbidden":
        section: Any = model
        for part in path[:-1]:
            section = StageConfig if re.fullmatch(r"stage\d+", part) else section.model_fields[part].annotation
        above = key.rpartition(".")[0]
        valid = [f"{above}.{name}" if above else name for name in section.model_fields]
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
