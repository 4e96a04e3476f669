"""Constraints read from text and files: clauses, programs, circuits that others compiled."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Self

from gedi.logic import cache
from gedi.logic.arguments import Domain, check_names, program_text
from gedi.logic.cnf import compile_clauses, domains_of, read_cnf
from gedi.logic.forms import compiled_once, listed_if_few, says_nothing
from gedi.logic.limits import Budget, Limits
from gedi.logic.made import Made
from gedi.logic.nnf import Formula, read_nnf, read_sdd
from gedi.logic.problog import Program, compile_program, permissions
from gedi.logic.smooth import circuit_of


class Loaded(Made):
    """A constraint from what others wrote. Users have a :class:`gedi.logic.Constraint`, which is one."""

    @classmethod
    def from_cnf(
        cls,
        clauses: str | Path | Iterable[Iterable[int]],
        variables: int | Sequence[int | Domain] | None = None,
        *,
        time_limit: float = 60.0,
        size_limit: float = 1_000_000,
        memory_limit: float = 2.0,
    ) -> Self:
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
            >>> from gedi.logic import Constraint
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
    ) -> Self:
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
            >>> from gedi.logic import Constraint
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

    @classmethod
    def from_nnf(
        cls,
        circuit: str | Path,
        variables: int | Sequence[int | Domain] | None = None,
        *,
        time_limit: float = 60.0,
        size_limit: float = 1_000_000,
        memory_limit: float = 2.0,
    ) -> Self:
        """A d-DNNF that another compiler wrote (c2d, dsharp): a file that begins with ``nnf``.

        Args:
            circuit: the text, or the path of a file.
            variables: as in :meth:`from_cnf`.
            time_limit: seconds.
            size_limit: nodes.
            memory_limit: gigabytes beyond what is in use.

        Example:
            >>> from gedi.logic import Constraint
            >>> text = "nnf 7 6 2\\nL 1\\nL -2\\nA 2 0 1\\nL -1\\nL 2\\nA 2 3 4\\nO 1 2 2 5"
            >>> Constraint.from_nnf(text).solutions()
            [(True, False), (False, True)]
        """
        budget = Budget(Limits(time_limit, size_limit, memory_limit), "compile it smaller")
        return cls._from_formula(read_nnf(circuit, budget), variables, budget)

    @classmethod
    def from_sdd(
        cls,
        circuit: str | Path,
        variables: int | Sequence[int | Domain] | None = None,
        *,
        time_limit: float = 60.0,
        size_limit: float = 1_000_000,
        memory_limit: float = 2.0,
    ) -> Self:
        """An SDD as libsdd and PySDD save it: a file that begins with ``sdd``.

        Args:
            circuit: the text, or the path of a file.
            variables: as in :meth:`from_cnf`.
            time_limit: seconds.
            size_limit: nodes.
            memory_limit: gigabytes beyond what is in use.
        """
        budget = Budget(Limits(time_limit, size_limit, memory_limit), "compile it smaller")
        return cls._from_formula(read_sdd(circuit, budget), variables, budget)

    @classmethod
    def _from_formula(cls, formula: Formula, variables: int | Sequence[int | Domain] | None, budget: Budget) -> Self:
        domains, booleans = domains_of(variables, formula.highest, budget)
        circuit, everything = circuit_of(formula, [len(domain) for domain in domains], booleans, budget)
        if circuit is None:
            raise says_nothing(everything)
        return cls(circuit, domains)
