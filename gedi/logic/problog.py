"""ProbLog programs with neural predicates as circuits."""

from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gedi.errors import UserError, unknown
from gedi.logic.child import bounded
from gedi.logic.circuit import Circuit
from gedi.logic.limits import Budget, Limits
from gedi.logic.problog_formula import children, components, diagrams
from gedi.logic.problog_inputs import as_wished, names_of, neural_atoms, plain_choices, positions
from gedi.logic.sdd import Space

if TYPE_CHECKING:
    from gedi.logic.problog_ground import Answer, Grounding

PERMISSIONS = ("files", "python")  # what a program may load only if its author is trusted


@dataclass(frozen=True)
class Program:
    """A compiled ProbLog program.

    Attributes:
        queries: ground queries as text; one root of the circuit each, in order.
        variables: the neural inputs: ``a``, or ``net(a)`` where two networks read one input.
        domains: the values of each neural input.
        fixed: the probabilities of the other choices (probabilistic facts and annotated disjunctions): each is
            a variable after the neural ones, its last value often "none of them".
        circuit: the roots are the queries and, if conditional, the evidence as the last one; every query root
            is then query and evidence.
        conditional: whether the program has evidence.
    """

    queries: tuple[str, ...]
    variables: tuple[str, ...]
    domains: tuple[tuple[Any, ...], ...]
    fixed: tuple[tuple[float, ...], ...]
    circuit: Circuit
    conditional: bool

    def about(self) -> dict[str, Any]:
        """What is stored beside the circuit."""
        return {
            "queries": list(self.queries),
            "variables": list(self.variables),
            "domains": [list(domain) for domain in self.domains],
            "fixed": [list(choice) for choice in self.fixed],
            "conditional": self.conditional,
        }

    @classmethod
    def stored(cls, circuit: Circuit, about: dict[str, Any]) -> "Program | None":
        """A program from what was stored of it, or None where the parts do not fit together."""
        try:
            queries, variables = tuple(about["queries"]), tuple(about["variables"])
            domains = tuple(tuple(domain) for domain in about["domains"])
            fixed = tuple(tuple(float(p) for p in choice) for choice in about["fixed"])
            conditional = about["conditional"]
            different = all(len(set(domain)) == len(domain) > 0 for domain in domains)
        except (KeyError, TypeError, ValueError):
            return None
        fits = (
            different
            and all(isinstance(name, str) for name in (*queries, *variables))
            and len(variables) == len(domains) > 0
            and all(choice and min(choice) >= 0 and abs(sum(choice) - 1) < 1e-6 for choice in fixed)
            and isinstance(conditional, bool)
            and len(circuit.roots) == len(queries) + conditional > conditional
            and circuit.columns == sum(len(values) for values in (*domains, *fixed))
        )
        return cls(queries, variables, domains, fixed, circuit, conditional) if fits else None


def compile_program(
    program: str,
    query: str | Sequence[str] | None,
    variables: Sequence[str] | None,
    limits: Limits,
    allow: Collection[str] | str = (),
) -> Program:
    r"""Ground a program with problog and compile its queries.

    A network and its input are one variable, whichever clauses ask it. Neural inputs are ordered as they first
    appear in the query, the others as the grounding meets them.

    Args:
        program: ProbLog with neural annotated disjunctions ``nn(net,[X],Y,[v0,v1]) :: p(X,Y).`` and neural facts
            ``nn(net,[X]) :: p(X).`` (values False and True).
        query: atoms; None takes the program's ``query(...)``. One with variables stands for all its answers,
            numbers by size before names by spelling.
        variables: names and order of the neural inputs. It may name inputs that no rule reads, as long as the
            program tells their values.
        limits: how much it may take.
        allow: what it may load beyond the listed libraries: ``files``, ``python``.

    Example:
        >>> compiled = compile_program(r'''
        ...     nn(net,[X],Y,[0,1,2]) :: digit(X,Y).
        ...     0.1 :: broken.
        ...     sum(A,B,N) :- \+broken, digit(A,X), digit(B,Y), N is X + Y.
        ... ''', "sum(a,b,N)", None, Limits())
        >>> compiled.queries
        ('sum(a,b,0)', 'sum(a,b,1)', 'sum(a,b,2)', 'sum(a,b,3)', 'sum(a,b,4)')
        >>> compiled.variables, compiled.domains, compiled.fixed
        (('a', 'b'), ((0, 1, 2), (0, 1, 2)), ((0.1, 0.9),))
    """
    import gedi.logic.problog_ground  # noqa: F401 - problog is imported by those who use it, not by each child again

    allowed = permissions(allow)
    budget = Budget(limits, "ask a smaller query")
    return bounded(lambda: compile_here(program, query, variables, budget, allowed), budget)


def permissions(allow: Collection[str] | str) -> frozenset[str]:
    """What the user allows a program to load, checked.

    Example:
        >>> sorted(permissions(("python", "files")))
        ['files', 'python']
    """
    names = [allow] if isinstance(allow, str) else allow
    if not isinstance(names, Collection):
        raise UserError(f"allow must list what a program may load ({', '.join(PERMISSIONS)}), got {allow!r}")
    for name in names:
        if name not in PERMISSIONS:
            raise unknown("permission in allow", str(name), PERMISSIONS)
    return frozenset(names)


