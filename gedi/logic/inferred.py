"""What follows from a constraint: posteriors, the best assignments, random ones, all of them given evidence."""

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gedi.errors import UserError, unknown
from gedi.logic.arguments import check_count, shown, whole
from gedi.logic.compiled import Compiled
from gedi.logic.probabilities import check_tensors, check_weights
from gedi.logic.search import best, draws
from gedi.precision import full_precision

#: The values that some variables are known to have, by the name or the number of the variable.
Evidence = Mapping[str | int, Any]


class Assignments(NamedTuple):
    """Assignments of groups and how probable they are.

    Attributes:
        values: value numbers, (..., variables), which :meth:`Inferred.named` names; -1 where there is no assignment.
        log_prob: ``log prod_i p_i(y_i)`` of each, (...), differentiable; ``-inf`` where there is no assignment.
    """

    values: Tensor
    log_prob: Tensor


class Inferred(Compiled):
    """Questions to a compiled constraint beyond its probability.

    Each takes log-probabilities, (..., variables, values). Which assignment is best, drawn or how likely given the
    constraint does not change with the scale of a variable's probabilities, so they need not add up to 1. Each takes
    evidence, ``given={"x1": 3}``: what some variables are known to be, in every group.
    """

    def posterior(self, log_p: Tensor, given: Evidence | None = None) -> Tensor:
        """``P(y_i = k | C)`` of each group, shaped as ``log_p``: what the constraint says of each symbol.

        Example:
            >>> from gedi.logic import Constraint
            >>> c = Constraint.from_predicate(lambda a, b, c: a + b == c, domains=[range(3)] * 3)
            >>> c.posterior(torch.zeros(1, 3, 3), given={"x3": 2})[0, 0]       # 0 + 2, 1 + 1, 2 + 0
            tensor([0.3333, 0.3333, 0.3333])
        """
        self.one_query("posterior")
        if not isinstance(log_p, Tensor):
            check_tensors(log_p, "log_p")
            raise UserError(
                "log_p must be a tensor, got a list: posterior needs one tensor, padded where domains differ"
            )
        with torch.enable_grad():
            leaf = log_p.detach().requires_grad_()
            leaves, _ = self._asked(leaf, given)
            (grad,) = torch.autograd.grad(self._holds(leaves).sum(), leaf)
        return grad

    def pair_posterior(self, log_p: Tensor, given: Evidence | None = None) -> Tensor:
        """``P(y_i = k, y_j = l | C)`` of each group, (..., variables, values, variables, values).

        From second derivatives: that of ``log P(C)`` is the covariance of the two events.
        """
        self.one_query("pair_posterior")
        leaf = log_p.detach().requires_grad_()
        with torch.enable_grad():
            leaves, _ = self._asked(leaf, given)
            (first,) = torch.autograd.grad(self._holds(leaves).sum(), leaf, create_graph=True)
            flat = first.flatten(-2)
            rows = [torch.autograd.grad(flat[..., j].sum(), leaf, retain_graph=True)[0] for j in range(flat.shape[-1])]
        mean = first.detach()
        covariance = torch.stack(rows, dim=-3).view(*mean.shape, *mean.shape[-2:])
        return covariance + mean[..., :, :, None, None] * mean[..., None, None, :, :]

    def marginals(self, given: Evidence | None = None) -> Tensor:
        """``P(y_i = k)`` when every satisfying assignment is as likely as another, (variables, values).

        Example:
            >>> from gedi.logic import Constraint
            >>> c = Constraint.from_predicate(lambda a, b, c: a + b == c, domains=[range(10)] * 3)
            >>> (c.marginals().mean(dim=0) * 165).round().int().tolist()   # the digit d has mass (21 - d) / 165
            [21, 20, 19, 18, 17, 16, 15, 14, 13, 12]
        """
        return self.posterior(torch.zeros(1, len(self.domains), max(self.sizes), dtype=torch.float64), given)[0]

    def most_probable(self, log_p: Tensor | Sequence[Tensor], given: Evidence | None = None) -> Assignments:
        """The most probable assignment of each group that satisfies the constraint.

        Returns:
            values (..., variables) and their log_prob (...).

        Example:
            >>> from gedi.logic import Constraint
            >>> c = Constraint.from_predicate(lambda a, b: a + b == 3, domains=[range(4)] * 2)
            >>> p = torch.tensor([[[0.7, 0.1, 0.1, 0.1], [0.6, 0.2, 0.1, 0.1]]])   # each alone would be 0
            >>> found = c.most_probable(p.log())
            >>> c.named(found.values), found.log_prob.exp()
            ([(0, 3)], tensor([0.0700]))
        """
        values, log_prob = self.k_best(log_p, 1, given)
        return Assignments(values[..., 0, :], log_prob[..., 0])

    def k_best(self, log_p: Tensor | Sequence[Tensor], k: int, given: Evidence | None = None) -> Assignments:
        """The k most probable assignments of each group, best first.

        Returns:
            values (..., k, variables) and their log_prob (..., k); -1 and ``-inf`` where there are fewer.
        """
        self.one_query("k_best")
        check_count(k, "k")
        if self._fixed:
            raise UserError("the best assignments need a constraint of symbols alone, without plain probabilities")
        leaves, shape = self._asked(log_p, given)
        values = best(self.circuit, self.sizes, leaves.detach(), k)
        first = torch.tensor(self.sizes).cumsum(0) - torch.tensor(self.sizes)
        exists = values >= 0
        columns = (values + first.to(values.device)).where(exists, 0)
        each = leaves[:, None].expand(-1, k, -1).gather(2, columns)
        log_prob = torch.where(exists[..., 0], each.where(exists, 0.0).sum(dim=2), -torch.inf)
        return Assignments(values.view(*shape, k, len(self.sizes)), log_prob.view(*shape, k))

    @torch.no_grad()
    def samples(
        self,
        log_p: Tensor | Sequence[Tensor],
        n: int,
        given: Evidence | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """n assignments of each group, drawn from ``P(y | C)``, independently: value numbers (..., n, variables).

        A group that cannot satisfy the constraint has -1 everywhere.

        Example:
            >>> from gedi.logic import Constraint
            >>> c = Constraint.from_predicate(lambda a, b: a + b == 3, domains=[range(4)] * 2)
            >>> c.samples(torch.zeros(1, 2, 4), 1000, generator=torch.Generator().manual_seed(0)).sum(dim=-1).unique()
            tensor([3])
        """
        self.one_query("samples")
        check_count(n, "n")
        leaves, shape = self._asked(log_p, given)
        sizes = [*self.sizes, *map(len, self._fixed)]
        drawn = draws(self.circuit, sizes, self._with_plain(leaves), n, generator)
        return drawn[..., : len(self.sizes)].view(*shape, n, len(self.sizes))

    @cached_property
    def symmetries(self) -> tuple[tuple[int, ...], ...]:
        """The renamings of symbols, one to one, that the constraint cannot tell from the given one, as value numbers.

        Without the identity; none where they are not known: several domains, or too large to search.

        Example:
            >>> from gedi.logic import Constraint
            >>> Constraint.from_predicate(lambda a, b: abs(a - b) == 1, [range(3)] * 2).symmetries
            ((2, 1, 0),)
        """
        try:
            found = self.shortcuts()
        except UserError:
            return ()
        place = {symbol: k for k, symbol in enumerate(found.symbols)}
        return () if found.kinds else tuple(tuple(place[image] for image in m) for m in found.swaps)

    def named(self, values: Tensor) -> list[Any]:
        """Value numbers, (..., variables), as the values they stand for: lists of tuples; None stands for -1."""
        if values.dim() > 1:
            return [self.named(row) for row in values]
        pairs = zip(self.domains, values.tolist(), strict=True)
        return tuple(domain[k] if k >= 0 else None for domain, k in pairs)  # type: ignore[return-value]

    @full_precision
    def _holds(self, leaves: Tensor) -> Tensor:
        """``log P`` of the constraint, together with the evidence of its program if it has some, (groups,)."""
        return self._evaluate(self._with_plain(leaves))[:, 0]

    def _asked(self, log_p: Tensor | Sequence[Tensor], given: Evidence | None) -> tuple[Tensor, torch.Size]:
        """Leaves in which what contradicts the evidence is impossible, and the shape of the groups."""
        leaves, shape = self._leaves(log_p, "log_p")
        check_weights(leaves, "log_p")
        return (leaves if not given else leaves.masked_fill(self._contradicted(given), -torch.inf)), shape

    def _contradicted(self, given: Evidence) -> Tensor:
        """The columns of values that the evidence rules out, (columns,)."""
        if not isinstance(given, Mapping):
            raise UserError(f"given must say which variable has which value, as {{'x1': 3}}, got {shown(given)}")
        ruled_out = [torch.zeros(size, dtype=torch.bool) for size in self.sizes]
        for name, value in given.items():
            if isinstance(name, str) and name not in self.variables:
                raise unknown("variable", name, list(self.variables))
            i = self.variables.index(name) if isinstance(name, str) else name
            if not whole(i) or not 0 <= i < len(self.domains):
                raise UserError(f"given must name variables, or number them from 0, got {shown(name)}")
            if not isinstance(value, Hashable) or value not in self.domains[i]:
                raise UserError(f"variable {self.variables[i]} must have a value of its domain, got {shown(value)}")
            ruled_out[i][:] = True
            ruled_out[i][self.domains[i].index(value)] = False
        return torch.cat(ruled_out)
