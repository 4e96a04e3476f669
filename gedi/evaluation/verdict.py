"""Is this density real? The bounds a run is held to, and why each is where it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bound:
    """A figure that a genuine density keeps on one side of a limit."""

    metric: str
    limit: float
    above: bool
    why: str

    def holds(self, value: float) -> bool:
        """Whether a value is on the right side (a NaN is not)."""
        return value >= self.limit if self.above else value <= self.limit


BOUNDS = (
    Bound(
        "kl",
        0.3,
        False,
        "nats to the true density; score matching at the data's own noise width costs 0.10 by itself, "
        "a uniform density on the box 1.5 to 2.5, a collapsed or diverged energy more",
    ),
    Bound(
        "density_correlation",
        0.85,
        True,
        "rank correlation of log densities on and around the data; an energy of the wrong sign gives -1, "
        "a radial fake near 0",
    ),
    Bound(
        "sample_1nn",
        0.65,
        False,
        "share of points whose neighbour is of their own kind, samples against data; 0.5 cannot be told "
        "apart, uniform samples give 0.9 or more",
    ),
    Bound(
        "walk_crossing",
        0.02,
        False,
        "share of walks on the final energy that end in another true cluster; more than that and the walk "
        "itself mixes the clusters",
    ),
    Bound("far_mass", 0.05, False, "share of the model's mass where the truth has next to none"),
)


def density_verdict(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Every bound whose figure was measured, and whether all of them hold.

    Example:
        >>> density_verdict({"kl": 0.1, "far_mass": 0.5})["genuine"]
        False
    """
    checks = {
        bound.metric: {
            "value": metrics[bound.metric],
            "must": f"{'>=' if bound.above else '<='} {bound.limit}",
            "holds": bound.holds(metrics[bound.metric]),
            "why": bound.why,
        }
        for bound in BOUNDS
        if bound.metric in metrics
    }
    return {"genuine": bool(checks) and all(check["holds"] for check in checks.values()), "checks": checks}
