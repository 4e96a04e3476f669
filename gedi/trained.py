"""What a config trains, in words; and whether a method changes anything in it."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from gedi.config import Config, StageConfig, parse
from gedi.densities.energy import EnergyDensity
from gedi.errors import UserError
from gedi.methods import METHODS, changes_of, with_method
from gedi.objectives.objective import Objective
from gedi.presets import PRESETS, preset
from gedi.settings import Settings

_DENSITY = {
    "generative": "samples",
    "denoising": "score matching",
    "penalty": "penalty",
    "likelihood": "exact likelihood",
    "bound": "bound of the likelihood",
    "matching": "energy matching",
}
_CLUSTERS = {
    "swapped": "Sinkhorn",
    "agreement": "agreement, balance",
    "proto_cpc": "ProtoCPC",
    "deep_cluster": "DeepCluster",
    "constraint": "rule alone",
    "supervised": "labels",
}
_ENERGY = {
    "stage1": "energy of stage 1",
    "live": "live energy",
    "radial": "no model",
    "noise": "noise as long",
    "graph": "graph of the points",
}


def training_of(config: Config) -> Settings:
    """What of a config takes part in its training, its method's changes made; configs alike in it train the same.

    A setting that no term of positive weight asks for takes no part.

    Example:
        >>> plain, without = (parse(preset("digits") | {"method": name}) for name in ("gedi", "no-nf"))
        >>> training_of(plain) == training_of(without)  # the preset has no such term
        True
    """
    config = with_method(config)
    stages = _stages(config)
    taken = config.model_dump(exclude={"preset", "method", "log_every", "parts"})
    taken = {name: value for name, value in taken.items() if name not in config.stages}
    walking = _walks(config, stages)
    if not walking:
        taken["walk"] = None
    if not walking and not _density(stages):  # then nothing looks at it
        taken["density"] = None
    if "finer" not in _kinds(stages):
        taken["model"]["finer"] = 0
    if "constraint" not in _kinds(stages) and config.constraint.prior == "uniform":
        taken["constraint"] = None
    return taken | {name: _in_force(stage) for name, stage in stages.items()}


def _in_force(stage: StageConfig) -> Settings:
    """A stage without terms of no weight and moves that are never made."""
    given = stage.model_dump()
    return {
        **given,
        "density": {name: weight for name, weight in given["density"].items() if weight > 0},
        "terms": {name: term for name, term in given["terms"].items() if term["weight"] > 0},
        "moves": {name: move for name, move in given["moves"].items() if move["moments"]},
    }


def changes_nothing(config: Config) -> bool:
    """Whether a config's method, by its name another than ``gedi``, trains the very same."""
    return config.method != "gedi" and training_of(config) == training_of(_plain(config))


def check_method(config: Config) -> None:
    """Refuse a method, or a density beside it, whose name promises what would not happen."""
    _check_density(config)
    if changes_nothing(config):
        method = METHODS[config.method]
        changes = [f"leave out {', '.join(method.without)}"] if method.without else []
        changes += [] if method.first_stage else ["leave out the first stage"]
        changes += [f"set {key}={value}" for key, value in _flat(changes_of(config))]
        raise UserError(
            f"method {config.method} changes nothing in preset {config.preset}, which trains {_said(_plain(config))}: "
            f"it would {', '.join(changes)}; use method=gedi"
        )


def _check_density(config: Config) -> None:
    """A density that somebody named, and that the method does not train."""
    given, trained = config.density.kind, with_method(config).density.kind
    named = config.preset in PRESETS and parse(preset(config.preset)).density.kind != given and given != "none"
    if named and trained != given:
        what = "no density" if trained == "none" else f"density.kind={trained}"
        raise UserError(
            f"method {config.method} trains {what}, so density.kind={given} would do nothing: leave it out, or keep "
            f"method=gedi and name the terms that go with it, as in {list(config.stages)[-1]}.terms.vicreg.weight=1"
        )
    if named and config.method == "jem" and not isinstance(config.density, EnergyDensity):
        raise UserError(
            f"method jem is an energy learnt by its own samples, which density.kind={given} is not: leave the density "
            "out, or name energy, jem, contrastive or energy-matching"
        )


