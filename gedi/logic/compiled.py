"""A compiled constraint over named variables: its probability and its solutions."""

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gedi.errors import UserError
from gedi.logic.answers import answers_of, numbers_of_answers, observed
from gedi.logic.arguments import Domain, check_count, check_names, checked_domains, items, shown
from gedi.logic.circuit import Circuit
from gedi.logic.diagram import Diagram, from_solutions
from gedi.logic.evaluate import Backend, Evaluator, evaluator
from gedi.logic.probabilities import check_distributions, check_tensors, check_weights
from gedi.logic.shortcut_search import find_shortcuts
from gedi.logic.shortcuts import Shortcuts
from gedi.precision import full_precision

DIAGRAM_FROM = 100_000  # solutions worth listing to make a diagram of a compiled circuit


class Compiled:
    """A circuit over named variables, and what it is worth.

    Users have a :class:`gedi.logic.Constraint`, which is one, and which also says how one is made and combined.

    Args:
        circuit: the compiled form: a root for each query and, if conditional, the evidence as the last one.
        domains: the values of each variable.
        variables: their names; ``x1``, ``x2``, ... by default.
        diagram: the decision diagram that the circuit was made of, if there is one.
        queries: the names of several queries, or None for one constraint.
        fixed: the probabilities of choices that no network makes; each is a variable after the others.
        conditional: whether the queries are given evidence.
        answers: what each query stands for, where that is no text.
        backend: what evaluates it; None chooses.
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
        answers: Sequence[Any] | None = None,
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
        self.answers = None if self.queries is None else tuple(answers or answers_of(self.queries))
        self._conditional = conditional
        self._backend = backend
        self._given_diagram = diagram

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

    def log_prob(
        self, log_p: Tensor | Sequence[Tensor], *, normalised: bool = True, answers: Tensor | None = None
    ) -> Tensor:
        """``log P(C)`` of each group; differentiable, finite gradients also where it is ``-inf`` (they are 0).

        Args:
            log_p: ``log p_i(y_i)``, (..., variables, values); where domains differ in size either padded to
                the largest (the padding is ignored) or one tensor (..., values) for each variable.
            normalised: whether the probabilities of each variable add up to 1, which is checked: logits would
                give a plausible number that means nothing. False: they are weights, whose products are summed,
                and nothing is checked (as in a training step that has just taken a ``log_softmax``).
            answers: of several queries, the one that is observed for each group: their numbers, (groups,), -1 where
                none is (then any may be); or how likely each is, (groups, queries). See :meth:`numbered`.

        Returns:
            (...), or (..., queries) for a constraint with several queries of which none is observed.

        Example:
            >>> from gedi.logic import Constraint
            >>> c = Constraint.from_predicate(lambda a, b: a != b, domains=[range(3)] * 2)
            >>> c.log_prob(torch.zeros(1, 2, 3), normalised=False).exp()      # how many assignments differ
            tensor([6.])
        """
        leaves, shape = self._leaves(log_p, "log_p")
        if normalised:
            check_distributions(leaves, self.sizes, self.variables, "log_p")
        value = self._value(leaves, shape)
        if answers is None:
            return value
        if self.queries is None:
            raise UserError("answers say which of several queries is observed, but this constraint has one")
        return observed(value, answers)

    def numbered(self, answers: Sequence[Any] | Tensor) -> Tensor:
        """Observed answers as the numbers of their queries, (groups,); None, which nobody observed, is -1.

        An answer is what the function gave, the text of a query, or the value of its one open variable. How likely each
        answer is, (groups, queries), is checked and stays what it is.
        """
        if self.queries is None or self.answers is None:
            raise UserError("answers say which of several queries is observed, but this constraint has one")
        return numbers_of_answers(answers, self.queries, self.answers)

    def probability(self, p: Tensor | Sequence[Tensor], *, normalised: bool = True) -> Tensor:
        """``P(C)`` from probabilities instead of their logs; the gradient at a probability of 0 is taken as 0."""
        leaves, shape = self._leaves(p, "p")
        check_weights(leaves, "p", least=0.0)
        possible = leaves > 0
        logs = torch.where(possible, torch.where(possible, leaves, 1.0).log(), -torch.inf)
        if normalised:
            check_distributions(logs, self.sizes, self.variables, "p")
        return self._value(logs, shape).exp()

    def is_satisfied(self, values: Any) -> Tensor:
        """Whether groups of values, (groups, variables), satisfy the constraint, (groups,)."""
        self.one_query("is_satisfied")
        expected = f"values must be rows of {len(self.domains)}, one for each variable"
        given = items(values, expected)
        rows = [items(row, expected) if isinstance(row, np.ndarray | Tensor) else row for row in given]
        index = numbers_of(rows, self.domains, self.variables)
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

    def shortcuts(
        self,
        limit: int = 10_000,
        *,
        answers: Sequence[Any] | None = None,
        data: Any = None,
        networks: Sequence[Any] | None = None,
    ) -> Shortcuts:
        """The other symbol maps that fit what is known just as well: see :class:`gedi.logic.Shortcuts`.

        Of a constraint with several queries, a map must keep the answer of every group.

        Args:
            limit: how many maps are listed.
            answers: only groups with these answers occur.
            data: only these groups of values occur, (groups, variables): fewer groups leave more maps.
            networks: which network each variable is read by; by default one for each domain.

        Example:
            >>> from gedi.logic import Constraint
            >>> total = Constraint.from_function(lambda a, b: a + b, [range(3)] * 2)
            >>> total.shortcuts().count, total.shortcuts(answers=[2]).count        # 0 + 2 and 1 + 1 alone
            (1, 3)
        """
        check_count(limit, "limit", least=0)
        if self._fixed or self._conditional:
            raise UserError("shortcuts needs a constraint of symbols alone, without plain probabilities or evidence")
        return find_shortcuts(self, limit, answers, data, networks)

    def one_query(self, what: str) -> None:
        """Refuse what makes sense only for one query."""
        if self.queries is not None:
            raise UserError(f"{what} needs one query: choose one as constraint[{self.queries[0]!r}]")

    def __repr__(self) -> str:
        names = ", ".join(f"{v}: {len(d)}" for v, d in zip(self.variables[:8], self.domains[:8], strict=True))
        more = ", ..." if len(self.variables) > 8 else ""
        return f"Constraint({names}{more}; {self.size} edges)"

    @cached_property
    def _evaluate(self) -> Evaluator:
        return evaluator(self.circuit, self._backend)

    @cached_property
    def _diagram(self) -> Diagram | None:
        if self._given_diagram is not None or self._fixed or self._conditional or self.queries is not None:
            return self._given_diagram
        if self.n_solutions > DIAGRAM_FROM:
            return None
        return from_solutions(self._assignments(DIAGRAM_FROM), self.sizes)

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

    @cached_property
    def _columns(self) -> Tensor:
        """Where the values stand in a padded table."""
        widest = max(self.sizes)
        return torch.tensor([i * widest + k for i, size in enumerate(self.sizes) for k in range(size)])

    def _with_plain(self, leaves: Tensor) -> Tensor:
        """The leaves, and after them the choices that no network makes."""
        if not self._fixed:
            return leaves
        plain = torch.tensor([p for choice in self._fixed for p in choice], dtype=leaves.dtype).log()
        return torch.cat([leaves, plain.to(leaves.device).expand(len(leaves), -1)], dim=1)

    @full_precision
    def _value(self, leaves: Tensor, shape: torch.Size) -> Tensor:
        """``log P`` of checked leaves."""
        out = self._evaluate(self._with_plain(leaves))
        if self._conditional:  # P(q | e) = P(q, e) / P(e)
            given = out[:, -1:]
            # evidence that cannot be gives log 0, not NaN
            out = torch.where(torch.isneginf(given), -torch.inf, out[:, :-1] - given)
        return out.view(shape) if self.queries is None else out.view(*shape, len(self.queries))


def numbers_of(rows: Sequence[Sequence[Any]], domains: Sequence[Domain], variables: Sequence[str]) -> Tensor:
    """Values as their numbers in the domains, (rows, variables)."""
    numbers = [{value: k for k, value in enumerate(domain)} for domain in domains]
    index = []
    for row in rows:
        if not isinstance(row, Sequence) or len(row) != len(numbers):
            raise UserError(f"values must be rows of {len(numbers)}, one for each variable, got {shown(row)}")
        for i, (number, value) in enumerate(zip(numbers, row, strict=True)):
            if not isinstance(value, Hashable) or value not in number:
                raise UserError(f"variable {variables[i]} must have a value of its domain, got {shown(value)}")
        index.append([number[value] for number, value in zip(numbers, row, strict=True)])
    return torch.tensor(index, dtype=torch.long)
