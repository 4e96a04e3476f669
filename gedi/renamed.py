"""Settings of gedi 0.1, in the words of today: old files and commands go on working."""

from collections.abc import Mapping
from typing import Any

Path = tuple[str, ...]

#: Of settings, as complete files have it; those of 0.1 have none.
VERSION_KEY, VERSION = "version", 2

_CLUSTER: dict[str, tuple[str, ...]] = {
    "view_noise": ("augment.noise",),
    "epsilon_start": ("parts.swapped.epsilon_start",),
    "epsilon": ("parts.swapped.epsilon",),
    "anneal": ("parts.swapped.anneal",),
    "iterations": ("parts.swapped.iterations",),
    "ridge": ("parts.negative_free.ridge",),
    "start": ("parts.agreement.start", "parts.balance.start"),
    "merge": ("stage2.moves.merge.moments",),
    "finer_balance": ("parts.finer.balance",),
    "off_diagonal": ("parts.barlow.off_diagonal",),
    "contrast_temperature": ("parts.contrastive.temperature",),
    "similarity": ("parts.contrastive.similarity",),
}
_CONSTRAINT = {
    "start": ("parts.constraint.start",),
    "ramp": ("parts.constraint.ramp",),
    "align": ("stage2.moves.align.moments",),
    "restarts": ("stage2.moves.align.restarts",),
    "decode": ("stage2.moves.align.decode",),
}
_DENSITY_TERMS = ("generative", "denoising", "penalty")
#: Terms that were called otherwise: their name now, and what tells them apart from others of their kind.
_TERMS: dict[str, tuple[str, dict[str, Any]]] = {
    "cluster_noise": ("swapped", {}),
    "cluster_walk": ("swapped_walk", {"kind": "swapped", "look": "walk"}),
    "agreement_walk": ("agreement_walk", {"kind": "agreement", "look": "walk"}),
}


def renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with every name of 0.1 replaced; what has no such name stays.

    Example:
        >>> renamed({"stage2": {"weights": {"cluster_noise": 2.0}}, "sampling": {"noise": 0.1}})
        {'stage2': {'terms': {'swapped': {'weight': 2.0}}}, 'density': {'noise': 0.1}}
    """
    found: dict[str, Any] = {}
    for section, value in settings.items():
        if not isinstance(value, Mapping):
            _put(found, (section,), value)
            continue
        if not value:
            _put(found, (section,), {})
        for key, setting in value.items():
            for path, new in _places(str(section), str(key), setting):
                _put(found, path, new)
    return found


def _places(section: str, key: str, setting: Any) -> list[tuple[Path, Any]]:
    """Where a setting is now, and what it is there."""
    if section == "sampling":
        return [(("density", key), setting)]
    if (section, key) == ("model", "second_encoder"):
        return [(("density", "own_encoder"), setting)]
    if section == "cluster" and key in _CLUSTER:
        return [(tuple(place.split(".")), setting) for place in _CLUSTER[key]]
    if section == "constraint" and key in _CONSTRAINT:
        return [(tuple(place.split(".")), setting) for place in _CONSTRAINT[key]]
    if section.startswith("stage") and key == "denoising":
        return [(("density", "width"), setting)]
    if section.startswith("stage") and key == "weights" and isinstance(setting, Mapping):
        return [place for name, weight in setting.items() for place in _weight(section, str(name), weight)]
    return [((section, key), setting)]


def _weight(stage: str, name: str, weight: Any) -> list[tuple[Path, Any]]:
    if name in _DENSITY_TERMS:
        return [((stage, "density", name), weight)]
    term, further = _TERMS.get(name, (name, {}))
    return [((stage, "terms", term, key), value) for key, value in {**further, "weight": weight}.items()]


def _put(settings: dict[str, Any], path: Path, value: Any) -> None:
    *above, last = path
    for part in above:
        settings = settings.setdefault(part, {})
    if isinstance(value, Mapping) and isinstance(settings.get(last), dict):
        for key, below in value.items():
            _put(settings[last], (key,), below)
    else:
        settings[last] = dict(value) if isinstance(value, Mapping) else value


def renamed_weights(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Weights of a network by the names of today: 0.1 kept those of the energy beside the heads.

    Example:
        >>> renamed_weights({"direction": 1, "generative_encoder.body.0.weight": 2})
        {'density.direction': 1, 'density.encoder.body.0.weight': 2}
    """
    return {_weight_name(name): x for name, x in weights.items()}


def _weight_name(name: str) -> str:
    if name == "direction":
        return "density.direction"
    old = "generative_encoder."
    return f"density.encoder.{name.removeprefix(old)}" if name.startswith(old) else name
