"""A verdict as one looks at it in Python: a word, the reasons, and the figures behind them."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Verdict(NamedTuple):
    """What a training knows of itself without labels.

    Attributes:
        word: ``trusted``, ``doubtful`` or ``failed``.
        why: sentences.
        checks: what was looked at, by name: value, limit and word of each.

    Example:
        >>> print(Verdict("failed", ("One cluster holds every point.",), {}))
        failed: One cluster holds every point.
    """

    word: str
    why: tuple[str, ...]
    checks: Mapping[str, Any]

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> "Verdict":
        """From plain data, as a run keeps it."""
        return cls(written["word"], tuple(written["why"]), dict(written.get("checks", {})))

    def __str__(self) -> str:
        return f"{self.word}: {' '.join(self.why)}"
