"""What was found in tables of clusterings, as Markdown: agreement with classes, then unseen rows and seconds."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gedi.tables.written import grid

GEDI, ALONE, STILL = "GEDI", "proposal alone", "without walks"
_OURS = (GEDI, ALONE, STILL)
_NEAR = 0.03  # of the best peer's NMI


class Outcome(NamedTuple):
    """One way's clusters of one table: agreement with the classes, processor time, and what it says of itself.

    ``unseen`` is NMI of rows that were not learnt from, where a way can predict. ``number`` is how many clusters the
    graph of the points speaks for; those asked for are as many as classes.
    """

    nmi: float
    ari: float
    seconds: float
    unseen: float | None = None
    word: str = ""
    kept: float | None = None
    number: int | None = None


Found = Mapping[str, Mapping[str, Sequence[Outcome]]]


def markdown(found: Found) -> str:
    """A line for each table: NMI of every way, and how many are near the best peer; then the other figures."""
    said = [
        f"Within {_NEAR} of the best peer on {_near(found, 'nmi')} of {len(found)} tables, and so on rows unseen, "
        f"beside peers that predict, on {_near(found, 'unseen')}; trusted, with less than half of the best: "
        f"{_misled(found)}. Means over the seeds. Peers see the columns as they are and standardised, and the better "
        "counts."
    ]
    return "\n".join([*_agreement(found), "", *said, "", *_more(found), ""])


def _agreement(found: Found) -> list[str]:
    names = ["data", *(f"{way}, NMI" for way in _ways(found)), "clusters, proposed", "information kept", "verdict"]
    lines = []
    for row, ways in found.items():
        words = [o.word for o in ways[GEDI]]
        kept = [o.kept for o in ways[GEDI] if o.kept is not None]
        lines.append(
            [
                row,
                *(_mean(ways[way], "nmi") for way in ways),
                ", ".join(str(o.number) for o in ways[ALONE] if o.number is not None),
                f"{np.mean(kept):.3f}" if kept else "",
                ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words)),
            ]
        )
    return grid(names, lines)


def _more(found: Found) -> list[str]:
    """ARI, NMI of unseen rows by those who can predict them, and seconds of processor time of a fit."""
    told = [way for way in _ways(found) if way not in (ALONE, STILL)]
    predict = [way for way in told if all(o.unseen is not None for ways in found.values() for o in ways[way])]
    asked = [*((way, "ari", ".2f") for way in told), *((way, "unseen", ".2f") for way in predict)]
    asked += [(way, "seconds", ".1f") for way in told]
    words = {"ari": "ARI", "unseen": "NMI of unseen", "seconds": "processor seconds"}
    names = ["data", *(f"{way}, {words[figure]}" for way, figure, _ in asked)]
    lines = [[row, *(_mean(ways[way], figure, how) for way, figure, how in asked)] for row, ways in found.items()]
    return grid(names, lines)


def _ways(found: Found) -> list[str]:
    return list(next(iter(found.values())))


def _mean(runs: Sequence[Outcome], figure: str, how: str = ".2f") -> str:
    return format(float(np.mean([getattr(o, figure) for o in runs])), how)


def _near(found: Found, figure: str) -> int:
    """On how many tables ours is near the best of the peers that have a figure, or above it."""
    count = 0
    for ways in found.values():
        mean = {
            way: float(np.mean([getattr(o, figure) for o in runs]))
            for way, runs in ways.items()
            if way not in (ALONE, STILL) and all(getattr(o, figure) is not None for o in runs)
        }
        ours = mean.pop(GEDI)
        count += ours >= max(mean.values()) - _NEAR
    return count


def _misled(found: Found) -> int:
    """Runs that are trusted and have less than half of the best peer's NMI."""
    count = 0
    for ways in found.values():
        best = max(float(np.mean([o.nmi for o in runs])) for way, runs in ways.items() if way not in _OURS)
        count += sum(o.word == "trusted" and o.nmi < best / 2 for o in ways[GEDI])
    return count
