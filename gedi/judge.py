"""The evidence for a run's verdict: what it knows of itself, gathered without a label."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gedi.config import Config
from gedi.evaluation import Subject, verdict
from gedi.logic import Constraint, Shortcuts
from gedi.methods import has_clusters, has_density

#: What evidence says that is no figure of a run itself, by its name.
EVIDENCE = {
    "used_share": "clusters that hold at least one test point, of those asked for",
    "confidence": "0: memberships are even; 1: they are certain",
    "loss_left": "the best try's cluster loss; 0: of a perfect clustering, 1: of knowing nothing",
    "test_points": "how many points the density is held against",
    "beyond_chance": "how far samples are from test points, beyond chance; 1: as far as even points in the box",
    "mmd_over_null": "sample_mmd2 over sample_mmd2_null95, what chance allows",
    "interventions": "how often the guard stepped in",
    "rule_held_out": "share of groups held out that satisfy the rule",
    "rule_names": "1: no other naming of the symbols satisfies the rule and the labels, where there are any",
    "rule_trained": "share of training groups that satisfy the rule",
}
#: Figures that become evidence as they are. Those that labels take part in must never stand here.
_AS_MEASURED = ("information_kept", "walks_connect", "walks_leave", "walks_cross", "names_open")


def judge(
    config: Config,
    metrics: Mapping[str, Any],
    *,
    clusters: int,
    test_points: int,
    selection_losses: Sequence[float],
    loss_range: tuple[float, float] | None,
    interventions: int,
    constraint: Constraint | None = None,
    left_open: Shortcuts | None = None,
    few: Mapping[int, int] | None = None,
) -> dict[str, Any]:
    """The verdict on a run: see :mod:`gedi.evaluation.verdict`.

    Args:
        config: with its method's changes.
        metrics: every figure of the run; those found by labels are not looked at.
        clusters: how many the run looks for.
        test_points: how many there are.
        selection_losses: of the tries at the clusters.
        loss_range: their loss for a perfect clustering, and for one that knows nothing; None where it proves nothing.
        interventions: of the guard.
        constraint: the rule, where there is one.
        left_open: the namings that it cannot tell apart, where they are known.
        few: how many images of which symbol had a label.
    """
    evidence: dict[str, float] = {name: metrics[name] for name in _AS_MEASURED if name in metrics}
    evidence["interventions"] = interventions
    subjects: tuple[Subject, ...] = ()
    if has_clusters(config) and clusters > 1:
        subjects += ("clusters",)
        evidence |= _of_clusters(metrics, clusters, selection_losses, loss_range)
        if config.constraint.rule is not None or constraint is not None:
            evidence |= _of_rule(metrics, left_open, few or {})
    if has_density(config):
        subjects += ("density",)
        if config.model.of_rows:  # a table
            evidence["test_points"] = test_points
    found = verdict(evidence | of_samples(metrics), subjects)
    if "clusters" in subjects and left_open is not None and left_open.swaps:
        found["why"].append(_told_before(left_open))
    if few:
        found["why"].append(_labels_used(few))
    return found


def of_samples(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Evidence from samples of the density, held against test points."""
    evidence = {name: metrics[name] for name in ("sample_1nn", "told_apart") if name in metrics}
    if "sample_mmd2" in metrics:
        # a discrepancy below what chance allows is none, and chance itself is never quite 0
        evidence["mmd_over_null"] = max(metrics["sample_mmd2"], 0.0) / max(metrics["sample_mmd2_null95"], 1e-12)
    if "sample_distance" in metrics:
        chance = max(metrics["sample_distance_null99"], 1e-12)
        further = max(metrics["sample_distance"] - chance, 0.0)
        evidence["beyond_chance"] = further / max(metrics["even_distance"], chance)  # even points may be right
    return evidence


def _of_clusters(
    metrics: Mapping[str, Any], clusters: int, losses: Sequence[float], loss_range: tuple[float, float] | None
) -> dict[str, float]:
    used = metrics["clusters_used"]
    evidence = {
        "clusters_used": used,
        "used_share": used / clusters,
        "confidence": (metrics["mean_confidence"] - 1 / clusters) / (1 - 1 / clusters),
    }
    finite = [loss for loss in losses if math.isfinite(loss)]
    if loss_range is not None and finite:
        perfect, ignorant = loss_range
        evidence["loss_left"] = max(0.0, min(finite) - perfect) / (ignorant - perfect)
    return evidence


def _told_before(left_open: Shortcuts) -> str:
    """How many namings fit, and what would help."""
    few = "" if left_open.exact else "at least "
    maps = f"{few}{left_open.count:,} maps of the symbols fit what is known, {len(left_open.swaps):,} exchange names"
    advice = left_open.label_these(1)
    return f"Before training: {maps}; a label for {advice.symbols[0]} would leave {advice.swaps:,} of these."


def _labels_used(few: Mapping[int, int]) -> str:
    """Labels are no secret."""
    symbols = " and ".join(map(str, few))
    return f"Labels were used: of {sum(few.values())} training images, all of symbol {symbols}."


def _of_rule(metrics: Mapping[str, Any], left_open: Shortcuts | None, few: Mapping[int, int]) -> dict[str, float]:
    evidence = {"rule_trained": metrics["constraint_satisfied"]} if "constraint_satisfied" in metrics else {}
    if "validation_constraint_satisfied" not in metrics:
        return evidence
    names = left_open is not None and left_open.exact and not _still_open(left_open, few)
    if not few and metrics.get("namings_open", 0) > 0:  # the rule could, but not by the groups that there are
        names = False
    return evidence | {"rule_held_out": metrics["validation_constraint_satisfied"], "rule_names": float(names)}


def _still_open(left_open: Shortcuts, few: Mapping[int, int]) -> bool:
    """Whether a renaming is left that keeps the symbols whose labels were seen."""
    kept = [left_open.symbols[symbol] for symbol in few]
    return any(
        all(image == symbol for symbol, image in zip(left_open.symbols, swap, strict=True) if symbol in kept)
        for swap in left_open.swaps
    )
