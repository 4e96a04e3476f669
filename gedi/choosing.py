"""Which settings fit the points that somebody has: a table's or an image recipe, with what was asked for laid over."""

from collections.abc import Mapping, Sequence
from typing import Any

from gedi.config import Config, parse
from gedi.errors import UserError
from gedi.presets import preset
from gedi.settings import merge

AUTO = "auto"
DRAWN = 200_000  # rows that are learnt from where all do not fit in memory
_SMALL = 16  # pixels: images with a shorter side take the recipe of small digits
_FINER = 5  # finer clusters for each one asked for
_LATER = (0.45, 0.6, 0.75)  # when a rule names the clusters of a table: once they are free of what was proposed
Settings = dict[str, Any]


def settings_for(
    shape: Sequence[int],
    n: int,
    *,
    clusters: int | str,
    group_size: int = 1,
    asked: Mapping[str, Any] | None = None,
    iterations: int | None = None,
    batch_size: int | None = None,
    rule: bool = False,
) -> Config:
    """The settings for n points of a shape.

    Args:
        shape: of a point: (d,) for rows, (channels, height, width) for images.
        n: how many there are.
        clusters: to look for, or ``auto``: the graph of a table's rows says; 1 is a density alone.
        group_size: points that come together; batches never cut a group.
        asked: settings laid over those of the recipe.
        iterations: of all stages together, shared out as the recipe does.
        batch_size: of every stage.
        rule: whether something is known of groups of points.

    Example:
        >>> settings_for((4,), 150, clusters=3).preset, settings_for((1, 28, 28), 5000, clusters=10).preset
        ('table', 'mnist')
    """
    chosen = _recipe(shape, rule)
    if clusters == AUTO and len(shape) != 1:
        raise UserError(
            'n_clusters="auto" counts clusters by the graph of a table\'s rows, and these are images: give a number, '
            'or cluster features of them (encoder="timm:...")'
        )
    if isinstance(clusters, int) and clusters >= max(n, 2):
        raise UserError(f"the number of clusters must be fewer than the {n} points, got {clusters}")
    if len(shape) != 1:
        chosen = merge(chosen, {"data": {"name": "images"}})
    if chosen.get("model", {}).get("finer") and isinstance(clusters, int):
        chosen = merge(chosen, {"model": {"finer": _FINER * clusters}})
    chosen = merge(chosen, {"model": {"clusters": clusters}})
    chosen = merge(chosen, _lengths(chosen, n, group_size, iterations, batch_size))
    if clusters == 1:  # a density alone: there is nothing to tell apart
        shaping = {name for name, stage in chosen.items() if name.startswith("stage") and stage.get("terms")}
        chosen = merge(chosen, {name: {"iterations": 1} for name in shaping})
    return parse(merge(chosen, dict(asked or {})))


def _recipe(shape: Sequence[int], rule: bool) -> Settings:
    """The preset for points of a shape; with a rule, the one that learns names too."""
    if len(shape) == 1:
        return merge(preset("table"), _RULE) if rule else preset("table")
    channels, *sides = shape
    small = min(sides) < _SMALL
    if rule:
        return preset("digits-addition" if small else "addition-100")
    return preset("digits" if small else "mnist" if channels == 1 else "cifar10")


# A table's recipe with a rule: clusters as without, then names for them.
_RULE: Settings = {
    "constraint": {"prior": "rule"},
    "stage1": {"terms": {"constraint": {"weight": 1.0, "start": 0.4}}, "moves": {"align": {"moments": _LATER}}},
}


def _lengths(chosen: Settings, n: int, group_size: int, iterations: int | None, batch_size: int | None) -> Settings:
    """Iterations and batches of each stage; a batch is no more than there are points, and of whole groups."""
    stages = {name: stage for name, stage in chosen.items() if name.startswith("stage")}
    total = sum(stage["iterations"] for stage in stages.values())
    found: Settings = {}
    for name, stage in stages.items():
        size = min(batch_size or stage.get("batch_size", 128), n)
        found[name] = {"batch_size": max(group_size, size - size % group_size)}
        if iterations is not None:
            found[name]["iterations"] = max(1, round(iterations * stage["iterations"] / total))
    return found
