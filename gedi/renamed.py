"""Settings of gedi 0.1, in the words of today: old files and commands go on working."""

from collections.abc import Mapping
from typing import Any

from gedi.errors import UserError

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
#: Moves that were made only where a term was trained.
_MOVES_WITH = {"constraint": "align", "finer": "merge"}
#: What every complete file of 0.1 holds, and no file of today.
_SECTIONS = {"data", "model", "sampling", "walk", "augment", "cluster", "constraint", "guard", "stage1", "stage2"}
#: Weights of a network, by the beginnings of their names.
_TENSORS = {"direction": "density.direction", "generative_encoder.": "density.encoder."}
#: Terms that were called otherwise: their name now, and what tells them apart from others of their kind.
_TERMS: dict[str, tuple[str, dict[str, Any]]] = {
    "cluster_noise": ("swapped", {}),
    "cluster_walk": ("swapped_walk", {"kind": "swapped", "look": "walk"}),
    "agreement_walk": ("agreement_walk", {"kind": "agreement", "look": "walk"}),
}


def written_by_0_1(settings: Mapping[str, Any]) -> bool:
    """Whether these are complete settings as 0.1 kept them with a run: they say everything, in its words."""
    return VERSION_KEY not in settings and set(settings) >= _SECTIONS


def renamed_tensors(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Weights of a network by the names of today; those of 0.1 kept the energy beside the encoder.

    Example:
        >>> renamed_tensors({"direction": 1, "generative_encoder.0.weight": 2, "encoder.0.weight": 3})
        {'density.direction': 1, 'density.encoder.0.weight': 2, 'encoder.0.weight': 3}
    """
    return {_tensor(name): tensor for name, tensor in tensors.items()}


def renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with every name of 0.1 replaced; what has no such name stays.

    Example:
        >>> renamed({"stage2": {"weights": {"cluster_noise": 2.0}}, "sampling": {"noise": 0.1}})
        {'density': {'kind': 'energy', 'noise': 0.1}, 'stage2': {'terms': {'swapped': {'weight': 2.0}}}}
    """
    _refuse_two_widths(settings)
    found: dict[str, Any] = {}
    for section, value in sorted(settings.items(), key=lambda item: _is_stage(item[0])):
        if not isinstance(value, Mapping):
            _put(found, (section,), value)
            continue
        if not value:
            _put(found, (section,), {})
        for key, setting in value.items():
            for path, new in _places(section, key, setting, value):
                _put(found, path, new)
    return found


def _places(section: Any, key: Any, setting: Any, beside: Mapping[str, Any]) -> list[tuple[Path, Any]]:
    """Where a setting is now, and what it is there; ``beside`` are all settings of its section."""
    if section == "sampling":
        return _energy(key, setting)
    if (section, key) == ("model", "second_encoder"):
        return _energy("own_encoder", setting)
    if section == "cluster" and key in _CLUSTER:
        return [(tuple(place.split(".")), setting) for place in _CLUSTER[key]]
    if section == "constraint" and key in _CONSTRAINT:
        return [(tuple(place.split(".")), setting) for place in _CONSTRAINT[key]]
    if _is_stage(section) and key == "denoising":
        return _energy("width", setting) if _denoises(beside) else []
    if _is_stage(section) and key == "weights" and isinstance(setting, Mapping):
        return [place for name, weight in setting.items() for place in _weight(section, name, weight)]
    return [((section, key), setting)]


def _energy(key: str, setting: Any) -> list[tuple[Path, Any]]:
    """A setting of the only density there was, which may be another now."""
    return [(("density", "kind"), "energy"), (("density", key), setting)]


def _denoises(stage: Mapping[str, Any]) -> bool:
    weights = stage.get("weights")
    return not isinstance(weights, Mapping) or weights.get("denoising") != 0


def _refuse_two_widths(settings: Mapping[str, Any]) -> None:
    """Each stage had a width of score matching of its own."""
    stages = {
        f"{name}.denoising={stage['denoising']}": stage["denoising"]
        for name, stage in settings.items()
        if _is_stage(name) and isinstance(stage, Mapping) and "denoising" in stage and _denoises(stage)
    }
    first, *others = stages.values() or [None]
    if any(width != first for width in others):
        raise UserError(
            f"{' and '.join(stages)} must be alike: the density has one width for all stages, density.width"
        )


def _weight(stage: str, name: Any, weight: Any) -> list[tuple[Path, Any]]:
    if name in _DENSITY_TERMS:
        return [((stage, "density", name), weight)]
    term, further = _TERMS.get(name, (name, {}))
    found: list[tuple[Path, Any]] = [((stage, "terms", term, key), value) for key, value in further.items()]
    found.append(((stage, "terms", term, "weight"), weight))
    if name in _MOVES_WITH and weight == 0:
        found.append(((stage, "moves", _MOVES_WITH[name], "moments"), []))
    return found


def _tensor(name: str) -> str:
    for old, new in _TENSORS.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


def _is_stage(section: Any) -> bool:
    return isinstance(section, str) and section.startswith("stage")


def _put(settings: dict[str, Any], path: Path, value: Any) -> None:
    *above, last = path
    for part in above:
        settings = settings.setdefault(part, {})
        if not isinstance(settings, dict):
            return  # refused later, as it is no section
    if isinstance(value, Mapping) and isinstance(settings.get(last), dict):
        for key, below in value.items():
            _put(settings[last], (key,), below)
    else:
        settings[last] = _copied(value)


def _copied(value: Any) -> Any:
    """What is given is never written into."""
    return {key: _copied(below) for key, below in value.items()} if isinstance(value, Mapping) else value
