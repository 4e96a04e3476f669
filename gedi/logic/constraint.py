"""One class for every kind of knowledge: what must hold of a group of symbols, how it is said and put together."""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

from gedi.errors import UserError
from gedi.logic import cache
from gedi.logic.arguments import (
    Domain,
    check_names,
    checked_accept,
    checked_domains,
    checked_step,
    is_domain_list,
    program_text,
    shown,
    whole,
)
from gedi.logic.cnf import compile_clauses, read_cnf
from gedi.logic.combine import combined, laid, opposite
from gedi.logic.compiled import Compiled
from gedi.logic.diagram import from_automaton
from gedi.logic.evaluate import Backend
from gedi.logic.forms import Form, compiled_once, form_of_diagram, listed_if_few
from gedi.logic.limits import Budget, Limits
from gedi.logic.predicate import compile_rule
from gedi.logic.problog import Program, compile_program, permissions


class Constraint(Compiled):
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
        >>> import torch
        >>> c = Constraint.from_predicate(lambda a, b, c: a + b == c, domains=[range(10)] * 3)
        >>> c.n_solutions
        55
        >>> c.log_prob(torch.full((1, 3, 10), 0.1).log()).exp()          # 55 of 1000, whatever the group
        tensor([0.0550])
        >>> c.is_satisfied([[2, 3, 5], [2, 3, 6]])
        tensor([ True, False])
    """

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
        circuit, diagram = compile_rule(rule, domains, budget)
        return cls(circuit, domains, diagram=diagram)

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
        states = from_automaton(init, checked_step(step), checked_accept(accept), domains, budget)
        circuit, diagram = form_of_diagram(states, budget)
        return cls(circuit, domains, diagram=diagram)

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
        listed, domains, booleans = read_cnf(clauses, variables, budget)
        sizes = [len(domain) for domain in domains]
        key = cache.key_of("cnf", [list(clause) for clause in listed], sizes, booleans)
        circuit = compiled_once(key, sum(sizes), lambda: compile_clauses(listed, domains, booleans, budget))
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
            circuit = listed_if_few(circuit, [len(domain) for domain in compiled.domains])
        return cls(
            circuit,
            compiled.domains,
            variables=compiled.variables,
            queries=None if single else compiled.queries,
            fixed=compiled.fixed,
            conditional=compiled.conditional,
        )

    def on(self, places: Sequence[int], domains: Sequence[Domain]) -> "Constraint":
        """The constraint laid on some of more variables: its i-th variable becomes ``places[i]``.

        Example:
            >>> pair = Constraint.from_predicate(lambda a, b: a < b, [range(3)] * 2)
            >>> (pair.on([0, 1], [range(3)] * 3) & pair.on([1, 2], [range(3)] * 3)).solutions()
            [(0, 1, 2)]
        """
        self.one_query("on")
        domains = checked_domains(domains)
        circuit, diagram = laid(self, places, domains)
        return Constraint(circuit, domains, diagram=diagram)

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
        return self._over_same_variables(combined(self, other, True, Limits(time_limit, size_limit, memory_limit)))

    def disjoin(
        self,
        other: "Constraint",
        *,
        time_limit: float = 60.0,
        size_limit: float = 1_000_000,
        memory_limit: float = 2.0,
    ) -> "Constraint":
        """At least one holds: ``self | other``, with limits of one's own, as in :meth:`conjoin`."""
        return self._over_same_variables(combined(self, other, False, Limits(time_limit, size_limit, memory_limit)))

    def negate(
        self, *, time_limit: float = 60.0, size_limit: float = 1_000_000, memory_limit: float = 2.0
    ) -> "Constraint":
        """It does not hold: ``~self``, with limits of one's own, as in :meth:`conjoin`."""
        return self._over_same_variables(opposite(self, Limits(time_limit, size_limit, memory_limit)))

    def __and__(self, other: "Constraint") -> "Constraint":
        return self.conjoin(other) if isinstance(other, Constraint) else NotImplemented

    def __or__(self, other: "Constraint") -> "Constraint":
        return self.disjoin(other) if isinstance(other, Constraint) else NotImplemented

    def __invert__(self) -> "Constraint":
        return self.negate()

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

    def _over_same_variables(self, form: Form) -> "Constraint":
        """Another form over the same variables."""
        circuit, diagram = form
        return Constraint(circuit, self.domains, variables=self.variables, diagram=diagram)
