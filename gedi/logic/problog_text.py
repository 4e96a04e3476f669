"""ProbLog text to a ground formula; whatever is wrong with the text becomes one line."""

import contextlib
import io
import re
import sys
import time
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gedi.errors import UserError, unknown
from gedi.logic.limits import Budget

_limit = sys.getrecursionlimit()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what problog warns of at import is not ours to mend
    from problog.engine import DefaultEngine, UnknownClause, substitute_call_args
    from problog.engine_stack import MessageFIFO
    from problog.errors import NonGroundQuery, ParseError, ProbLogError
    from problog.eval_nodes import NegativeCycle
    from problog.formula import LogicFormula
    from problog.logic import And, AnnotatedDisjunction, Clause, Constant, Not, Or, Term, Var, is_ground, term2list
    from problog.program import PrologString, SimpleProgram

    from gedi.logic.problog_guard import WITHHELD, Guard, Guarded, refuse_at_sight
sys.setrecursionlimit(_limit)  # problog raises it when imported; here it is raised while problog runs

NEURAL = "$nn"  # $nn(net, inputs, domain, value): no program can contain these names
_VALUE = "$value"  # $value(domain, value)
_DEPTH = 50_000  # calls inside calls, about 3 kB each; a list of n elements needs about 2n
_DIGITS = 10_000  # bits of the largest number: beyond it a squaring recursion would outlast any time limit
_FRAMES = 10_000  # Python's recursion limit while problog runs, as it wishes
_SHOWN = 120  # characters of a query or a line that a message repeats


@dataclass
class Source:
    """A program whose neural clauses are rewritten so that problog can ground them.

    ``nn(net,[X],Y,[v0,v1]) :: p(X,Y) :- body.`` becomes ``p(X,Y) :- $value(d,Y), body, $nn(net,[X],d,Y).``
    with one probabilistic fact ``$nn(N,I,D,V) :: $nn(N,I,D,V).`` for all of them: the probability of a ground
    atom is then a term that tells net, inputs, domain and value, and a network asked twice about one input is
    one choice.

    Attributes:
        text: as it was given.
        program: the statements for problog.
        domains: every different domain, as Python values.
        nets: the domains that the clauses of each network give.
        predicates: what the program defines, as ``name/arity``.
    """

    text: str
    program: Any
    domains: list[tuple[Any, ...]] = field(default_factory=list)
    nets: dict[str, set[int]] = field(default_factory=dict)
    predicates: set[str] = field(default_factory=set)


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


def read(text: str, allowed: Collection[str] = ()) -> Source:
    """Parse a program, refuse what it may not load, and rewrite its neural clauses.

    Example:
        >>> source = read("nn(net,[X],Y,[0,1,-1]) :: digit(X,Y).")
        >>> source.domains, source.nets, source.predicates
        ([(0, 1, -1)], {'net': {0}}, {'digit/2'})
    """
    if not isinstance(text, str):
        raise UserError(
            f"program must be the text of a ProbLog program, got {type(text).__name__}; read the file first"
        )
    text = text.replace("\r\n", "\n")
    with _as_user_error(text):
        parsed = PrologString(text)
        statements = list(parsed)
    program = SimpleProgram()
    program.line_info, program.source_files = parsed.line_info, parsed.source_files  # errors can name their line
    source = Source(text, program)
    for statement in statements:
        if isinstance(statement, Clause | AnnotatedDisjunction):
            refuse_at_sight(statement.body, allowed, _where(parsed.lineno(statement.location), text))
    for statement in statements:
        heads = _heads(statement)
        neural = [head for head in heads if _is_neural(head.probability)]
        source.predicates |= {head.signature for head in heads} - {"query/1", "evidence/1", "evidence/2"}
        if not neural:
            with _as_user_error(text):
                program += statement
            continue
        where = _where(parsed.lineno(heads[0].location), text)
        if len(heads) > 1:
            raise UserError(f"a clause with a network must have one head, got {len(heads)}{where}; write one for each")
        body = statement.body if isinstance(statement, Clause) else Term("true")
        program += _neural_clause(heads[0], body, source, where)
    if not source.nets:
        raise UserError(
            "the program must have a neural predicate, got none; write one as nn(net,[X],Y,[0,1,2]) :: digit(X,Y)."
        )
    source.predicates.discard("_directive/0")
    fact = Term(NEURAL, *(Var(name) for name in ("Net", "Inputs", "Domain", "Value")))
    program += fact.with_probability(fact)
    return source


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
        engine = _Engine(budget, allowed)
        try:
            grounding = _grounded(engine, source, given, first)
            engine.guard.check()
            return grounding
        except _Cycle:
            # problog takes a negation between two recursions for a cycle unless it has met the negated atom before
            new = [goal for goal in engine.negated if goal not in first]
            if not new:
                raise
            first = [*reversed(new), *first]


