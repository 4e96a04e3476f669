"""May this run be trusted? What it knows of itself without labels, check by check, and one word.

*failed*: something shows that it is wrong. *doubtful*: something speaks against it, or nothing shows that it is right.
*trusted*: what would show a failure was looked at, and it is not there. Another check is one more entry of
:data:`CHECKS`; its figure is put among the evidence where it is known (:mod:`gedi.judge`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Subject = Literal["clusters", "density", "training"]
WORDS = ("trusted", "doubtful", "failed")


@dataclass(frozen=True)
class Check:
    """One figure that a run knows without labels, and the limits it is held to.

    Attributes:
        figure: its name among the evidence.
        about: what it speaks of.
        doubtful: beyond it the run is doubtful.
        failed: beyond it the run has failed; None: it alone cannot show that.
        least: whether the limits are lower ones.
        bad: what is said where it does not hold; ``value`` and ``limit`` can be named.
        good: what is said where it does.
        proof: whether it can show that the thing it is about is right. Without one that holds, nothing is trusted.
    """

    figure: str
    about: Subject
    doubtful: float
    failed: float | None
    least: bool
    bad: str
    good: str = ""
    proof: bool = False

    def word(self, value: float) -> str:
        """What the figure says of the run; one that is not a number is a failure."""
        if math.isnan(value):
            return "failed"
        sign = 1 if self.least else -1
        if self.failed is not None and sign * value < sign * self.failed:
            return "failed"
        return "doubtful" if sign * value < sign * self.doubtful else "trusted"

    def sentence(self, value: float) -> str:
        """The finding in words; empty where it holds and there is nothing worth saying of it."""
        word = self.word(value)
        limit = self.failed if word == "failed" and self.failed is not None else self.doubtful
        return (self.good if word == "trusted" else self.bad).format(value=value, limit=limit)


# Where each limit stands, and between which runs: docs/decisions/0018-verdict.md.
CHECKS = (
    Check(
        "clusters_used", "clusters", 2, 2, True,
        "One cluster holds every point: nothing is told apart.",
    ),
    Check(
        "used_share", "clusters", 1.0, None, True,
        "Only {value:.0%} of the clusters hold any point: the others collapsed into them.",
    ),
    Check(
        "confidence", "clusters", 0.5, 0.1, True,
        "Memberships are vague: {value:.0%} of the way from even to certain, less than {limit:.0%}.",
    ),
    Check(
        "loss_left", "clusters", 0.05, 0.25, False,
        "No try passed: the best ended {value:.0%} of the way back from a perfect clustering to knowing nothing "
        "(limit {limit:.0%}), so walks lead from one cluster into another.",
        "The best try reached the loss of a perfect clustering ({value:.1%} of the way back to knowing nothing).",
    ),
    Check(
        "walks_leave", "clusters", 0.02, 0.1, False,
        "{value:.0%} of the walks end in another cluster than they began in (limit {limit:.0%}): "
        "the clusters cut through what the density holds together.",
    ),
    Check(
        "walks_cross", "clusters", 0.04, None, False,
        "Of the walks that come far enough to reach another cluster {value:.0%} end in one (limit {limit:.0%}): the "
        "clusters cut through what hangs together, and the walks are too short to show it otherwise.",
    ),
    Check(
        "walks_connect", "clusters", 0.9, None, True,
        "Walks connect only {value:.0%} of a cluster's own points, less than {limit:.0%}: the cluster is several, the "
        "density is in pieces, or the walks are too short, and another grouping of the pieces would look as good. "
        "Another number of clusters, more points, a wider blur (density.width) or longer walks (walk.steps) may "
        "mend it.",
        "Walks connect at least {value:.0%} of every cluster's own points.",
        proof=True,
    ),
    Check(
        "information_kept", "clusters", 0.98, None, True,
        "A step to a near point keeps {value:.0%} of what the clusters tell, less than {limit:.0%}: they overlap, or "
        "they cut through what hangs together.",
        "A step to a near point keeps {value:.1%} of what the clusters tell: they are apart.",
        proof=True,
    ),
    Check(
        "rule_held_out", "clusters", 0.8, 0.5, True,
        "Only {value:.0%} of the groups held out satisfy the rule, less than {limit:.0%}.",
        "{value:.0%} of the groups held out satisfy the rule.",
        proof=True,
    ),
    Check(
        "rule_names", "clusters", 1.0, None, True,
        "The rule cannot show that the names are right: other namings satisfy it too, or were not ruled out.",
        "No other naming of the symbols satisfies what is known.",
    ),
    Check(
        "names_open", "clusters", 0, None, False,
        "The groups leave names open: of {value:.0f} symbols another name fits them about as well. More groups, or "
        "groups with other symbols in them, would tell.",
    ),
    Check(
        "rule_trained", "clusters", 0.8, 0.5, True,
        "Only {value:.0%} of the groups trained on satisfy the rule, less than {limit:.0%}.",
    ),
    Check(
        "test_points", "density", 100, None, True,
        "Only {value:.0f} test points: fewer than {limit:.0f} are too few to judge a density by.",
    ),
    Check(
        "sample_1nn", "density", 0.65, 0.9, False,
        "Samples of the density can be told from test points: {value:.0%} by nearest neighbours, more than "
        "{limit:.0%} (50 % is chance).",
        "Samples of the density cannot be told from test points: {value:.0%} by nearest neighbours (50 % is chance).",
        proof=True,
    ),
    Check(
        "told_apart", "density", 0.7, None, False,
        "Samples of the density lie elsewhere than test points: {value:.0%} of one kind have their nearest neighbour "
        "among themselves, more than {limit:.0%} (50 % is chance).",
    ),
    Check(
        "beyond_chance", "density", 0.1, 0.5, False,
        "Samples are as far from test points, beyond chance, as {value:.0%} of the way to points spread evenly over "
        "the box (limit {limit:.0%}).",
    ),
    Check(
        "mmd_over_null", "density", 8.0, None, False,
        "Samples differ from test points {value:.0f} times as much as chance allows (limit {limit:.0f}).",
    ),
    Check(
        "interventions", "training", 0, None, False,
        "The guard had to step in (interventions: {value:.0f}), as training diverged: see docs/guard.md.",
    ),
)  # fmt: skip

#: What is said where nothing could show that the clusters, or the density, are right.
NOT_JUDGED = {
    "clusters": "Not judged: whether these are the clusters of the data. Walks on a density of a table, or a rule on "
    "groups held out of training, would show it without labels.",
    "density": "Not judged: whether the density is that of the data. Samples in a table would show it; for images see "
    "gedi evaluate.",
}


def _word_of(subject: Subject, made: list[tuple[Check, float]]) -> str:
    """The word on one subject alone; trouble in training counts for each."""
    about = [(check, value) for check, value in made if check.about in (subject, "training")]
    shown = any(check.proof and check.word(value) == "trusted" for check, value in about)
    return max([*(check.word(value) for check, value in about), "trusted" if shown else "doubtful"], key=WORDS.index)


def verdict(evidence: Mapping[str, float], subjects: tuple[Subject, ...]) -> dict[str, Any]:
    """One word, a word on each subject, the reasons, and every check that could be made.

    Args:
        evidence: figures by name, none of them found by labels.
        subjects: what the run offers, the most important first: nothing is trusted unless that could be judged.

    Example:
        >>> verdict({"walks_connect": 0.99, "loss_left": 0.3}, ("clusters",))["word"]
        'failed'
        >>> verdict({"interventions": 0}, ("clusters",))["word"]
        'doubtful'
        >>> verdict({"walks_connect": 0.99}, ("clusters",))["word"]
        'trusted'
    """
    made = [(check, evidence[check.figure]) for check in CHECKS if check.figure in evidence]
    words = [check.word(value) for check, value in made]
    proofs = {check.about: check.word(value) for check, value in made if check.proof}
    shown = bool(subjects) and proofs.get(subjects[0]) == "trusted"
    word = max([*words, "trusted" if shown else "doubtful"], key=WORDS.index)
    why = [
        check.sentence(value)
        for wanted in (("trusted",) if word == "trusted" else ("failed", "doubtful"))  # the worst first
        for check, value in made
        if check.word(value) == wanted and check.sentence(value)
    ]
    return {
        "word": word,
        "words": {subject: _word_of(subject, made) for subject in subjects},
        "why": why + [NOT_JUDGED[subject] for subject in subjects if subject not in proofs],
        "checks": {
            check.figure: {
                "value": value,
                "must": f"{'>=' if check.least else '<='} {check.doubtful:g}",
                "word": check.word(value),
            }
            for check, value in made
        },
    }
