"""A term of the embeddings of the data and of one look at them."""

from typing import ClassVar, Literal

from torch import Tensor

from gedi.objectives.objective import Look, Objective, Seen


class Paired(Objective):
    """What all such terms have in common: which look, and where their embeddings are."""

    look: Look = "view"

    shapes: ClassVar[Literal["clusters", "embedding"]] = "embedding"

    @property
    def looks(self) -> tuple[Look, ...]:
        """The one it is held against."""
        return (self.look,)

    def embeddings(self, seen: Seen) -> tuple[Tensor, Tensor]:
        """Of the data and of the look, (n, d) each, rows of norm 1."""
        return seen.data.embedding, seen.looks[self.look].embedding
