"""Constraints said in Python: a rule, an automaton, a list of solutions."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from gedi.errors import UserError
from gedi.logic.arguments import (
    Domain,
    checked_accept,
    checked_domains,
    checked_step,
    is_domain_list,
    items,
    shown,
    whole,
)
from gedi.logic.compiled import numbers_of
from gedi.logic.diagram import from_automaton
from gedi.logic.forms import form_of_diagram, form_of_table
from gedi.logic.function import compile_function
from gedi.logic.inferred import Inferred
from gedi.logic.limits import Budget, Limits
from gedi.logic.predicate import compile_rule

_ROWS = "solutions must be a list of rows, a value for each variable"


class Made(Inferred):
    """A constraint from what a caller says in Python. Users have a :class:`gedi.logic.Constraint`, which is one."""

    @classmethod
    def from_predicate(
        cls,
        rule: Callable[..., Any],
        domains: Sequence[Domain],
        *,
        time_limit: float = 60.0,
        size_limit: float = 1_000_000,
        memory_limit: float = 2.0,
    ) -> Self:
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
            >>> from gedi.logic import Constraint
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
    ) -> Self:
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
            >>> from gedi.logic import Constraint
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
    def from_solutions(cls, solutions: Iterable[Sequence[Any]], domains: Sequence[Domain]) -> Self:
        """What is allowed, listed: each solution has one value for each variable.

        Args:
            solutions: rows of values; a row that stands twice counts once.
            domains: the values of each variable; their order is that of the network's outputs.

        Example:
            >>> from gedi.logic import Constraint
            >>> c = Constraint.from_solutions([("red", 1), ("blue", 2)], [["red", "green", "blue"], [1, 2]])
            >>> c.is_satisfied([["red", 1], ["green", 1]])
            tensor([ True, False])
        """
        domains = checked_domains(domains)
        names = [f"x{i + 1}" for i in range(len(domains))]
        rows = [tuple(items(row, "a solution must be a row of values")) for row in items(solutions, _ROWS)]
        numbers = np.unique(numbers_of(rows, domains, names).numpy().reshape(len(rows), len(domains)), axis=0)
        circuit, diagram = form_of_table(numbers.astype(np.int32), [len(domain) for domain in domains])
        return cls(circuit, domains, diagram=diagram)

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        domains: Sequence[Domain],
        *,
        time_limit: float = 60.0,
        size_limit: float = 1_000_000,
        memory_limit: float = 2.0,
    ) -> Self:
        """A function of the values, whose answer is observed for each group: every answer is a query.

        ``log_prob`` has a column for each answer, or takes the observed ones (``answers=``); training takes those of
        the data (``Dataset.answers``).

        Args:
            function: called with one value for each variable; None where these values cannot be together. Beyond
                200,000 assignments it is called once, with expressions, as in :meth:`from_predicate`.
            domains: the values of each variable; they may differ.
            time_limit: seconds.
            size_limit: nodes of the largest structure on the way.
            memory_limit: gigabytes beyond what is in use.

        Example:
            >>> import torch
            >>> from gedi.logic import Constraint
            >>> total = Constraint.from_function(lambda a, b: a + b, [range(10)] * 2)
            >>> total.answers[:4], len(total.answers)
            ((0, 1, 2, 3), 19)
            >>> total.log_prob(torch.full((1, 2, 10), 0.1).log(), answers=total.numbered([3])).exp()
            tensor([0.0400])
        """
        if not callable(function):
            raise UserError(f"a function of the values of the variables was expected, got {shown(function)}")
        limits = Limits(time_limit, size_limit, memory_limit)
        budget = Budget(limits, "split the function, or give coarser answers")
        domains = checked_domains(domains)
        answers, circuit = compile_function(function, domains, budget)
        return cls(circuit, domains, queries=[str(answer) for answer in answers], answers=answers)
