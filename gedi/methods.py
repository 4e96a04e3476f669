"""Methods by name: which of a preset's parts are trained, or which others in their place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gedi.config import Config, as_energy, parse
from gedi.densities.density import Density
from gedi.errors import UserError, unknown
from gedi.presets import PRESETS, preset
from gedi.settings import Settings, merge

_NO_RULE: Settings = {"rule": None, "prior": "uniform"}
_PLAIN: Settings = {"model": {"finer": 0}, "constraint": _NO_RULE}


@dataclass(frozen=True)
class Method:
    """What a method makes of any preset.

    Attributes:
        about: in a sentence.
        terms: the terms of the last stage, with their weights, in place of the preset's; None keeps the preset's.
        without: terms, of the density too, and moves left out, by their kind.
        instead: kinds of terms that take the place of others of the preset, with the same look and weight.
        besides: terms that a stage of clusters has besides, with their weights.
        density: whether there is one.
        energy: the kind of energy that takes the place of the preset's, its chains and steps kept.
        weights: of the density's terms in the last stage, in place of the preset's; None keeps the preset's.
        first_stage: whether the density is trained before the clusters, where the preset does.
        settings: what else differs.
    """

    about: str
    terms: Mapping[str, float] | None = None
    without: tuple[str, ...] = ()
    instead: Mapping[str, str] = field(default_factory=dict)
    besides: Mapping[str, float] = field(default_factory=dict)
    density: bool = True
    energy: str | None = None
    weights: Mapping[str, float] | None = None
    first_stage: bool = True
    settings: Settings = field(default_factory=dict)


def _alone(about: str, *terms: str, once: bool = True, **settings: Settings) -> Method:
    """Self-supervised terms and nothing else: no density, no rule; ``once``, with one try."""
    changed = merge(_PLAIN, settings)
    return Method(
        about,
        terms=dict.fromkeys(terms, 1.0),
        density=False,
        first_stage=False,
        settings={"n_init": 1, **changed} if once else changed,
    )


METHODS: dict[str, Method] = {
    "gedi": Method("everything that the preset lists"),
    "jem": Method(
        "the energy by its own samples and nothing else, in both stages",
        terms={},
        without=("denoising",),
        settings={"n_init": 1, "model": {"finer": 0}, "density": {"own_encoder": False}},
    ),
    "gedi-no-sinkhorn": Method(
        "everything, with agreement and uniform use of the symbols in place of Sinkhorn's assignments",
        without=("balance",),
        instead={"swapped": "agreement"},
        besides={"uniformity": 1.0},
    ),
    "swav": _alone("the augmented view and Sinkhorn alone", "swapped", once=False),
    "deep-cluster": Method(
        "symbols, and finer ones where the preset has them, predict pseudo-labels that k-means of the embeddings gives",
        terms={"deep_cluster": 1.0},
        density=False,
        first_stage=False,
        settings={"n_init": 1, "constraint": _NO_RULE},
    ),
    "proto-cpc": _alone("symbols of the augmented view, told apart from those of the batch", "proto_cpc", once=False),
    "cplearn": _alone(
        "agreement and uniform use of frozen random codes, which no collapse can satisfy",
        "agreement",
        "uniformity",
        model={"head": "codes"},
        parts={"agreement": {"start": 0}},
    ),
    "ebclr": Method(
        "views of a point find one another by distance, and the same distances are an energy; no clusters",
        terms={"contrastive": 1.0},
        energy="contrastive",
        weights={"generative": 0.1, "penalty": 0.001},
        first_stage=False,
        settings={"n_init": 1, **_PLAIN, "parts": {"contrastive": {"similarity": "distance"}}},
    ),
    "simclr": _alone("views of a point find one another among all points; no clusters", "nt_xent"),
    "k-shot": _alone("a point finds the space that several views of it span; no clusters", "k_shot"),
    "barlow": _alone(
        "embeddings whose dimensions agree between looks and do not repeat each other; no clusters", "barlow"
    ),
    "vicreg": _alone("embeddings that are close between views and keep their spread; no clusters", "vicreg"),
    "w-mse": _alone("whitened embeddings that are close between views; no clusters", "w_mse"),
    "mec": _alone("embeddings whose code is as long as can be; no clusters", "mec"),
    "cor-info-max": _alone("embeddings that share as much information as can be; no clusters", "cor_info_max"),
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
_CLUSTERS = ("swapped", "agreement")  # terms that a stage of clusters has
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
            f"positive weight, see its terms and density in gedi presets{_sibling(config)}"
        )
    return found


def _sibling(config: Config) -> str:
    """Which preset a method that needs samples is for, if there is one."""
    name = f"{config.preset}-energy"
    return f"; use preset {name}, whose density has samples" if name in PRESETS else ""


def _with_samples(config: Config) -> Density:
    """The density, or of a preset that has a sibling whose density has samples, the sibling's."""
    sibling = f"{config.preset}-energy"
    if config.density.chooses_width and sibling in PRESETS:
        return parse(preset(sibling)).density
    return config.density


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
    elif method.energy is not None:
        changes["density"] = as_energy(_with_samples(config), method.energy) | {"own_encoder": False}
        if config.density.chooses_width:
            changes["walk"] = {"composed": False}  # by a density that is not there
    elif "own_encoder" not in type(config.density).model_fields:
        changes.pop("density", None)  # it has a network of its own, or none
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
    kept = dict(_replaced(name, term, method, parts) for name, term in kept.items())
    if method.besides and any(term.get("kind", name) in _CLUSTERS for name, term in kept.items()):
        kept |= {kind: {**parts.get(kind, {}), "weight": weight} for kind, weight in method.besides.items()}
    moves = {name: move for name, move in moves.items() if move.get("kind", name) not in method.without}
    density = {name: weight for name, weight in stage["density"].items() if name not in method.without}
    if last and method.weights is not None:
        density = dict(method.weights)
    return {**stage, "terms": kept, "moves": moves, "density": density if method.density else {}}


def _replaced(name: str, term: Settings, method: Method, parts: Settings) -> tuple[str, Settings]:
    """A term with its name, or the one that the method has in its place."""
    before = term.get("kind", name)
    kind = method.instead.get(before)
    if kind is None:
        return name, term
    common = {key: term[key] for key in ("weight", "start", "ramp", "look") if key in term}
    return name.replace(before, kind), {**parts.get(kind, {}), **common, "kind": kind}


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
