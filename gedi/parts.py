"""Which parts of the method a config trains, in words; and whether a method changes anything in it."""

from collections.abc import Iterator, Mapping
from typing import Any

from gedi.config import METHODS, Config, StageConfig, parse
from gedi.errors import UserError
from gedi.methods import changes_of, walks, with_method
from gedi.presets import PRESETS, preset

_DENSITY = {"generative": "samples", "denoising": "score matching", "penalty": "penalty"}
_CLUSTERS: dict[str, tuple[str, ...]] = {
    "Sinkhorn": ("cluster_noise", "cluster_walk"),
    "agreement, balance": ("agreement", "agreement_walk", "balance"),
    "rule alone": ("constraint",),
    "labels": ("supervised",),
}
_ENERGY = {"stage1": "energy of stage 1", "live": "live energy", "radial": "no model"}


def training_of(config: Config) -> dict[str, Any]:
    """What of a config takes part in its training, its method's changes made; configs alike in it train the same.

    A setting that no term of positive weight asks for takes no part.

    Example:
        >>> plain, without = (parse(preset("digits") | {"method": name}) for name in ("gedi", "no-nf"))
        >>> training_of(plain) == training_of(without)  # the preset has no such term
        True
    """
    config = with_method(config)
    stages = _stages(config)
    taken = config.model_dump(exclude={"preset", "method", "log_every", "stage1", "stage2"})
    walking = any(walks(config, stage.weights) for stage in stages.values())
    if not walking:
        taken["walk"] = None
    if not walking and not _density(stages):  # then nothing looks at a second encoder
        taken["model"]["second_encoder"] = False
    if not _weighs(stages, "finer"):
        taken["model"]["finer"], taken["cluster"]["merge"] = 0, ()
    if not config.constraint.align:  # then no names are searched
        taken["constraint"] |= {"restarts": None, "decode": None}
    if not _weighs(stages, "constraint") and config.constraint.prior == "uniform":
        taken["constraint"] = None
    return taken | {name: stage.model_dump() for name, stage in stages.items()}


def changes_nothing(config: Config) -> bool:
    """Whether a config's method, by its name another than ``gedi``, trains the very same."""
    return config.method != "gedi" and training_of(config) == training_of(_plain(config))


def check_method(config: Config) -> None:
    """Refuse a method whose name promises what would not happen."""
    if changes_nothing(config):
        changes = ", ".join(f"{key}={value}" for key, value in _flat(changes_of(config)))
        raise UserError(
            f"method {config.method} changes nothing in preset {config.preset}, which trains {_said(_plain(config))}: "
            f"it would set {changes}; use method=gedi"
        )


def parts_of(config: Config) -> dict[str, str]:
    """The parts of the method that a config uses, by their names."""
    config = with_method(config)
    stages = _stages(config)
    sampled = _weighs(stages, "generative") or _weighs(stages, "penalty")
    finer = config.model.finer if _weighs(stages, "finer") else 0
    rule = config.constraint.rule if _weighs(stages, "constraint") else None
    return {
        "density": _density(stages) or "none",
        "chains": _chains(config) if sampled else "",
        "encoders": "two" if training_of(config)["model"]["second_encoder"] else "one",
        "clusters": _clusters(stages),
        "walks in the clusters": _walk(config, stages),
        "negative-free": "yes" if _weighs(stages, "negative_free") else "no",
        "rule": "none" if rule is None else f"{rule}, names searched" if config.constraint.align else rule,
        "merged from": f"{finer} finer clusters" if finer and config.cluster.merge else "",
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
    named = {"stage1": config.stage1, "stage2": config.stage2}
    return {name: stage for name, stage in named.items() if stage.iterations > 0}


def _weighs(stages: Mapping[str, StageConfig], term: str) -> bool:
    return any(getattr(stage.weights, term) > 0 for stage in stages.values())


def _density(stages: Mapping[str, StageConfig]) -> str:
    """The terms of the density and the stages that train them; empty where there are none."""
    terms = [said for term, said in _DENSITY.items() if _weighs(stages, term)]
    where = [name[-1] for name, stage in stages.items() if any(getattr(stage.weights, term) > 0 for term in _DENSITY)]
    return f"{', '.join(terms)}; stage{'s' * (len(where) > 1)} {' and '.join(where)}" if terms else ""


def _chains(config: Config) -> str:
    jumps = ", jumps" if config.sampling.teleports else ""
    return ("Metropolis" if config.sampling.metropolis else "SGLD") + jumps


def _clusters(stages: Mapping[str, StageConfig]) -> str:
    found = [said for said, terms in _CLUSTERS.items() if any(_weighs(stages, term) for term in terms)]
    return found[0] if found else "none"


def _walk(config: Config, stages: Mapping[str, StageConfig]) -> str:
    if not any(walks(config, stage.weights) for stage in stages.values()):
        return "none"
    return f"{config.walk.steps} steps, {_ENERGY[config.walk.energy]}"


def _said(config: Config) -> str:
    """The terms of each stage, for an error of one line."""
    stages = {
        name: ", ".join(term for term, weight in stage.weights.model_dump().items() if weight > 0)
        for name, stage in _stages(config).items()
    }
    encoders = "two encoders" if config.model.second_encoder else "one encoder"
    return "; ".join([*(f"{terms} in {name}" for name, terms in stages.items()), encoders])


def _flat(changes: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in changes.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            said = {None: "null", (): "[]"}.get(value) if value is None or value == () else str(value).lower()
            yield f"{prefix}{key}", str(said)