def compile_here(
    program: str,
    query: str | Sequence[str] | None,
    variables: Sequence[str] | None,
    budget: Budget,
    allowed: Collection[str] = (),
) -> Program:
    """The same in this process, where only what problog lets us check is limited."""
    from gedi.logic.problog_ground import ground
    from gedi.logic.problog_text import read

    source = read(program, allowed)
    grounding = ground(source, query, budget, allowed)
    atoms = neural_atoms(grounding.formula, source.domains)
    order = list(components(grounding.formula, [a.node for a in (*grounding.queries, *(grounding.evidence or ()))]))
    _refuse_at_sight(grounding, order, atoms)
    reached = {node for component in order for node in component}
    named = positions(grounding.asked)
    domain_of = {
        key: domain
        for node, (key, domain, _) in atoms.items()
        if node in reached or all(name in named for name in key.inputs)
    }
    if variables is None:
        inputs = sorted(domain_of, key=lambda key: [named.get(name, len(named)) for name in key.inputs])
        names = names_of(inputs)
    else:
        inputs, names = as_wished(list(variables), domain_of, source.nets)
        domain_of |= {key: next(iter(source.nets[key.net])) for key in inputs if key not in domain_of}
    domains = tuple(source.domains[domain_of[key]] for key in inputs)
    fixed, choices, certain = plain_choices(grounding.formula, sorted(reached - atoms.keys()))

    column = {key: i for i, key in enumerate(inputs)}
    place = {node: (column[key], k) for node, (key, _, k) in atoms.items() if node in reached}
    place |= {node: (len(inputs) + i, k) for node, (i, k) in choices.items()}
    # columns follow the user's order; the diagram follows the grounding, where inputs that meet are neighbours
    sizes = [len(values) for values in (*domains, *fixed)]
    arranged = list(dict.fromkeys([*(place[node][0] for node in sorted(place)), *range(len(sizes))]))
    rank = {variable: i for i, variable in enumerate(arranged)}
    space = Space([sizes[variable] for variable in arranged], budget)
    leaf = {node: space.value(rank[variable], k) for node, (variable, k) in place.items()}
    leaf |= {node: space.true if holds else space.false for node, holds in certain.items()}
    texts, roots = _roots(grounding, diagrams(grounding.formula, order, leaf, space), space)
    circuit = space.circuit(roots).moved(sizes, arranged)
    return Program(texts, names, domains, fixed, circuit, grounding.evidence is not None)


def _refuse_at_sight(grounding: "Grounding", order: Sequence[Sequence[int]], atoms: Container[int]) -> None:
    """Raise for what needs no compilation: constants, and queries that no network has a part in."""
    evidence = grounding.evidence or ()
    if any(e.node is None for e in evidence):
        raise _contradiction(evidence)
    neural: set[int] = set()  # nodes with a neural atom below them
    for component in order:
        if any(n in atoms or not neural.isdisjoint(children(grounding.formula, n)) for n in component):
            neural.update(component)
    conditioned = any(abs(e.node or 0) in neural for e in evidence)
    for q in grounding.queries:
        if q.node is None or (q.node == 0 and not evidence):
            raise _constant(q.of if q.of and q.node is None else q.text, q.node is None, False)
        if not conditioned and abs(q.node) not in neural:
            raise UserError(
                f"a query must involve a neural input, got {q.text}, which involves none; ask something that a "
                f"network has a part in"
            )


def _roots(
    grounding: "Grounding", known: Callable[[int | None], Any], space: Space
) -> tuple[tuple[str, ...], list[Any]]:
    """The queries that can be and their compiled formulas, with that of the evidence at the end."""
    held = grounding.evidence or ()
    evidence = space.all(known(e.node) for e in held)
    given = space.compiled(evidence)
    if space.is_false(given):
        raise _contradiction(held)
    possible: dict[str, Any] = {}
    for q in grounding.queries:
        result = space.compiled(space.all([known(q.node), evidence]))
        if result == given:
            raise _constant(q.text, False, bool(held))
        if not space.is_false(result):
            possible[q.text] = result
    answered = {q.of for q in grounding.queries if q.text in possible}
    for q in grounding.queries:  # an answer that nothing makes true is none; a query must have one
        if q.text not in possible and (q.of is None or q.of not in answered):
            raise _constant(q.of or q.text, True, bool(held))
    return tuple(possible), [*possible.values(), *([given] if grounding.evidence is not None else [])]


def _constant(text: str, never: bool, given: bool) -> UserError:
    under = " given the evidence" if given else ""
    if never:
        return UserError(f"a query must be possible, got {text}, which is never true{under}; check it and its rules")
    return UserError(f"a query must be able to fail, got {text}, which is always true{under}; ask something else")


def _contradiction(evidence: "Sequence[Answer]") -> UserError:
    impossible = [e.text for e in evidence if e.node is None] or [e.text for e in evidence]
    return UserError(f"the evidence must be possible, got {', '.join(impossible)}, which is never true; correct it")
