"""problog's engine with an end, and walls: it stops at limits, and loads what it may."""

import time
from collections.abc import Collection, Sequence
from typing import Any

from gedi.errors import UserError
from gedi.logic.limits import Budget
from gedi.logic.problog_guard import WITHHELD, Guard, Guarded
from gedi.logic.problog_quiet import quiet_import
from gedi.logic.problog_text import NEURAL

with quiet_import():
    from problog.engine import DefaultEngine, substitute_call_args
    from problog.engine_stack import MessageFIFO
    from problog.logic import Constant, Term

_DEPTH = 50_000  # calls inside calls, about 3 kB each; a list of n elements needs about 2n
_DIGITS = 10_000  # bits of the largest number: beyond it a squaring recursion would outlast any time limit


class _Queue(MessageFIFO):  # type: ignore[misc]
    """problog's list of things to do; taking one is the step that everything it does passes through."""

    def pop(self) -> Any:
        self.engine.step(len(self.messages))
        return super().pop()


class Engine(DefaultEngine):  # type: ignore[misc]
    """problog's engine with an end, and walls."""

    def __init__(self, budget: Budget, allowed: Collection[str]) -> None:
        super().__init__()
        self.guard = Guard(allowed)
        for name, arity in WITHHELD:
            self.add_builtin(name, arity, self.guard.withheld(f"{name}/{arity}"))
        self.budget, self.steps, self.goal = budget, 0, "a directive"
        self.negated: dict[Any, None] = {}  # ground atoms that some rule negates, in the order they were met

    def prepare(self, db: Any) -> Any:
        """The database of a program, behind its guard."""
        database = Guarded.createFrom(db, guard=self.guard, builtins=self.get_builtins())
        database.engine = self
        self._process_directives(database)
        return database

    def init_message_stack(self) -> _Queue:
        """A list of things to do that counts them."""
        return _Queue(self)

    def step(self, waiting: int) -> None:
        """Now and then, raise if a grounding has no end in sight."""
        self.steps += 1
        if self.steps % 64:
            return
        seconds = self.budget.limits.seconds
        if time.monotonic() - self.budget.began > seconds:
            raise UserError(
                f"grounding must end, got no end of {self.goal} within {seconds:g} s; "
                f"bound its recursion, let its rules try fewer combinations, or raise time_limit"
            )
        if max(self.pointer, waiting) > _DEPTH:
            raise UserError(
                f"grounding must end, got {_DEPTH:,} calls inside one another in {self.goal}; bound its recursion"
            )

    def eval_builtin(self, **arguments: Any) -> Any:
        """Call a builtin, unless its numbers grow without end."""
        if _widest(arguments["context"]) > _DIGITS:
            raise UserError(
                f"grounding must end, got numbers that grow without end in {self.goal}; bound its recursion"
            )
        return super().eval_builtin(**arguments)

    def eval_neg(self, **arguments: Any) -> Any:
        """Ground a negation and remember what it negates."""
        call = arguments["database"].get_node(arguments["node"].child)
        if type(call).__name__ == "call":
            context = arguments["context"]
            goal = Term(call.functor, *substitute_call_args(call.args, context, self.context_min_var(context))[0])
            if goal.is_ground():
                self.negated[goal] = None
        return super().eval_neg(**arguments)

    def handle_nonground(self, location: Any = None, database: Any = None, node: Any = None, **rest: Any) -> Any:
        """Say which input of a network is not known."""
        result = rest["result"]
        if str(node.functor.args[-1].functor) == NEURAL:
            raise UserError(
                f"the inputs of a network must be known when it is asked, got {result[0]}({result[1]}) with variables "
                f"in {self.goal}; name them in the query, or bind them before"
            )
        return super().handle_nonground(location=location, database=database, node=node, **rest)


def _widest(terms: Sequence[Any], depth: int = 3) -> int:
    """The number of bits of the largest integer in arithmetic terms."""
    widest = 0
    for term in terms:
        if isinstance(term, Constant):
            if isinstance(term.functor, int):
                widest = max(widest, term.functor.bit_length())
        elif depth and isinstance(term, Term) and term.functor != ".":
            widest = max(widest, _widest(term.args, depth - 1))
    return widest
