"""Which symbol emits which cluster: fitted to a rule's own latent model by EM, from many random tables at once."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gedi.logic.constraint import Constraint

_GROUPS = 300  # enough to fit the emission table; all groups judge the result
_WORK = 2e8  # restarts x groups x edges that one sweep may cost


class Known(NamedTuple):
    """A rule, and what was observed of each group where it has several queries."""

    constraint: Constraint
    answers: Tensor | None = None

    def log_prob(self, log_p: Tensor) -> Tensor:
        """``log P`` of each group, (..., groups)."""
        return self.constraint.log_prob(log_p, normalised=False, answers=self.answers)

    def of(self, groups: Tensor) -> "Known":
        """The same of some groups."""
        return self if self.answers is None else Known(self.constraint, self.answers[groups])


def posterior_of(rule: Known, log_e: Tensor) -> tuple[Tensor, Tensor]:
    """``log P`` of each group, and what the rule says of each symbol: its gradient."""
    with torch.enable_grad():
        log_e = log_e.detach().requires_grad_()
        log_prob = rule.log_prob(log_e)
        (posterior,) = torch.autograd.grad(log_prob.sum(), log_e)
    return log_prob.detach(), posterior


def fitted_tables(rule: Known, m: Tensor, restarts: int, iterations: int, generator: torch.Generator | None) -> Tensor:
    """The best emission tables that EM finds, best first, (tables, symbols, clusters); some of the groups will do."""
    if len(m) > _GROUPS:
        chosen = torch.randperm(len(m), generator=generator, device=m.device)[:_GROUPS]
        m, rule = m[chosen], rule.of(chosen)
    c, clusters = rule.constraint.sizes[0], m.shape[2]
    restarts = int(np.clip(_WORK / (len(m) * rule.constraint.size), 8, restarts))
    start = torch.rand(restarts, c, clusters, generator=generator, device=m.device, dtype=m.dtype)
    table = (4 * start).exp()
    table = table / table.sum(dim=2, keepdim=True)
    for sweep in range(iterations):
        e = torch.einsum("rdk,isk->risd", table, m)
        log_prob, posterior = posterior_of(rule, e.log())
        fit = log_prob.mean(dim=1)
        if sweep in (iterations // 4, iterations // 2) and len(table) > 10:  # the better part goes on
            kept = fit.topk(max(10, len(table) // 3)).indices
            table, e, posterior, fit = table[kept], e[kept], posterior[kept], fit[kept]
        table = table * torch.einsum("risd,isk->rdk", posterior / e, m) + 0.1 / clusters
        table = table / table.sum(dim=2, keepdim=True)
    return table[fit.topk(min(10, len(fit))).indices]
