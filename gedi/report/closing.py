"""The verdict in the terminal's closing lines."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

COLOURS = {"trusted": "bold green", "doubtful": "bold yellow", "failed": "bold red"}


def closing(verdict: Mapping[str, Any]) -> Text:
    """The word, coloured where a terminal shows colours, and below it the reasons.

    Example:
        >>> print(closing({"word": "failed", "why": ["No try passed."]}))
        failed (found without labels)
          No try passed.
    """
    word = verdict["word"]
    lines = Text.assemble((word, COLOURS[word]), " (found without labels)")
    for reason in verdict["why"]:
        lines.append(f"\n  {reason}")
    return lines
