"""A program and what is asked of it to a ground formula."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from gedi.errors import UserError
from gedi.logic.limits import Budget
from gedi.logic.problog_engine import Engine
from gedi.logic.problog_errors import Cycle, as_user_error, shown
from gedi.logic.problog_guard import refuse_at_sight
from gedi.logic.problog_quiet import quiet_import
from gedi.logic.problog_text import Source

with quiet_import():
    from problog.formula import LogicFormula
    from problog.logic import Constant, Not, Term
    from problog.program import PrologString


@dataclass(frozen=True)
class Answer:
    """A ground query or piece of evidence: its text, its node, and the query with variables that it answers."""

    text: str
    node: int | None
    of: str | None = None


@dataclass(frozen=True)
class Grounding:
    """Nodes of a ground formula: 0 is true, None is false, a negative number is a negation.

    Attributes:
        formula: problog's nodes; they may form cycles.
        asked: the queries as terms, with their variables.
        queries: what is asked.
        evidence: what holds, or None if there is no evidence.
    """

    formula: Any
    asked: tuple[Any, ...]
    queries: tuple[Answer, ...]
    evidence: tuple[Answer, ...] | None


def ground(
    source: Source, query: str | Sequence[str] | None, budget: Budget, allowed: Collection[str] = ()
) -> Grounding:
    """Ground the queries and the evidence of a program.

    Args:
        source: the program.
        query: what is asked; None takes the program's ``query(...)``.
        budget: its time ends a grounding that does not end by itself.
        allowed: what it may load, see :mod:`gedi.logic.problog_guard`.
    """
    given = None if query is None else [_parsed(q, allowed) for q in _listed(query)]
    first: list[Any] = []
    while True:
        engine = Engine(budget, allowed)
        try:
            grounding = _grounded(engine, source, given, first)
            engine.guard.check()
            return grounding
        except Cycle:
            # problog takes a negation between two recursions for a cycle unless it has met the negated atom before
            new = [goal for goal in engine.negated if goal not in first]
            if not new:
                raise
            first = [*reversed(new), *first]


def _grounded(engine: Any, source: Source, given: list[Any] | None, first: Sequence[Any]) -> Grounding:
    """Ground some atoms and then what is asked."""
    formula = LogicFormula()
    text = source.text
    with as_user_error(text, source.predicates):
        database = engine.prepare(source.program)
        for term in first:
            engine.ground(database, term, formula, label="first")
    asked = _directed(engine, database, source) if given is None else given
    queries: dict[str, Answer] = {}
    for i, term in enumerate(asked):
        engine.goal = shown(term)
        with as_user_error(text, source.predicates, goal=engine.goal, own=term if given is not None else None):
            engine.ground(database, term, formula, label=f"query {i}")
            answers = sorted(formula.get_names(f"query {i}"), key=lambda answer: _sort_key(answer[0]))
        of = None if term.is_ground() else shown(term)
        for name, node in answers:
            queries.setdefault(str(name), Answer(str(name), node, of))
    evidence: list[Answer] = []
    with as_user_error(text, source.predicates):
        held = [(*row, Term("true")) for row in engine.query(database, Term("evidence", None))]
        held += [tuple(row) for row in engine.query(database, Term("evidence", None, None))]
    for i, (term, value) in enumerate(held):
        if not isinstance(term, Term) or str(value) not in ("true", "false"):
            raise UserError(f"evidence must be an atom with true or false, got evidence({term},{value})")
        engine.goal = shown(term)
        with as_user_error(text, source.predicates, goal=engine.goal):
            engine.ground(database, term, formula, label=f"evidence {i}")
        for name, node in formula.get_names(f"evidence {i}"):
            holds = str(value) == "true"
            evidence.append(Answer(str(name if holds else -name), node if holds else formula.negate(node)))
    return Grounding(formula, tuple(asked), tuple(queries.values()), tuple(evidence) if held else None)


def _listed(query: str | Sequence[str]) -> list[str]:
    queries = [query] if isinstance(query, str) else list(query)
    if not queries or not all(isinstance(q, str) and q.strip() for q in queries):
        raise UserError(f"query must be a text or a list of texts, got {query!r}")
    return queries


def _parsed(query: str, allowed: Collection[str]) -> Any:
    text = query.strip().removesuffix(".")
    with as_user_error(f"{text}.", what="query"):
        parsed = list(PrologString(f"{text}."))
    for part in parsed:
        refuse_at_sight(part, allowed, " in the query")
    if len(parsed) != 1 or type(parsed[0]) not in (Term, Not) or parsed[0].probability is not None:
        raise UserError(f"a query must be one atom, got {shown(query)!r}; define a rule for it and ask its head")
    return parsed[0]


def _directed(engine: Any, database: Any, source: Source) -> list[Any]:
    """The queries of the program itself."""
    with as_user_error(source.text, source.predicates):
        found = [row[0] for row in engine.query(database, Term("query", None))]
    if not found:
        raise UserError("a program needs a query, got none; add query(...) to it or give query=")
    for term in found:
        if not isinstance(term, Term) or isinstance(term, Constant):
            raise UserError(f"query(...) must hold an atom, got query({term})")
    return found


def _sort_key(term: Any) -> tuple[Any, ...]:
    """Numbers by size before names by spelling, argument by argument."""
    if not isinstance(term, Term):
        return (2, str(term))
    if isinstance(term, Constant) and not isinstance(term.functor, str):
        return (0, term.functor)
    return (1, str(term.functor), len(term.args), *(_sort_key(argument) for argument in term.args))
