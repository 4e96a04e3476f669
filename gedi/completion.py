"""What the shell may offer for a word that is not finished."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel


def any_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Completes one of some names."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def setting(incomplete: str) -> list[str]:
    """Completes ``section.key=value``: the key, and the value where it is one of a few.

    Example:
        >>> setting("walk.ste")
        ['walk.steps=']
        >>> setting("method=no-nf-")
        ['method=no-nf-no-train-1', 'method=no-nf-2-enc']
        >>> setting("walk.energy=l")
        ['walk.energy=live']
        >>> setting("stage2.terms.barlow.o")
        ['stage2.terms.barlow.off_diagonal=']
    """
    keys = _settings()
    key, equals, _ = incomplete.partition("=")
    offered = [f"{key}={value}" for value in keys.get(key, ())] if equals else [f"{name}=" for name in keys]
    return any_of(offered)(incomplete)


def _settings() -> dict[str, tuple[str, ...]]:
    """Every dotted key of a run of two stages, with the values it can have where those are few."""
    from gedi.config import Config, StageConfig
    from gedi.densities.density import Density
    from gedi.methods import METHODS
    from gedi.moves.move import Move
    from gedi.objectives.objective import Objective
    from gedi.parts import kinds

    densities = kinds("gedi.densities", Density)
    terms, moves = kinds("gedi.objectives", Objective), kinds("gedi.moves", Move)
    keys = dict(_keys(Config)) | {"method": tuple(METHODS), "density.kind": tuple(densities)}
    for density in densities.values():
        keys |= dict(_keys(density, "density."))
    for stage in ("stage1", "stage2"):
        keys |= dict(_keys(StageConfig, f"{stage}."))
        keys |= {f"{stage}.density.{term}": () for density in densities.values() for term in density.terms}
        keys |= {key: few for kind, move in moves.items() for key, few in _keys(move, f"{stage}.moves.{kind}.")}
        keys |= {key: few for kind, term in terms.items() for key, few in _keys(term, f"{stage}.terms.{kind}.")}
    keys |= {key: few for kind, term in terms.items() for key, few in _keys(term, f"parts.{kind}.")}
    return keys


def _keys(section: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every dotted key, with the values it can have where those are few."""
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _keys(field.annotation, f"{prefix}{name}.")
        elif get_origin(field.annotation) is not dict:  # whose keys are names of parts
            yield f"{prefix}{name}", tuple(map(str, _choices(field.annotation)))


def _choices(annotation: Any) -> tuple[Any, ...]:
    if annotation is bool:
        return ("true", "false")
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(choice for part in get_args(annotation) for choice in _choices(part))
