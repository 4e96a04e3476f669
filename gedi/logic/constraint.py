"""One class for every kind of knowledge: what must hold of a group of symbols."""

import itertools
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
from gedi.logic.child import bounded
from gedi.logic.circuit import Circuit, from_table
from gedi.logic.cnf import compile_clauses, read_clauses
from gedi.logic.diagram import Diagram, from_automaton, from_solutions
from gedi.logic.evaluate import Backend, Evaluator, evaluator
from gedi.logic.limits import Budget, Limits
from gedi.logic.predicate import diagram_of, satisfying
from gedi.logic.problog import Program, compile_program, permissions
from gedi.logic.sdd import Space
from gedi.logic.shortcuts import Shortcuts, find_shortcuts

Domain = Sequence[Any]
LISTED = 4096  # a constraint with at most this many solutions is a plain sum over them: faster than a diagram
VALUES = 100_000  # of one variable
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
        self.circuit = circuit
        self.domains = tuple(tuple(domain) for domain in domains)
        self.variables = tuple(variables or (f"x{i + 1}" for i in range(len(self.domains))))
        self.queries = None if queries is None else tuple(queries)
        self._fixed = tuple(tuple(choice) for choice in fixed)
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
        size_limit: int = 1_000_000,
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
        limits = Limits(time_limit, size_limit, memory_limit)
        budget = Budget(limits, "split the rule, or write it as Constraint.from_automaton")
        domains = _checked_domains(domains)
        assignments = satisfying(rule, domains, budget)
        if assignments is not None:
            return cls._from_assignments(assignments, domains)
        return cls._from_diagram(diagram_of(rule, domains, budget), domains, budget=budget)

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
        size_limit: int = 1_000_000,
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
        if n < 1:
            raise UserError(f"a constraint needs at least one variable, got n={n}")
        nested = _is_domain_list(domain)
        budget = Budget(Limits(time_limit, size_limit, memory_limit), "let step return a coarser state")
        budget.check(n)  # a state for each, at the least
        domains = _checked_domains(list(domain) if nested else [domain] * n)
        if len(domains) != n:
            raise UserError(f"from_automaton over {n} variables needs one domain or {n} of them, got {len(domains)}")
        good = accept if callable(accept) else set(accept).__contains__
        return cls._from_diagram(from_automaton(init, step, good, domains, budget), domains, budget=budget)

    @classmethod
    def from_cnf(
        cls,
        clauses: str | Path | Iterable[Iterable[int]],
        variables: int | Sequence[int | Domain] | None = None,
        *,
        time_limit: float = 60.0,
        size_limit: int = 1_000_000,
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
        listed, highest = read_clauses(clauses, budget)
        booleans = variables is None or isinstance(variables, int)
        if isinstance(variables, Sequence):
            domains = _checked_domains([range(v) if isinstance(v, int) else v for v in variables])
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
        program: str,
        query: str | Sequence[str] | None = None,
        *,
        variables: Sequence[str] | None = None,
        allow: Collection[str] | str = (),
        time_limit: float = 60.0,
        size_limit: int = 1_000_000,
        memory_limit: float = 2.0,
    ) -> "Constraint":
        """A ProbLog program with neural annotated disjunctions ``nn(net,[X],Y,[...]) :: p(X,Y).``

        Args:
            program: the text.
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
        key = cache.key_of(
            "problog",
            program,
            [query] if isinstance(query, str) else query,
            variables if variables is None else list(variables),
        )
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
        self._one("n_solutions")
        return self.circuit.counts[int(self.circuit.roots[0])]

    def log_prob(self, log_p: Tensor | Sequence[Tensor]) -> Tensor:
        """``log P(C)`` of each group; differentiable, finite gradients also where it is ``-inf`` (they are 0).

        Args:
            log_p: ``log p_i(y_i)``, (..., variables, values); where domains differ in size either padded to
                the largest (the padding is ignored) or one tensor (..., values) for each variable.

        Returns:
            (...), or (..., queries) for a constraint with several queries.
        """
        leaves, shape = self._leaves(log_p)
        out = self._evaluate(leaves)
        if self._conditional:  # P(q | e) = P(q, e) / P(e)
            given = out[:, -1:]
            # evidence that cannot be gives log 0, not NaN
            out = torch.where(torch.isneginf(given), -torch.inf, out[:, :-1] - given)
        return out.view(shape) if self.queries is None else out.view(*shape, len(self.queries))

    def probability(self, p: Tensor | Sequence[Tensor]) -> Tensor:
        """``P(C)`` from probabilities instead of their logs; the gradient at a probability of 0 is taken as 0."""

        def log(x: Tensor) -> Tensor:
            possible = x > 0
            return torch.where(possible, torch.where(possible, x, 1.0).log(), -torch.inf)

        return self.log_prob(log(p) if isinstance(p, Tensor) else [log(x) for x in p]).exp()

    def posterior(self, log_p: Tensor) -> Tensor:
        """``P(y_i = k | C)`` of each group, shaped as ``log_p``: what the constraint says of each symbol."""
        self._one("posterior")
        with torch.enable_grad():
            leaf = log_p.detach().requires_grad_()
            (grad,) = torch.autograd.grad(self.log_prob(leaf).sum(), leaf)
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
        self._one("is_satisfied")
        rows = [row.tolist() if hasattr(row, "tolist") else row for row in values]
        index = self._index_of(rows)
        if not rows:
            return torch.zeros(0, dtype=torch.bool)
        log_p = torch.full((len(rows), len(self.domains), max(self.sizes)), -torch.inf, dtype=torch.float64)
        log_p.scatter_(2, index[..., None], 0.0)
        return self.log_prob(log_p) > -1e-9  # with plain probabilistic facts: for certain

    def solutions(self, limit: int = 1_000_000) -> list[tuple[Any, ...]]:
        """Every satisfying assignment."""
        rows = self._assignments(limit)
        return [tuple(domain[k] for domain, k in zip(self.domains, row, strict=True)) for row in rows]

    def shortcuts(self, limit: int = 10_000) -> Shortcuts:
        """The other symbol maps that satisfy the constraint: see :class:`gedi.logic.Shortcuts`."""
        self._one("shortcuts")
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
        self._one("on")
        domains = _checked_domains(domains)
        if len(places) != len(self.domains) or len(set(places)) != len(places):
            raise UserError(f"on must name {len(self.domains)} different places, got {list(places)}")
        if not all(0 <= place < len(domains) for place in places):
            raise UserError(f"places must be between 0 and {len(domains) - 1}, got {list(places)}")
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

    def __and__(self, other: "Constraint") -> "Constraint":
        if not isinstance(other, Constraint):
            return NotImplemented
        return self._combine(other, both=True)

    def __or__(self, other: "Constraint") -> "Constraint":
        if not isinstance(other, Constraint):
            return NotImplemented
        return self._combine(other, both=False)

    def __invert__(self) -> "Constraint":
        self._one("~")
        if self._diagram is not None:
            return Constraint._from_diagram(self._diagram.complement(), self.domains, self.variables)
        return self._compile("not", [self], lambda space, nodes: space.negation(nodes[0]))

    def __getitem__(self, query: str | int) -> "Constraint":
        """One of several queries."""
        names = self.queries or ()
        wanted = query if isinstance(query, int) else names.index(query) if query in names else None
        if wanted is None or not -len(names) <= wanted < len(names):
            raise UserError(f"no query {query!r}; there are: {', '.join(names) or 'none'}")
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

    def _combine(self, other: "Constraint", both: bool) -> "Constraint":
        self._one("&" if both else "|")
        other._one("&" if both else "|")
        if self.domains != other.domains:
            raise UserError(
                f"constraints must be over the same variables to be combined, got {self!r} and {other!r}; lay them "
                f"on common variables with on(places, domains)"
            )
        if self._diagram is not None and other._diagram is not None:
            budget = Budget(Limits(), "combine fewer constraints")
            diagram = self._diagram.product(other._diagram, both, budget)
            return Constraint._from_diagram(diagram, self.domains, self.variables)
        name = "and" if both else "or"
        return self._compile(name, [self, other], lambda space, nodes: (space.all if both else space.any)(nodes))

    def _compile(
        self, name: str, parts: Sequence["Constraint"], make: Callable[[Space, list[Any]], Any]
    ) -> "Constraint":
        if any(part._fixed or part._conditional for part in parts):
            raise UserError("constraints with plain probabilities or evidence are combined in their program")
        key = cache.key_of(name, [cache.fingerprint(part.circuit) for part in parts], self.sizes)
        stored = cache.load(key, columns=sum(self.sizes))
        if stored is not None:
            return Constraint(stored[0], self.domains, variables=self.variables)
        budget = Budget(Limits(), "combine fewer constraints")

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
        self._one("solutions")
        if self._fixed or self._conditional:
            raise UserError("solutions needs a constraint of symbols alone, without plain probabilities or evidence")
        if self.n_solutions > limit:
            raise UserError(f"the constraint has {self.n_solutions:,} solutions, more than limit={limit:,}")
        return self.circuit.solutions(self.sizes)

    def _leaves(self, log_p: Tensor | Sequence[Tensor]) -> tuple[Tensor, torch.Size]:
        """(groups, columns), and the shape of the groups."""
        sizes = self.sizes
        if isinstance(log_p, Tensor):
            if log_p.dim() < 2 or log_p.shape[-2:] != (len(sizes), max(sizes)):
                raise UserError(
                    f"log_p must be (groups, {len(sizes)} variables, {max(sizes)} values), got {tuple(log_p.shape)}"
                )
            shape = log_p.shape[:-2]
            flat = log_p.reshape(-1, len(sizes) * max(sizes))
            leaves = flat if len(set(sizes)) == 1 else flat[:, self._columns.to(flat.device)]
        else:
            given = [tuple(x.shape) for x in log_p]
            if [g[-1:] for g in given] != [(size,) for size in sizes] or len({g[:-1] for g in given}) != 1:
                raise UserError(f"log_p must hold a tensor (groups, values) for each of {sizes} values, got {given}")
            shape = log_p[0].shape[:-1]
            leaves = torch.cat([x.reshape(-1, x.shape[-1]) for x in log_p], dim=1)
        if self._fixed:
            plain = torch.tensor([p for choice in self._fixed for p in choice], dtype=leaves.dtype).log()
            leaves = torch.cat([leaves, plain.to(leaves.device).expand(len(leaves), -1)], dim=1)
        return leaves, shape

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
                raise UserError(f"values must be rows of {len(numbers)}, one for each variable, got {row!r}")
            for i, (number, value) in enumerate(zip(numbers, row, strict=True)):
                if not isinstance(value, Hashable) or value not in number:
                    raise UserError(f"variable {self.variables[i]} must have a value of its domain, got {value!r}")
            index.append([number[value] for number, value in zip(numbers, row, strict=True)])
        return torch.tensor(index, dtype=torch.long)

    def _one(self, what: str) -> None:
        if self.queries is not None:
            raise UserError(f"{what} needs one query: choose one as constraint[{self.queries[0]!r}]")


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


def _is_domain_list(domain: Any) -> bool:
    """Whether it holds domains rather than values."""
    if isinstance(domain, range | str) or not isinstance(domain, Iterable):
        return False
    return all(isinstance(d, list | tuple | range) for d in domain)


def checked_domain(domain: Domain, name: str = "domain") -> list[Any]:
    """The values of a variable: different ones, at least one."""
    if not isinstance(domain, Iterable):
        use = f"; use range({domain})" if isinstance(domain, int) else ""
        raise UserError(f"{name} must be the values of a variable, got {domain!r}{use}")
    values = list(itertools.islice(domain, VALUES + 1))
    if len(values) > VALUES:
        raise UserError(f"{name} must have at most {VALUES:,} values, got more; let several variables share them")
    if not all(isinstance(value, Hashable) for value in values):
        raise UserError(f"{name} must hold values that can be told apart (not lists), got {values!r}")
    if len(values) < 1 or len(set(values)) != len(values):
        raise UserError(f"{name} must hold different values, at least one, got {values!r}")
    return values


def _checked_domains(domains: Sequence[Domain]) -> list[Domain]:
    if not isinstance(domains, Iterable):
        raise UserError(f"domains must be a list, the values of each variable, got {domains!r}")
    checked: list[Domain] = [checked_domain(domain, f"domain {i}") for i, domain in enumerate(domains)]
    if not checked:
        raise UserError("a constraint needs at least one variable, got no domains")
    return checked
