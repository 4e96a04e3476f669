"""The random streams of a run: those that all processes draw the same from, and those of each."""

from typing import Any

from gedi.processes import Processes
from gedi.random import Streams


class RunStreams:
    """Streams of the run or of one of its restarts; a single process has only one kind.

    Args:
        root: the streams of the run.
        processes: which this one is of.

    Attributes:
        shared: every process draws the same from them.
        own: of this process alone.
    """

    def __init__(self, root: Streams, processes: Processes) -> None:
        self._root, self._processes = root, processes
        self._absent: list[dict[str, Any]] = []  # of processes that a run had which went on with fewer
        self.select(None)

    def select(self, name: str | None) -> None:
        """Go on with streams of this name, from their beginning, or with those of the run."""
        self._name = name
        self.shared = self._root if name is None else self._root.child(name)
        rank = self._processes.rank
        self.own = self.shared.child(f"rank/{rank}") if rank else self.shared

    def state_dict(self) -> dict[str, Any]:
        """Where every stream stands, of every process."""
        others = self._processes.of_all(self.own.state_dict())[1:]  # the first one's are the shared ones
        return {
            "name": self._name,
            "root": self._root.state_dict(),
            "shared": self.shared.state_dict(),
            "own": [*others, *self._absent],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where they stood, with as many processes or with another number of them."""
        self._root.load_state_dict(state["root"])
        self.select(state["name"])
        self.shared.load_state_dict(state["shared"])
        others, rank = state["own"], self._processes.rank
        if 0 < rank <= len(others):
            self.own.load_state_dict(others[rank - 1])
        self._absent = others[self._processes.size - 1 :]