def parts_of(config: Config) -> dict[str, str]:
    """The parts of the method that a config uses, by their names."""
    config = with_method(config)
    stages = _stages(config)
    sampled = {"generative", "penalty"} & set(_density_terms(stages))
    kinds, moves = (
        _kinds(stages),
        {move.kind for stage in stages.values() for move in stage.moves.values() if move.moments},
    )
    rule = config.constraint.rule if "constraint" in kinds else None
    return {
        "density": config.density.kind if config.density.exact else _density(stages) or "none",
        "chains": _chains(config) if sampled else "",
        "encoders": "two" if _has_density(config, stages) and config.density.encoders > 1 else "one",
        "clusters": _clusters(kinds),
        "walks in the clusters": _walk(config, stages),
        "negative-free": "yes" if "negative_free" in kinds else "no",
        "rule": "none" if rule is None else f"{rule}, names searched" if "align" in moves else rule,
        "merged from": f"{config.model.finer} finer clusters" if "finer" in kinds and "merge" in moves else "",
        "tries": f"up to {config.n_init}" if config.n_init > 1 else "1",
    }


def parts_table() -> str:
    """The parts of every preset as Markdown; presets alike in them share a line."""
    lines: dict[tuple[str, ...], list[str]] = {}
    names: list[str] = []
    for known in PRESETS:
        config = parse(preset(known))
        parts = parts_of(config) | {"methods that change nothing": ", ".join(_idle(config))}
        names = ["preset", *parts]
        lines.setdefault(tuple(parts.values()), []).append(f"`{known}`")
    table = [names, ["---"] * len(names), *([", ".join(alike), *parts] for parts, alike in lines.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in table)


def _idle(config: Config) -> Iterator[str]:
    for method in METHODS:
        try:
            if changes_nothing(config.model_copy(update={"method": method})):
                yield f"`{method}`"
        except UserError:  # it leaves nothing to train, which is said when it is asked for
            continue


def _plain(config: Config) -> Config:
    return config.model_copy(update={"method": "gedi"})


def _stages(config: Config) -> dict[str, StageConfig]:
    return {name: stage for name, stage in config.stages.items() if stage.iterations > 0}


def _terms(stages: Mapping[str, StageConfig]) -> Iterator[Objective]:
    """Terms of positive weight."""
    for stage in stages.values():
        yield from (term for term in stage.terms.values() if term.weight > 0)


def _kinds(stages: Mapping[str, StageConfig]) -> set[str]:
    return {term.kind for term in _terms(stages)}


def _walks(config: Config, stages: Mapping[str, StageConfig]) -> bool:
    looks = {look for term in _terms(stages) for look in term.looks}
    return "walk" in looks or (config.walk.composed and "view" in looks)


def _density_terms(stages: Mapping[str, StageConfig]) -> list[str]:
    return [name for stage in stages.values() for name, weight in stage.density.items() if weight > 0]


def _density(stages: Mapping[str, StageConfig]) -> str:
    """The terms of the density and the stages that train them; empty where there are none."""
    trained = dict.fromkeys(_density_terms(stages))
    terms = [said for term, said in _DENSITY.items() if term in trained] + [t for t in trained if t not in _DENSITY]
    where = [name.removeprefix("stage") for name, stage in stages.items() if any(stage.density.values())]
    return f"{', '.join(terms)}; stage{'s' * (len(where) > 1)} {' and '.join(where)}" if terms else ""


def _has_density(config: Config, stages: Mapping[str, StageConfig]) -> bool:
    return bool(_density(stages)) or _walks(config, stages)


def _chains(config: Config) -> str:
    jumps = ", jumps" if getattr(config.density, "teleports", 0) else ""
    return ("Metropolis" if getattr(config.density, "metropolis", False) else "SGLD") + jumps


def _clusters(kinds: Collection[str]) -> str:
    """What shapes the clusters, and where they begin if not anywhere."""
    said = next((said for kind, said in _CLUSTERS.items() if kind in kinds), "none")
    return f"{said}, from a cut of the graph" if "proposed" in kinds else said


def _walk(config: Config, stages: Mapping[str, StageConfig]) -> str:
    if not _walks(config, stages):
        return "none"
    followed = _ENERGY[config.walk.energy]
    how = {"denoise": " of noise and denoising", "latent": " in the latent"}.get(config.walk.direction, "")
    return followed if config.walk.energy == "graph" else f"{config.walk.steps} steps{how}, {followed}"


def _said(config: Config) -> str:
    """The terms of each stage, for an error of one line."""
    stages = [f"{', '.join(stage.in_force)} in {name}" for name, stage in _stages(config).items()]
    return "; ".join([*stages, "two encoders" if config.density.encoders > 1 else "one encoder"])


def _flat(changes: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in changes.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            said = {None: "null", (): "[]"}.get(value) if value is None or value == () else str(value).lower()
            yield f"{prefix}{key}", str(said)
