"""One class for every kind of knowledge: what must hold of a group of symbols, and how it is put together."""

from collections.abc import Sequence

from gedi.errors import UserError
from gedi.logic.arguments import Domain, checked_domains, shown, whole
from gedi.logic.combine import combined, laid, opposite
from gedi.logic.evaluate import Backend
from gedi.logic.forms import Form
from gedi.logic.limits import Limits
from gedi.logic.loaded import Loaded


class Constraint(Loaded):
    r"""What must hold of a group of symbols, as a differentiable probability.

    For symbols that are independent given their inputs, with :math:`p_i` the network's distribution over the
    values of the i-th one,

    .. math:: \log P(C) = \log \sum_{y \models C} \prod_i p_i(y_i)

    is computed exactly by a compiled circuit, in log space and for a whole batch of groups.

    Made by :meth:`from_predicate`, :meth:`from_automaton`, :meth:`from_solutions`, :meth:`from_cnf`,
    :meth:`from_problog`, :meth:`from_nnf`, :meth:`from_sdd` and the ready-made ones of :mod:`gedi.logic`; combined by
    ``&``, ``|``, ``~`` and :meth:`on`.

    Attributes:
        domains: the values of each variable.
        variables: the name of each variable.
        queries: the names of several queries (ProbLog, functions), or None for one constraint.
        answers: what each of several queries stands for.
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
            answers=self.answers,
            backend=backend,
        )

    def _over_same_variables(self, form: Form) -> "Constraint":
        """Another form over the same variables."""
        circuit, diagram = form
        return Constraint(circuit, self.domains, variables=self.variables, diagram=diagram)