def _grounded(engine: Any, source: Source, given: list[Any] | None, first: Sequence[Any]) -> Grounding:
    """Ground some atoms and then what is asked."""
    formula = LogicFormula()
    text = source.text
    with _as_user_error(text, source.predicates):
        database = engine.prepare(source.program)
        for term in first:
            engine.ground(database, term, formula, label="first")
    asked = _directed(engine, database, source) if given is None else given
    queries: dict[str, Answer] = {}
    for i, term in enumerate(asked):
        engine.goal = shown(term)
        with _as_user_error(text, source.predicates, goal=engine.goal, own=term if given is not None else None):
            engine.ground(database, term, formula, label=f"query {i}")
            answers = sorted(formula.get_names(f"query {i}"), key=lambda answer: _sort_key(answer[0]))
        of = None if term.is_ground() else shown(term)
        for name, node in answers:
            queries.setdefault(str(name), Answer(str(name), node, of))
    evidence: list[Answer] = []
    with _as_user_error(text, source.predicates):
        held = [(*row, Term("true")) for row in engine.query(database, Term("evidence", None))]
        held += [tuple(row) for row in engine.query(database, Term("evidence", None, None))]
    for i, (term, value) in enumerate(held):
        if not isinstance(term, Term) or str(value) not in ("true", "false"):
            raise UserError(f"evidence must be an atom with true or false, got evidence({term},{value})")
        engine.goal = shown(term)
        with _as_user_error(text, source.predicates, goal=engine.goal):
            engine.ground(database, term, formula, label=f"evidence {i}")
        for name, node in formula.get_names(f"evidence {i}"):
            holds = str(value) == "true"
            evidence.append(Answer(str(name if holds else -name), node if holds else formula.negate(node)))
    return Grounding(formula, tuple(asked), tuple(queries.values()), tuple(evidence) if held else None)


def python_value(term: Any) -> Any:
    """A constant of a program in Python.

    Example:
        >>> [python_value(term) for term in (Constant(-1), Constant(0.5), Term("blue"), Term("'light blue'"))]
        [-1, 0.5, 'blue', 'light blue']
    """
    if isinstance(term, Constant) and not isinstance(term.functor, str):
        return term.functor
    text = str(term)
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted and not term.args else text


def shown(term: Any) -> str:
    """A term as a message repeats it."""
    text = str(term)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]} ..."


def _heads(statement: Any) -> list[Any]:
    if isinstance(statement, AnnotatedDisjunction):
        return list(statement.heads)
    if isinstance(statement, Clause):
        return [statement.head]
    heads = statement.to_list() if isinstance(statement, Or) else [statement]
    return [head for head in heads if isinstance(head, Term)]


def _is_neural(probability: Any) -> bool:
    return isinstance(probability, Term) and probability.functor == "nn"


