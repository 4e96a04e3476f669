"""ProbLog programs with neural predicates as circuits."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gedi.errors import UserError, unknown
from gedi.logic.child import bounded
from gedi.logic.circuit import Circuit
from gedi.logic.limits import Budget, Limits
from gedi.logic.sdd import Space

if TYPE_CHECKING:
    from gedi.logic.problog_text import Answer, Grounding

PERMISSIONS = ("files", "python")  # what a program may load only if its author is trusted
_CERTAIN = 1e-9  # probabilities this near to 0 or 1 are 0 or 1


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


@dataclass(frozen=True)
class _Input:
    """What a network reads: its output is one variable, whichever clause asks for it."""

    net: str
    inputs: tuple[str, ...]

    @property
    def short(self) -> str:
        return ",".join(self.inputs)

    @property
    def long(self) -> str:
        return f"{self.net}({self.short})"


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
    import gedi.logic.problog_text  # noqa: F401 - problog is imported by those who use it, not by each child again

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
    from gedi.logic.problog_text import ground, read

    source = read(program, allowed)
    grounding = ground(source, query, budget, allowed)
    atoms = _neural_atoms(grounding.formula, source.domains)
    order = list(_components(grounding.formula, [a.node for a in (*grounding.queries, *(grounding.evidence or ()))]))
    _refuse_at_sight(grounding, order, atoms)
    reached = {node for component in order for node in component}
    named = _positions(grounding.asked)
    domain_of = {
        key: domain
        for node, (key, domain, _) in atoms.items()
        if node in reached or all(name in named for name in key.inputs)
    }
    if variables is None:
        inputs = sorted(domain_of, key=lambda key: [named.get(name, len(named)) for name in key.inputs])
        names = _names(inputs)
    else:
        inputs, names = _as_wished(list(variables), domain_of, source.nets)
        domain_of |= {key: next(iter(source.nets[key.net])) for key in inputs if key not in domain_of}
    domains = tuple(source.domains[domain_of[key]] for key in inputs)
    fixed, choices, certain = _fixed(grounding.formula, sorted(reached - atoms.keys()))

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
    texts, roots = _roots(grounding, _formulas(grounding.formula, order, leaf, space), space)
    circuit = _moved(space.circuit(roots), sizes, arranged)
    return Program(texts, names, domains, fixed, circuit, grounding.evidence is not None)


def _refuse_at_sight(grounding: "Grounding", order: Sequence[Sequence[int]], atoms: Container[int]) -> None:
    """Raise for what needs no compilation: constants, and queries that no network has a part in."""
    evidence = grounding.evidence or ()
    if any(e.node is None for e in evidence):
        raise _contradiction(evidence)
    neural: set[int] = set()  # nodes with a neural atom below them
    for component in order:
        if any(n in atoms or not neural.isdisjoint(_children(grounding.formula, n)) for n in component):
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


def _neural_atoms(formula: Any, domains: Sequence[tuple[Any, ...]]) -> dict[int, tuple[_Input, int, int]]:
    """Input, domain and value of every neural atom of a formula."""
    from gedi.logic.problog_text import NEURAL, elements, python_value

    numbers = [{value: k for k, value in enumerate(domain)} for domain in domains]
    atoms: dict[int, tuple[_Input, int, int]] = {}
    domain_of: dict[_Input, int] = {}
    for node, content, kind in formula:
        if kind != "atom" or getattr(content.probability, "functor", None) != NEURAL:
            continue
        net, inputs, domain, value = content.probability.args
        key = _Input(str(net), tuple(str(term) for term in elements(inputs)))
        other = domain_of.setdefault(key, int(domain))
        if other != int(domain):
            raise UserError(
                f"one input must have one domain, got {list(domains[other])} and {list(domains[int(domain)])} for "
                f"{key.long}; use two networks"
            )
        atoms[node] = (key, other, numbers[other][python_value(value)])
    return atoms


def _positions(terms: Sequence[Any]) -> dict[str, int]:
    """Where each term first appears in the queries, from left to right."""
    found: dict[str, int] = {}
    stack = list(reversed(terms))
    while stack:
        term = stack.pop()
        found.setdefault(str(term), len(found))
        stack.extend(reversed(getattr(term, "args", ())))
    return found


def _names(inputs: Sequence[_Input]) -> tuple[str, ...]:
    shorts = [key.short for key in inputs]
    return tuple(key.long if shorts.count(key.short) > 1 else key.short for key in inputs)


def _as_wished(
    names: list[str], domain_of: dict[_Input, int], nets: dict[str, set[int]]
) -> tuple[list[_Input], tuple[str, ...]]:
    """The inputs that the user named, in this order."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise UserError(f"variables must differ, got {twice!r} twice; remove one")
    inputs = []
    for name in names:
        spelt = name.replace(" ", "")
        matching = [key for key in domain_of if spelt in (key.short.replace(" ", ""), key.long.replace(" ", ""))]
        if len(matching) > 1:
            raise UserError(
                f"a variable must be one neural input, got {name!r} for {' and '.join(k.long for k in matching)}; "
                f"write the network too"
            )
        inputs.append(matching[0] if matching else _unread(name, domain_of, nets))
    missing = [key for key in domain_of if key not in inputs]
    if missing:
        raise UserError(
            f"variables must name every neural input of the query, got {names} without "
            f"{', '.join(_names(missing))}; add what is missing"
        )
    return inputs, tuple(names)


