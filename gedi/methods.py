"""Methods by name: which of a preset's parts are trained, or which others in their place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gedi.config import Config
from gedi.errors import UserError, unknown
from gedi.settings import Settings, merge

_NO_RULE: Settings = {"rule": None, "prior": "uniform"}


@dataclass(frozen=True)
class Method:
    """What a method makes of any preset.

    Attributes:
        about: in a sentence.
        terms: the terms of the last stage, with their weights, in place of the preset's; None keeps the preset's.
        without: terms, of the density too, and moves left out, by their kind.
        density: whether there is one.
        first_stage: whether the density is trained before the clusters, where the preset does.
        settings: what else differs.
    """

    about: str
    terms: Mapping[str, float] | None = None
    without: tuple[str, ...] = ()
    density: bool = True
    first_stage: bool = True
    settings: Settings = field(default_factory=dict)


METHODS: dict[str, Method] = {
    "gedi": Method("everything that the preset lists"),
    "jem": Method(
        "the energy by its own samples and nothing else, in both stages",
        terms={},
        without=("denoising",),
        settings={"n_init": 1, "model": {"finer": 0}, "density": {"own_encoder": False}},
    ),
    "barlow": Method(
        "embeddings whose dimensions agree between looks and do not repeat each other; no clusters",
        terms={"barlow": 1.0},
        density=False,
        first_stage=False,
        settings={"n_init": 1, "model": {"finer": 0}, "constraint": _NO_RULE},
    ),
    "swav": Method(
        "the augmented view and Sinkhorn alone",
        terms={"swapped": 1.0},
        density=False,
        first_stage=False,
        settings={"model": {"finer": 0}, "constraint": _NO_RULE},
    ),
    "no-nf": Method("without the negative-free term", without=("negative_free",)),
    "no-nf-no-train-1": Method(
        "without the negative-free term and the first stage; walks follow the energy as it learns",
        without=("negative_free",),
        first_stage=False,
        settings={"walk": {"energy": "live"}},
    ),
    "no-nf-2-enc": Method(
        "without the negative-free term, and with an encoder for the density alone",
        without=("negative_free",),
        settings={"density": {"own_encoder": True}},
    ),
    "no-constraint": Method(
        "everything but the knowledge; not even the shares of symbols that it implies",
        without=("constraint", "align"),
        settings={"constraint": _NO_RULE},
    ),
    "logic-alone": Method(
        "the knowledge and nothing else: what DeepProbLog trains, a softmax classifier by its rule",
        terms={"constraint": 1.0},
        density=False,
        first_stage=False,
        settings={
            "n_init": 1,
            "model": {"head": "linear", "finer": 0},
            "parts": {"constraint": {"start": 0, "ramp": 0}},
        },
    ),
    "supervised": Method(
        "the upper bound: the same network, images and augmentation, with the labels",
        terms={"supervised": 1.0},
        density=False,
        first_stage=False,
        settings={"n_init": 1, "constraint": _NO_RULE},
    ),
}
_REFRESH_OF_LIVE_WALKS = 100
#: JEM's chains: nothing refuses a move, some begin anew.
_SGLD: Settings = {"metropolis": False, "teleports": 0, "reinit": 0.05}


def with_method(config: Config) -> Config:
    """The config with its method's changes applied; stages left without terms are left out."""
    method = method_of(config)
    if config.method == "gedi":
        return config
    changed = merge(config.model_dump(), changes_of(config))
    *_, last = config.stages
    for name in config.stages:
        if name != last and not method.first_stage:
            del changed[name]
            continue
        changed[name] = _stage(method, changed[name], changed["parts"], last=name == last)
        if not (any(changed[name]["density"].values()) or changed[name]["terms"]):
            del changed[name]
    found = Config.model_validate(changed)
    if not any(stage.iterations for stage in found.stages.values()):
        raise UserError(
            f"method {config.method} leaves this preset nothing to train: a stage needs at least one term of "
            "positive weight, see its terms and density in gedi presets"
        )
    return found


def method_of(config: Config) -> Method:
    """The method that a config names."""
    if config.method not in METHODS:
        raise unknown("method", config.method, METHODS)
    return METHODS[config.method]


def changes_of(config: Config) -> Settings:
    """What a config's method sets in it beside its terms, whatever it was before."""
    method = method_of(config)
    changes = dict(method.settings)
    if not method.density:
        changes["density"] = {"kind": "none"}
        if config.walk.composed and config.walk.energy != "radial":
            changes["walk"] = {"composed": False}  # nothing is left to walk by
    elif config.density.kind != "energy":
        changes.pop("density", None)  # an encoder of its own is a setting of the energy
    if changes.get("walk", {}).get("energy") == "live" and config.walk.refresh == 0:
        changes = merge(changes, {"walk": {"refresh": _REFRESH_OF_LIVE_WALKS}})
    if config.method == "jem" and getattr(config.density, "metropolis", False):
        changes = merge(changes, {"density": _SGLD})
    return changes


def _stage(method: Method, stage: Settings, parts: Settings, *, last: bool) -> Settings:
    """A stage with the method's terms in place of its own; how they are set is the preset's."""
    terms, moves = stage["terms"], stage["moves"]
    if method.terms is not None:
        moves = {}
        terms = {kind: {**parts.get(kind, {}), "weight": weight} for kind, weight in method.terms.items() if last}
    kept = {name: term for name, term in terms.items() if term.get("kind", name) not in method.without}
    moves = {name: move for name, move in moves.items() if move.get("kind", name) not in method.without}
    density = {name: weight for name, weight in stage["density"].items() if name not in method.without}
    return {**stage, "terms": kept, "moves": moves, "density": density if method.density else {}}


def has_clusters(config: Config) -> bool:
    """Whether the method trains a cluster head at all; else k-means speaks for it, see :mod:`gedi.measures`."""
    return any(
        term.shapes == "clusters" and term.weight > 0
        for stage in config.stages.values()
        if stage.iterations
        for term in stage.terms.values()
    )


def has_density(config: Config) -> bool:
    """Whether the method trains a density at all, or has one that needs no training."""
    return config.density.exact or any(
        stage.iterations and any(stage.density.values()) for stage in config.stages.values()
    )


def describe(config: Config) -> dict[str, Any]:
    """Which terms each stage trains, by their names."""
    return {name: stage.in_force for name, stage in config.stages.items() if stage.iterations}