def _neural_clause(head: Any, body: Any, source: Source, where: str) -> Any:
    """The clause that stands for a neural one."""
    annotation = head.probability
    if annotation.arity not in (2, 4):
        raise UserError(
            f"a network must be written nn(net,[X],Y,[0,1,2]) or nn(net,[X]), got {shown(annotation)}{where}"
        )
    net, inputs = str(annotation.args[0]), annotation.args[1]
    if not annotation.args[0].is_ground() or not elements(inputs):
        raise UserError(f"a network must have a name and a list of inputs, got {shown(annotation)}{where}")
    head = head.with_probability(None)
    if annotation.arity == 2:
        domain = _domain_number(source, (False, True), ())
        source.nets.setdefault(net, set()).add(domain)
        return Clause(head, _conjunction(body, Term(NEURAL, Term(net), inputs, Constant(domain), Constant(1))))
    output, listed = annotation.args[2], elements(annotation.args[3])
    if not isinstance(output, Var) or output.name not in {str(v) for v in (*head.variables(), *body.variables())}:
        raise UserError(f"the output of a network must be a variable of the clause, got {shown(output)}{where}")
    if not listed or not is_ground(*listed):
        raise UserError(f"the values of a network must be a list of constants, got {shown(annotation.args[3])}{where}")
    values = tuple(python_value(term) for term in listed)
    if len(set(values)) < len(values):
        twice = next(value for i, value in enumerate(values) if value in values[:i])
        raise UserError(f"the values of a network must differ, got {twice!r} twice{where}; remove one")
    domain = _domain_number(source, values, listed)
    source.nets.setdefault(net, set()).add(domain)
    chosen = Term(NEURAL, Term(net), inputs, Constant(domain), output)
    return Clause(head, _conjunction(Term(_VALUE, Constant(domain), output), body, chosen))


def _conjunction(*parts: Any) -> Any:
    return And.from_list([part for part in parts if str(part) != "true"])


def _domain_number(source: Source, values: tuple[Any, ...], terms: Sequence[Any]) -> int:
    for number, known in enumerate(source.domains):
        if repr(known) == repr(values):  # False is not 0 here
            return number
    source.domains.append(values)
    for term in terms:
        source.program += Term(_VALUE, Constant(len(source.domains) - 1), term)
    return len(source.domains) - 1


def elements(term: Any) -> list[Any]:
    """The elements of a list; of anything else none."""
    try:
        return list(term2list(term, deep=False))
    except (ValueError, AttributeError):
        return []


def _listed(query: str | Sequence[str]) -> list[str]:
    queries = [query] if isinstance(query, str) else list(query)
    if not queries or not all(isinstance(q, str) and q.strip() for q in queries):
        raise UserError(f"query must be a text or a list of texts, got {query!r}")
    return queries


def _parsed(query: str, allowed: Collection[str]) -> Any:
    text = query.strip().removesuffix(".")
    with _as_user_error(f"{text}.", what="query"):
        parsed = list(PrologString(f"{text}."))
    for part in parsed:
        refuse_at_sight(part, allowed, " in the query")
    if len(parsed) != 1 or type(parsed[0]) not in (Term, Not) or parsed[0].probability is not None:
        raise UserError(f"a query must be one atom, got {shown(query)!r}; define a rule for it and ask its head")
    return parsed[0]


def _directed(engine: Any, database: Any, source: Source) -> list[Any]:
    """The queries of the program itself."""
    with _as_user_error(source.text, source.predicates):
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


class _Cycle(UserError):
    """A recursion through a negation, as problog sees it."""


class _Queue(MessageFIFO):  # type: ignore[misc]
    """problog's list of things to do; taking one is the step that everything it does passes through."""

    def pop(self) -> Any:
        self.engine.step(len(self.messages))
        return super().pop()


