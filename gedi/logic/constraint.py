"""One class for every kind of knowledge: what must hold of a group of symbols."""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gedi.errors import UserError
from gedi.logic import cache
from gedi.logic.arguments import (
    Domain,
    check_count,
    check_names,
    checked_accept,
    checked_domains,
    checked_step,
    is_domain_list,
    items,
    program_text,
    said,
    shown,
    whole,
)
from gedi.logic.child import bounded
from gedi.logic.circuit import Circuit, from_table
from gedi.logic.cnf import compile_clauses, read_clauses
from gedi.logic.diagram import Diagram, from_automaton, from_solutions
from gedi.logic.evaluate import Backend, Evaluator, evaluator
from gedi.logic.limits import Budget, Limits
from gedi.logic.predicate import diagram_of, satisfying
from gedi.logic.probabilities import check_distributions, check_tensor, check_tensors, check_weights
from gedi.logic.problog import Program, compile_program, permissions
from gedi.logic.sdd import Space
from gedi.logic.shortcuts import Shortcuts, find_shortcuts
from gedi.precision import full_precision

LISTED = 4096  # a constraint with at most this many solutions is a plain sum over them: faster than a diagram
_DIAGRAM_FROM = 100_000  # solutions worth listing to make a diagram of a compiled circuit


class Constraint:
    r"""What must hold of a group of symbols, as a differentiable probability.

    For symbols that are independent given their inputs, with :math:`p_i` the network's distribution over the
    values of the i-th one,

    .. math:: \log P(C) = \log \sum_{y \models C} \prod_i p_i(y_i)

    is computed exactly by a compiled circuit, in log space and for a whole batch of groups.

    Made by :meth:`from_predicate`, :meth:`from_automaton`, :meth:`from_cnf`, :meth:`from_problog` and the
    ready-made ones of :mod:`gedi.logic`; combined by ``&``, ``|``, ``~`` and :meth:`on`.

    Attributes:
        domains: the values of each variable.
        variables: the name of each variable.
        queries: the names of several queries (ProbLog), or None for one constraint.
        circuit: the compiled form.

    Example:
        >>> c = Constraint.from_predicate(lambda a, b, c: a + b == c, domains=[range(10)] * 3)
        >>> c.n_solutions
        55
        >>> c.log_prob(torch.full((1, 3, 10), 0.1).log()).exp()          # 55 of 1000, whatever the group
        tensor([0.0550])
        >>> c.is_satisfied([[2, 3, 5], [2, 3, 6]])
        tensor([ True, False])
    """

    def __init__(
        self,
        circuit: Circuit,
        domains: Sequence[Domain],
        *,
        variables: Sequence[str] | None = None,
        diagram: Diagram | None = None,
        queries: Sequence[str] | None = None,
        fixed: Sequence[Sequence[float]] = (),
        conditional: bool = False,
        backend: Backend | None = None,
    ) -> None:
        if not isinstance(circuit, Circuit):
            raise UserError(
                f"a Constraint is made by its from_... methods; a circuit was expected, got {shown(circuit)}"
            )
        self.circuit = circuit
        self.domains = tuple(tuple(domain) for domain in checked_domains(domains))
        check_names(variables, "variables")
        check_names(queries, "queries")
        self.variables = tuple(variables or (f"x{i + 1}" for i in range(len(self.domains))))
        self.queries = None if queries is None else tuple(queries)
        choices = items(fixed, "fixed must be lists of probabilities")
        self._fixed = tuple(tuple(items(choice, "fixed must be lists of probabilities")) for choice in choices)
        columns = sum(self.sizes) + sum(map(len, self._fixed))
        if columns != circuit.columns:
            raise UserError(f"a circuit over {circuit.columns} values needs domains with as many, got {columns}")
        roots = (1 if self.queries is None else len(self.queries)) + conditional
        if len(circuit.roots) != roots:
            raise UserError(f"a circuit with {len(circuit.roots)} roots needs as many queries, got {shown(queries)}")
        if len(self.variables) != len(self.domains):
            raise UserError(f"{len(self.domains)} variables need as many names, got {shown(self.variables)}")
        self._conditional = conditional
        self._backend = backend
        self._given_diagram = diagram

    @classmethod
    def from_predicate(
        cls,
        rule: Callable[..., Any],
        domains: Sequence[Domain],
        *,
        time_limit: float = 60.0,
        size_limit: float = 1_000_000,
        memory_limit: float = 2.0,
    ) -> "Constraint":
        """A rule in Python: called with one value for each variable, it says whether they fit together.

        While there are few assignments all of them are asked, whole columns at a time where the rule can take
        NumPy arrays. Beyond two million the rule is called once with expressions and read variable by
        variable (see :class:`gedi.logic.expression.Expression` for what it may use then).

        Args:
            rule: the predicate.
            domains: the values of each variable; they may differ.
            time_limit: seconds.
            size_limit: nodes of the largest structure on the way.
            memory_limit: gigabytes beyond what is in use.

        Example:
            >>> Constraint.from_predicate(lambda a, b: abs(a - b) <= 1, [range(3), range(3)]).n_solutions
            7
        """
        if not callable(rule):
            raise UserError(f"a rule must be a function of the values of its variables, got {shown(rule)}")
        limits = Limits(time_limit, size_limit, memory_limit)
        budget = Budget(limits, "split the rule, or write it as Constraint.from_automaton")
        domains = checked_domains(domains)
        try:
            assignments = satisfying(rule, domains, budget)
            if assignments is not None:
                return cls._from_assignments(assignments, domains)
            return cls._from_diagram(diagram_of(rule, domains, budget), domains, budget=budget)
        except UserError:
            raise
        except Exception as error:  # the rule's own: its traceback stays with it
            raise UserError(f"the rule must say True or False of plain values, but failed: {said(error)}") from error

    @classmethod
    def from_automaton(
        cls,
        n: int,
        init: Hashable,
        step: Callable[[Any, Any], Hashable],
        accept: Callable[[Any], bool] | Iterable[Any],
        domain: Domain | Sequence[Domain],
        *,
        time_limit: float = 60.0,
        size_limit: float = 1_000_000,
        memory_limit: float = 2.0,
    ) -> "Constraint":
        """A rule that reads its n variables one after another with a small memory.

        Args:
            n: number of variables.
            init: the state before the first.
            step: (state, value) -> next state, or None to reject.
            accept: whether a last state is good: a function, or the good states.
            domain: the values of every variable, or a list of n domains.
            time_limit: seconds.
            size_limit: states.
            memory_limit: gigabytes beyond what is in use.

        Example:
            >>> parity = Constraint.from_automaton(20, 0, lambda s, v: (s + v) % 2, {0}, domain=[0, 1])
            >>> parity.n_solutions == 2 ** 19
            True
        """
        if not whole(n) or n < 1:
            raise UserError(f"a constraint needs at least one variable, a whole number of them, got n={shown(n)}")
        budget = Budget(Limits(time_limit, size_limit, memory_limit), "let step return a coarser state")
        budget.check(n)  # a state for each, at the least
        nested = is_domain_list(domain)
        domains = checked_domains(list(domain) if nested else [domain] * n)
        if len(domains) != n:
            raise UserError(f"from_automaton over {n} variables needs one domain or {n} of them, got {len(domains)}")
        diagram = from_automaton(init, checked_step(step), checked_accept(accept), domains, budget)
        return cls._from_diagram(diagram, domains, budget=budget)

    @classmethod
    def from_cnf(
        cls,
        clauses: str | Path | Iterable[Iterable[int]],
        variables: int | Sequence[int | Domain] | None = None,
        *,
        time_limit: float = 60.0,
        size_limit: float = 1_000_000,
        memory_limit: float = 2.0,
    ) -> "Constraint":
        """Clauses in the numbering of DIMACS: a list of lists, DIMACS text, or a file.

        Args:
            clauses: each holds if one of its literals does; a negative literal is a negation.
            variables: None or a number n: the literals are Boolean variables 1 to n with values False and
                True (in this order). A list of domains or of their sizes: the literals number the values of
                all variables one after another, and every variable has exactly one value.
            time_limit: seconds.
            size_limit: nodes of the largest diagram on the way.
            memory_limit: gigabytes beyond what is in use.

        Example:
            >>> Constraint.from_cnf([[1, 2], [-1, -2]]).n_solutions                     # exclusive or
            2
            >>> c = Constraint.from_cnf([[1, 4], [-3]], variables=[3, 2])               # x1=0 or x2=0; x1 is not 2
            >>> c.is_satisfied([[0, 1], [1, 1]])
            tensor([ True, False])
        """
        limits = Limits(time_limit, size_limit, memory_limit)
        budget = Budget(limits, "use fewer clauses, or order variables that meet side by side")
        if not isinstance(clauses, str | Path | Iterable) or isinstance(clauses, bytes):
            raise UserError(f"clauses must be a list, DIMACS text or a DIMACS file, got {shown(clauses)}")
        if not (variables is None or whole(variables) or isinstance(variables, list | tuple)):
            raise UserError(
                f"variables must be a number, or a list of domains or of their sizes, got {shown(variables)}"
            )
        listed, highest = read_clauses(clauses, budget)
        booleans = variables is None or isinstance(variables, int)
        if isinstance(variables, Sequence):
            domains = checked_domains([range(v) if isinstance(v, int) else v for v in variables])
            room = sum(len(domain) for domain in domains)
        else:
            room = highest if variables is None else variables
            if room < 1:
                raise UserError("a constraint needs at least one variable, got none")
            budget.check(2 * room)  # a diagram has a node for every value, at the least
            domains = [[False, True]] * room
        budget.check(room)
        if highest > room:
            raise UserError(f"literals go up to {highest}, but variables declares {room}; declare them all")
        key = cache.key_of("cnf", [list(clause) for clause in listed], [len(d) for d in domains], booleans)
        stored = cache.load(key, columns=sum(len(domain) for domain in domains))
        if stored is not None:
            return cls(stored[0], domains)
        circuit, everything = compile_clauses(listed, domains, booleans, budget)
        if circuit is None:
            raise _trivial(everything)
        cache.store(key, circuit, {})
        return cls(circuit, domains)

    @classmethod
    def from_problog(
        cls,
        program: str | Path,
        query: str | Sequence[str] | None = None,
        *,
        variables: Sequence[str] | None = None,
        allow: Collection[str] | str = (),
        time_limit: float = 60.0,
        size_limit: float = 1_000_000,
        memory_limit: float = 2.0,
    ) -> "Constraint":
        """A ProbLog program with neural annotated disjunctions ``nn(net,[X],Y,[...]) :: p(X,Y).``

        Args:
            program: the text, or the :class:`~pathlib.Path` of a file that holds it.
            query: what must hold; None takes the program's ``query(...)``. Several queries, or one with open
                variables, give ``log_prob`` a column each; ``constraint[query]`` is one of them.
            variables: names and order of the neural inputs; by default as they appear in the query.
            allow: what the program may load beyond problog's libraries of pure rules, if you trust its author:
                ``files`` (other programs, tables), ``python`` (code, which may do anything).
            time_limit: seconds.
            size_limit: nodes of the largest diagram on the way.
            memory_limit: gigabytes beyond what is in use.

        Example:
            >>> c = Constraint.from_problog('''
            ...     nn(net,[X],Y,[0,1,2]) :: digit(X,Y).
            ...     sum(X,Y,Z) :- digit(X,A), digit(Y,B), Z is A + B.
            ... ''', "sum(a,b,3)")
            >>> c.variables, c.n_solutions
            (('a', 'b'), 2)
        """
        limits, allowed = Limits(time_limit, size_limit, memory_limit), permissions(allow)
        program = program_text(program)
        check_names(query, "query")
        check_names(variables, "variables")
        queries = [query] if isinstance(query, str) else query if query is None else list(query)
        key = cache.key_of("problog", program, queries, None if variables is None else list(variables))
        # what is loaded may be another at any time: no circuit of it is kept
        stored = None if allowed else cache.load(key)
        compiled = None if stored is None else Program.stored(*stored)
        if compiled is None:
            compiled = compile_program(program, query, variables, limits, allowed)
            if not allowed:
                cache.store(key, compiled.circuit, compiled.about())
        circuit = compiled.circuit
        single = len(compiled.queries) == 1 and (query is None or isinstance(query, str))
        if single and not compiled.fixed and not compiled.conditional:
            circuit = _listed_if_few(circuit, compiled.domains)
        return cls(
            circuit,
            compiled.domains,
            variables=compiled.variables,
            queries=None if single else compiled.queries,
            fixed=compiled.fixed,
            conditional=compiled.conditional,
        )

    @property
    def size(self) -> int:
        """Edges of the circuit: what an evaluation costs."""
        return self.circuit.edges

    @property
    def sizes(self) -> list[int]:
        """The number of values of each variable."""
        return [len(domain) for domain in self.domains]

    @property
    def n_solutions(self) -> int:
        """The number of assignments that satisfy the constraint, exactly."""
        self.one_query("n_solutions")
        return self.circuit.counts[int(self.circuit.roots[0])]

    def log_prob(self, log_p: Tensor | Sequence[Tensor], *, normalised: bool = True) -> Tensor:
        """``log P(C)`` of each group; differentiable, finite gradients also where it is ``-inf`` (they are 0).

        Args:
            log_p: ``log p_i(y_i)``, (..., variables, values); where domains differ in size either padded to
                the largest (the padding is ignored) or one tensor (..., values) for each variable.
            normalised: whether the probabilities of each variable add up to 1, which is checked: logits would
                give a plausible number that means nothing. False: they are weights, whose products are summed,
                and nothing is checked (as in a training step that has just taken a ``log_softmax``).

        Returns:
            (...), or (..., queries) for a constraint with several queries.

        Example:
            >>> c = Constraint.from_predicate(lambda a, b: a != b, domains=[range(3)] * 2)
            >>> c.log_prob(torch.zeros(1, 2, 3), normalised=False).exp()      # how many assignments differ
            tensor([6.])
        """
        leaves, shape = self._leaves(log_p, "log_p")
        if normalised:
            check_distributions(leaves, self.sizes, self.variables, "log_p")
        return self._value(leaves, shape)

    def probability(self, p: Tensor | Sequence[Tensor], *, normalised: bool = True) -> Tensor:
        """``P(C)`` from probabilities instead of their logs; the gradient at a probability of 0 is taken as 0."""
        leaves, shape = self._leaves(p, "p")
        check_weights(leaves, "p", least=0.0)
        possible = leaves > 0
        logs = torch.where(possible, torch.where(possible, leaves, 1.0).log(), -torch.inf)
        if normalised:
            check_distributions(logs, self.sizes, self.variables, "p")
        return self._value(logs, shape).exp()

    def posterior(self, log_p: Tensor) -> Tensor:
        """``P(y_i = k | C)`` of each group, shaped as ``log_p``: what the constraint says of each symbol.

        It does not change with the scale of a variable's probabilities, so they need not add up to 1.
        """
        self.one_query("posterior")
        check_tensor(log_p, "log_p")
        with torch.enable_grad():
            leaf = log_p.detach().requires_grad_()
            leaves, shape = self._leaves(leaf, "log_p")
            check_weights(leaves, "log_p")
            (grad,) = torch.autograd.grad(self._value(leaves, shape).sum(), leaf)
        return grad

    def marginals(self) -> Tensor:
        """``P(y_i = k)`` when every satisfying assignment is as likely as another, (variables, values).

        Example:
            >>> c = Constraint.from_predicate(lambda a, b, c: a + b == c, domains=[range(10)] * 3)
            >>> (c.marginals().mean(dim=0) * 165).round().int().tolist()   # the digit d has mass (21 - d) / 165
            [21, 20, 19, 18, 17, 16, 15, 14, 13, 12]
        """
        return self.posterior(torch.zeros(1, len(self.domains), max(self.sizes), dtype=torch.float64))[0]

    def is_satisfied(self, values: Any) -> Tensor:
        """Whether groups of values, (groups, variables), satisfy the constraint, (groups,)."""
        self.one_query("is_satisfied")
        expected = f"values must be rows of {len(self.domains)}, one for each variable"
        given = items(values, expected)
        rows = [items(row, expected) if isinstance(row, np.ndarray | Tensor) else row for row in given]
        index = self._index_of(rows)
        if not rows:
            return torch.zeros(0, dtype=torch.bool)
        log_p = torch.full((len(rows), len(self.domains), max(self.sizes)), -torch.inf, dtype=torch.float64)
        log_p.scatter_(2, index[..., None], 0.0)
        return self.log_prob(log_p, normalised=False) > -1e-9  # with plain probabilistic facts: for certain

    def solutions(self, limit: int = 1_000_000) -> list[tuple[Any, ...]]:
        """Every satisfying assignment."""
        check_count(limit, "limit", least=0)
        rows = self._assignments(limit)
        return [tuple(domain[k] for domain, k in zip(self.domains, row, strict=True)) for row in rows]

    def shortcuts(self, limit: int = 10_000) -> Shortcuts:
        """The other symbol maps that satisfy the constraint: see :class:`gedi.logic.Shortcuts`."""
        self.one_query("shortcuts")
        check_count(limit, "limit", least=0)
        if self._fixed or self._conditional:
            raise UserError("shortcuts needs a constraint of symbols alone, without plain probabilities or evidence")
        return find_shortcuts(self, limit)

    def on(self, places: Sequence[int], domains: Sequence[Domain]) -> "Constraint":
        """The constraint laid on some of more variables: its i-th variable becomes ``places[i]``.

        Example:
            >>> pair = Constraint.from_predicate(lambda a, b: a < b, [range(3)] * 2)
            >>> (pair.on([0, 1], [range(3)] * 3) & pair.on([1, 2], [range(3)] * 3)).solutions()
            [(0, 1, 2)]
        """
        self.one_query("on")
        domains = checked_domains(domains)
        places = items(places, "places must be a list of whole numbers")
        if not all(map(whole, places)):
            raise UserError(f"places must be a list of whole numbers, got {shown(places)}")
        if len(places) != len(self.domains) or len(set(places)) != len(places):
            raise UserError(f"on must name {len(self.domains)} different places, got {shown(places)}")
        if not all(0 <= place < len(domains) for place in places):
            raise UserError(f"places must be between 0 and {len(domains) - 1}, got {shown(places)}")
        for i, place in enumerate(places):
            if tuple(domains[place]) != self.domains[i]:
                raise UserError(f"variable {i} must keep its domain at place {place}")
        diagram = self._diagram
        if diagram is None:
            raise UserError("only a constraint with a decision diagram can be laid on more variables")
        order = np.argsort(places)
        if (order != np.arange(len(places))).any():
            # a diagram reads its variables in order, so they are put in the order of their places first
            diagram = from_solutions(self._assignments(_DIAGRAM_FROM)[:, order], [self.sizes[i] for i in order])
        levels, read = [], 0
        for variable, domain in enumerate(domains):
            if variable in places:
                levels.append(diagram.levels[read])
                read += 1
            else:  # any value passes, the state stays
                width = len(diagram.levels[read]) if read < len(diagram.levels) else 1
                levels.append(np.repeat(np.arange(width)[:, None], len(domain), axis=1))
        return Constraint._from_diagram(Diagram(tuple(levels)), domains)

    def conjoin(
        self,
        other: "Constraint",
        *,
        time_limit: float = 60.0,
        size_limit: float = 1_000_000,
        memory_limit: float = 2.0,
    ) -> "Constraint":
        """Both hold: ``self & other``, with limits of one's own.

        Args:
            other: over the same variables.
            time_limit: seconds.
            size_limit: nodes of the largest structure on the way.
            memory_limit: gigabytes beyond what is in use.

        Example:
            >>> rising = Constraint.from_predicate(lambda a, b: a < b, [range(5)] * 2)
            >>> even = Constraint.from_predicate(lambda a, b: (a + b) % 2 == 0, [range(5)] * 2)
            >>> rising.conjoin(even, size_limit=100).solutions()
            [(0, 2), (0, 4), (1, 3), (2, 4)]
        """
        return self._combine(other, True, Limits(time_limit, size_limit, memory_limit))

    def disjoin(
        self,
        other: "Constraint",
        *,
        time_limit: float = 60.0,
        size_limit: float = 1_000_000,
        memory_limit: float = 2.0,
    ) -> "Constraint":
        """At least one holds: ``self | other``, with limits of one's own, as in :meth:`conjoin`."""
        return self._combine(other, False, Limits(time_limit, size_limit, memory_limit))

    def negate(
        self, *, time_limit: float = 60.0, size_limit: float = 1_000_000, memory_limit: float = 2.0
    ) -> "Constraint":
        """It does not hold: ``~self``, with limits of one's own, as in :meth:`conjoin`."""
        limits = Limits(time_limit, size_limit, memory_limit)
        self.one_query("~")
        if self._diagram is not None:
            return Constraint._from_diagram(self._diagram.complement(), self.domains, self.variables)
        budget = Budget(limits, "write the opposite rule (c.negate() is ~c and takes limits)")
        return self._compile("not", [self], lambda space, nodes: space.negation(nodes[0]), budget)

    def __and__(self, other: "Constraint") -> "Constraint":
        return self.conjoin(other) if isinstance(other, Constraint) else NotImplemented

    def __or__(self, other: "Constraint") -> "Constraint":
        return self.disjoin(other) if isinstance(other, Constraint) else NotImplemented

    def __invert__(self) -> "Constraint":
        return self.negate()

    def one_query(self, what: str) -> None:
        """Refuse what makes sense only for one query."""
        if self.queries is not None:
            raise UserError(f"{what} needs one query: choose one as constraint[{self.queries[0]!r}]")

    def __getitem__(self, query: str | int) -> "Constraint":
        """One of several queries."""
        names = self.queries or ()
        wanted = query if whole(query) else names.index(query) if isinstance(query, str) and query in names else None
        if wanted is None or not -len(names) <= wanted < len(names):
            raise UserError(f"no query {shown(query)}; there are: {', '.join(names) or 'none'}")
        c, wanted = self.circuit, wanted % len(names)  # the evidence comes after the last query
        roots = c.roots[[wanted, -1]] if self._conditional else c.roots[[wanted]]
        return Constraint(
            c.below(roots),
            self.domains,
            variables=self.variables,
            fixed=self._fixed,
            conditional=self._conditional,
        )

    def __repr__(self) -> str:
        names = ", ".join(f"{v}: {len(d)}" for v, d in zip(self.variables[:8], self.domains[:8], strict=True))
        more = ", ..." if len(self.variables) > 8 else ""
        return f"Constraint({names}{more}; {self.size} edges)"

    def with_backend(self, backend: Backend) -> "Constraint":
        """The same constraint, evaluated by ``layered`` or ``klay``."""
        return Constraint(
            self.circuit,
            self.domains,
            variables=self.variables,
            diagram=self._given_diagram,
            queries=self.queries,
            fixed=self._fixed,
            conditional=self._conditional,
            backend=backend,
        )

    @cached_property
    def _evaluate(self) -> Evaluator:
        return evaluator(self.circuit, self._backend)

    @cached_property
    def _diagram(self) -> Diagram | None:
        if self._given_diagram is not None or self._fixed or self._conditional or self.queries is not None:
            return self._given_diagram
        if self.n_solutions > _DIAGRAM_FROM:
            return None
        return from_solutions(self._assignments(_DIAGRAM_FROM), self.sizes)

    @classmethod
    def _from_assignments(cls, assignments: np.ndarray, domains: Sequence[Domain]) -> "Constraint":
        sizes = [len(domain) for domain in domains]
        if len(assignments) in (0, math.prod(sizes)):
            raise _trivial(len(assignments) > 0)
        if len(assignments) <= LISTED:
            return cls(from_table(assignments, sizes), domains)
        return cls._from_diagram(from_solutions(assignments, sizes), domains)

    @classmethod
    def _from_diagram(
        cls,
        diagram: Diagram,
        domains: Sequence[Domain],
        variables: Sequence[str] | None = None,
        budget: Budget | None = None,
    ) -> "Constraint":
        if diagram.is_false or diagram.is_true:
            raise _trivial(diagram.is_true)
        circuit = _listed_if_few(diagram.circuit(budget), domains)
        return cls(circuit, domains, variables=variables, diagram=diagram)

    def _combine(self, other: "Constraint", both: bool, limits: Limits) -> "Constraint":
        if not isinstance(other, Constraint):
            raise UserError(f"a constraint is combined with another constraint, got {shown(other)}")
        self.one_query("&" if both else "|")
        other.one_query("&" if both else "|")
        if self.domains != other.domains:
            raise UserError(
                f"constraints must be over the same variables to be combined, got {self!r} and {other!r}; lay them "
                f"on common variables with on(places, domains)"
            )
        method = "a.conjoin(b) is a & b" if both else "a.disjoin(b) is a | b"
        budget = Budget(limits, f"combine fewer constraints ({method} and takes limits)")
        if self._diagram is not None and other._diagram is not None:
            diagram = self._diagram.product(other._diagram, both, budget)
            return Constraint._from_diagram(diagram, self.domains, self.variables)
        name = "and" if both else "or"
        return self._compile(
            name, [self, other], lambda space, nodes: (space.all if both else space.any)(nodes), budget
        )

    def _compile(
        self, name: str, parts: Sequence["Constraint"], make: Callable[[Space, list[Any]], Any], budget: Budget
    ) -> "Constraint":
        if any(part._fixed or part._conditional for part in parts):
            raise UserError("constraints with plain probabilities or evidence are combined in their program")
        key = cache.key_of(name, [cache.fingerprint(part.circuit) for part in parts], self.sizes)
        stored = cache.load(key, columns=sum(self.sizes))
        if stored is not None:
            return Constraint(stored[0], self.domains, variables=self.variables)

        def compute() -> tuple[Circuit | None, bool]:
            space = Space(self.sizes, budget)
            formula = space.compiled(make(space, [space.embed(part.circuit) for part in parts]))
            if space.is_false(formula) or space.is_true(formula):
                return None, space.is_true(formula)
            return space.circuit([formula]), False

        circuit, everything = bounded(compute, budget)
        if circuit is None:
            raise _trivial(everything)
        cache.store(key, circuit, {})
        return Constraint(circuit, self.domains, variables=self.variables)

    def _assignments(self, limit: int) -> np.ndarray:
        self.one_query("solutions")
        if self._fixed or self._conditional:
            raise UserError("solutions needs a constraint of symbols alone, without plain probabilities or evidence")
        if self.n_solutions > limit:
            raise UserError(f"the constraint has {self.n_solutions:,} solutions, more than limit={limit:,}")
        return self.circuit.solutions(self.sizes)

    def _leaves(self, p: Tensor | Sequence[Tensor], name: str) -> tuple[Tensor, torch.Size]:
        """The values of all variables one after another, (groups, columns), and the shape of the groups."""
        check_tensors(p, name)
        sizes = self.sizes
        if isinstance(p, Tensor):
            if p.dim() < 2 or p.shape[-2:] != (len(sizes), max(sizes)):
                raise UserError(
                    f"{name} must be (groups, {len(sizes)} variables, {max(sizes)} values), got {tuple(p.shape)}"
                )
            flat = p.reshape(p.shape[:-2].numel(), len(sizes) * max(sizes))
            return flat if len(set(sizes)) == 1 else flat[:, self._columns.to(flat.device)], p.shape[:-2]
        given = [tuple(x.shape) for x in p]
        if [g[-1:] for g in given] != [(size,) for size in sizes] or len({g[:-1] for g in given}) != 1:
            raise UserError(f"{name} must hold a tensor (groups, values) for each of {sizes} values, got {given}")
        shape = p[0].shape[:-1]
        return torch.cat([x.reshape(shape.numel(), x.shape[-1]) for x in p], dim=1), shape

    @full_precision
    def _value(self, leaves: Tensor, shape: torch.Size) -> Tensor:
        """``log P`` of checked leaves."""
        if self._fixed:
            plain = torch.tensor([p for choice in self._fixed for p in choice], dtype=leaves.dtype).log()
            leaves = torch.cat([leaves, plain.to(leaves.device).expand(len(leaves), -1)], dim=1)
        out = self._evaluate(leaves)
        if self._conditional:  # P(q | e) = P(q, e) / P(e)
            given = out[:, -1:]
            # evidence that cannot be gives log 0, not NaN
            out = torch.where(torch.isneginf(given), -torch.inf, out[:, :-1] - given)
        return out.view(shape) if self.queries is None else out.view(*shape, len(self.queries))

    @cached_property
    def _columns(self) -> Tensor:
        """Where the values stand in a padded table."""
        widest = max(self.sizes)
        return torch.tensor([i * widest + k for i, size in enumerate(self.sizes) for k in range(size)])

    def _index_of(self, rows: Sequence[Sequence[Any]]) -> Tensor:
        numbers = [{value: k for k, value in enumerate(domain)} for domain in self.domains]
        index = []
        for row in rows:
            if not isinstance(row, Sequence) or len(row) != len(numbers):
                raise UserError(f"values must be rows of {len(numbers)}, one for each variable, got {shown(row)}")
            for i, (number, value) in enumerate(zip(numbers, row, strict=True)):
                if not isinstance(value, Hashable) or value not in number:
                    raise UserError(f"variable {self.variables[i]} must have a value of its domain, got {shown(value)}")
            index.append([number[value] for number, value in zip(numbers, row, strict=True)])
        return torch.tensor(index, dtype=torch.long)


def _listed_if_few(circuit: Circuit, domains: Sequence[Domain]) -> Circuit:
    """A plain sum over the solutions where it is not much larger: it has two levels where a circuit has many."""
    if len(domains) > LISTED:  # counting is exact, in numbers of as many digits as there are variables
        return circuit
    solutions = circuit.counts[int(circuit.roots[0])]
    if solutions > LISTED or solutions * (len(domains) + 1) > 2 * circuit.edges:
        return circuit
    sizes = [len(domain) for domain in domains]
    return from_table(circuit.solutions(sizes), sizes)


def _trivial(everything: bool) -> UserError:
    if everything:
        return UserError("every assignment satisfies the constraint: it says nothing; check its domains and the rule")
    return UserError("no assignment satisfies the constraint: check its domains and the rule")
