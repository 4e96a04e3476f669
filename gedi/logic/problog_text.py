"""ProbLog text to statements that problog can ground: its neural clauses are rewritten."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from gedi.errors import UserError
from gedi.logic.problog_errors import as_user_error, shown, where_in
from gedi.logic.problog_guard import refuse_at_sight
from gedi.logic.problog_quiet import quiet_import

with quiet_import():
    from problog.logic import And, AnnotatedDisjunction, Clause, Constant, Or, Term, Var, is_ground, term2list
    from problog.program import PrologString, SimpleProgram

NEURAL = "$nn"  # $nn(net, inputs, domain, value): no program can contain these names
_VALUE = "$value"  # $value(domain, value)


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
    with as_user_error(text):
        parsed = PrologString(text)
        statements = list(parsed)
    program = SimpleProgram()
    program.line_info, program.source_files = parsed.line_info, parsed.source_files  # errors can name their line
    source = Source(text, program)
    for statement in statements:
        if isinstance(statement, Clause | AnnotatedDisjunction):
            refuse_at_sight(statement.body, allowed, where_in(parsed.lineno(statement.location), text))
    for statement in statements:
        heads = _heads(statement)
        neural = [head for head in heads if _is_neural(head.probability)]
        source.predicates |= {head.signature for head in heads} - {"query/1", "evidence/1", "evidence/2"}
        if not neural:
            with as_user_error(text):
                program += statement
            continue
        where = where_in(parsed.lineno(heads[0].location), text)
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


def elements(term: Any) -> list[Any]:
    """The elements of a list; of anything else none."""
    try:
        return list(term2list(term, deep=False))
    except (ValueError, AttributeError):
        return []