class _Engine(DefaultEngine):  # type: ignore[misc]
    """problog's engine with an end, and walls."""

    def __init__(self, budget: Budget, allowed: Collection[str]) -> None:
        super().__init__()
        self.guard = Guard(allowed)
        for name, arity in WITHHELD:
            self.add_builtin(name, arity, self.guard.withheld(f"{name}/{arity}"))
        self.budget, self.steps, self.goal = budget, 0, "a directive"
        self.negated: dict[Any, None] = {}  # ground atoms that some rule negates, in the order they were met

    def prepare(self, db: Any) -> Any:
        database = Guarded.createFrom(db, guard=self.guard, builtins=self.get_builtins())
        database.engine = self
        self._process_directives(database)
        return database

    def init_message_stack(self) -> _Queue:
        return _Queue(self)

    def step(self, waiting: int) -> None:
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
        if _widest(arguments["context"]) > _DIGITS:
            raise UserError(
                f"grounding must end, got numbers that grow without end in {self.goal}; bound its recursion"
            )
        return super().eval_builtin(**arguments)

    def eval_neg(self, **arguments: Any) -> Any:
        call = arguments["database"].get_node(arguments["node"].child)
        if type(call).__name__ == "call":
            context = arguments["context"]
            goal = Term(call.functor, *substitute_call_args(call.args, context, self.context_min_var(context))[0])
            if goal.is_ground():
                self.negated[goal] = None
        return super().eval_neg(**arguments)

    def handle_nonground(self, location: Any = None, database: Any = None, node: Any = None, **rest: Any) -> Any:
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


@contextlib.contextmanager
def _as_user_error(
    text: str, predicates: set[str] | None = None, what: str = "program", goal: str = "", own: Any = None
) -> Iterator[None]:
    """Run problog without output and warnings, and turn whatever it raises into one line.

    Args:
        text: where line numbers point to.
        predicates: what the program defines, to guess a misspelt one.
        what: what the text is.
        goal: what is being grounded.
        own: the goal as a term if it was given outside the text.
    """
    silence = io.StringIO()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
            warnings.simplefilter("ignore")
            yield
    except (UserError, MemoryError):
        raise
    except ParseError as error:
        raise _syntax_error(error, text, what) from error
    except UnknownClause as error:
        if error.signature == "!/0":
            raise UserError(f"ProbLog has no cut{_where(error.location, text)}; use a negated condition \\+") from error
        inner = own.args[0] if isinstance(own, Not) else own
        missing = own is not None and inner.signature == error.signature
        place = f"the query {goal}" if missing else _where(error.location, text).removeprefix(" in ")
        problem = unknown("predicate", error.signature, predicates or ())
        raise UserError(f"{problem} (in {place})" if place else str(problem)) from error
    except NegativeCycle as error:
        where = _where(error.location, text)
        raise _Cycle(f"a rule must not depend on its own negation, got one that does{where}; break it") from error
    except NonGroundQuery as error:
        raise UserError(f"a query must have answers without variables, got {goal}; bind them in its rules") from error
    except ProbLogError as error:
        message = re.sub(r"'/[^']*/([^/']+)'", r"'\1'", " ".join(str(error.base_message).split())).rstrip(".")
        where = _where(error.location, text)
        raise UserError(f"ProbLog cannot ground {goal or 'the program'}: {message}{where}; correct it") from error
    except RecursionError as error:
        raise UserError(
            f"grounding must end, got too deep a recursion in {goal or 'the program'}; bound it, or use shorter terms"
        ) from error
    except Exception as error:  # problog stumbles over some programs; the user needs to know over which part
        message = " ".join(f"{type(error).__name__} {error}".split())
        raise UserError(f"ProbLog cannot read {goal or f'the {what}'}: {message}; simplify it") from error
    finally:
        sys.setrecursionlimit(limit)


def _syntax_error(error: Any, text: str, what: str) -> UserError:
    message = error.base_message[0].lower() + error.base_message[1:]
    _, line, column = error.location
    column += line == 1  # problog counts the columns of the first line from 0, of the others from 1
    lines = text.split("\n")
    written = shown(lines[min(line, len(lines)) - 1].strip())
    place = f"line {line}, column {column}" if what == "program" else f"column {column}"
    advice = "end every clause with a period" if message.startswith("incomplete") else "correct it"
    return UserError(f"the {what} must be ProbLog, got a syntax error in {place} ({message}): {written}; {advice}")


def _where(location: Any, text: str) -> str:
    """The line that problog points at, for the end of a message."""
    if not isinstance(location, tuple) or len(location) != 3 or location[0] is not None:
        return ""
    lines = text.split("\n")
    line = location[1]
    return f" in line {line}: {shown(lines[line - 1].strip())}" if 0 < line <= len(lines) else ""