def _unread(name: str, domain_of: dict[_Input, int], nets: dict[str, set[int]]) -> _Input:
    """An input that no rule reads: it has a column all the same."""
    net, bracket, rest = name.partition("(")
    if bracket and net in nets and name.endswith(")"):
        key = _Input(net, tuple(rest[:-1].split(",")))
    elif len(nets) == 1:
        key = _Input(next(iter(nets)), tuple(name.split(",")))
    else:
        raise UserError(
            f"{unknown('variable', name, [key.long for key in domain_of])}; to add an input that no rule reads write "
            f"its network too, as {next(iter(nets))}({name})"
        )
    if len(nets[key.net]) > 1:
        raise UserError(f"a variable that no rule reads must have one domain, got {name!r} of {len(nets[key.net])}")
    return key


def _fixed(
    formula: Any, nodes: Sequence[int]
) -> tuple[tuple[tuple[float, ...], ...], dict[int, tuple[int, int]], dict[int, bool]]:
    """The probabilities of plain choices; variable and value of their atoms; atoms that are certain."""
    groups: dict[Any, list[tuple[int, int, float]]] = {}
    for node in nodes:
        content = formula.get_node(node)
        if type(content).__name__ == "atom":
            group, choice = (
                (content.identifier, 0) if content.group is None else (content.group, content.identifier[-1])
            )
            groups.setdefault(group, []).append((choice, node, _probability(content)))
    fixed: list[tuple[float, ...]] = []
    choices: dict[int, tuple[int, int]] = {}
    constants: dict[int, bool] = {}
    for listed in groups.values():
        listed.sort()
        rest = 1.0 - sum(p for _, _, p in listed)
        if rest < -_CERTAIN:
            raise UserError(
                f"the probabilities of an annotated disjunction must sum to at most 1, got {1 - rest:g}; correct them"
            )
        constants |= {node: False for _, node, p in listed if p <= _CERTAIN}
        possible = [(node, p) for _, node, p in listed if p > _CERTAIN]
        if len(possible) == 1 and rest < _CERTAIN:
            constants[possible[0][0]] = True
        elif possible:
            choices |= {node: (len(fixed), k) for k, (node, _) in enumerate(possible)}
            fixed.append(tuple(p for _, p in possible) + ((rest,) if rest >= _CERTAIN else ()))
    return tuple(fixed), choices, constants


def _probability(atom: Any) -> float:
    try:
        p = float(atom.probability.value)
    except Exception as error:
        raise UserError(f"a probability must be a number, got {atom.probability} for {atom.name}") from error
    if not -_CERTAIN <= p <= 1 + _CERTAIN:
        raise UserError(f"a probability must be between 0 and 1, got {p:g}; correct it")
    return p


def _children(formula: Any, node: int) -> list[int]:
    """The nodes below a node, without their signs; true and false have none."""
    content = formula.get_node(node)
    return [] if type(content).__name__ == "atom" else [abs(c) for c in content.children if c]


def _components(formula: Any, roots: Iterable[int | None]) -> Iterator[list[int]]:
    """The strongly connected components below the roots, children first (Tarjan 1972, without recursion)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    for root in roots:
        if not root or abs(root) in number:
            continue
        work = [(abs(root), iter(_children(formula, abs(root))))]
        while work:
            node, below = work[-1]
            if node not in number:
                number[node] = low[node] = len(number)
                path.append(node)
                on_path.add(node)
            child = next((c for c in below if c not in number or c in on_path), None)
            if child is None:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == number[node]:
                    component = path[path.index(node) :] if path[-1] != node else [node]
                    del path[-len(component) :]
                    on_path -= set(component)
                    yield component
            elif child in number:
                low[node] = min(low[node], number[child])
            else:
                work.append((child, iter(_children(formula, child))))


def _formulas(
    formula: Any, components: Sequence[Sequence[int]], leaf: dict[int, Any], space: Space
) -> Callable[[int | None], Any]:
    """The diagram of every node.

    Rules that depend on one another start as false and are evaluated until nothing changes (the T_P operator
    of Vlasselaer et al., 2015): diagrams are canonical, so that can be seen, and no cycle needs unfolding.
    """
    known = dict(leaf)

    def of(node: int | None) -> Any:
        if not node:
            return space.false if node is None else space.true
        return known[node] if node > 0 else space.negation(known[-node])

    def evaluated(node: int) -> Any:
        content = formula.get_node(node)
        join = space.all if type(content).__name__ == "conj" else space.any
        return join(of(child) for child in content.children)

    for component in components:
        inner = set(component)
        for node in component:
            known.setdefault(node, space.false)
            content = formula.get_node(node)
            if type(content).__name__ != "atom" and any(c and c < 0 and -c in inner for c in content.children):
                raise UserError("a rule must not depend on its own negation, got one that does; remove the cycle")
        rules = [node for node in component if node not in leaf]
        recursive = len(component) > 1 or any(node in _children(formula, node) for node in rules)
        changed = bool(rules)
        while changed:
            changed = False
            for node in rules:
                new = evaluated(node)
                changed |= recursive and new != known[node]
                known[node] = new
    return of


def _moved(circuit: Circuit, sizes: Sequence[int], arranged: Sequence[int]) -> Circuit:
    """A circuit over the variables ``arranged`` with its leaves where the variables 0, 1, ... have theirs."""
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    leaves = np.concatenate([np.arange(first[variable], first[variable + 1]) for variable in arranged])
    number = np.concatenate([leaves, np.arange(circuit.columns, circuit.nodes)])
    return Circuit(circuit.columns, circuit.kinds, circuit.starts, number[circuit.children], number[circuit.roots])
