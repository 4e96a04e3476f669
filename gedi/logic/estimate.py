"""The probability of a rule that no circuit fits: by sampling, with a stated error."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import beta
from torch import Tensor

from gedi.errors import UserError
from gedi.logic.arguments import Domain, check_count, checked_domains, said, shown
from gedi.logic.predicate import array_of
from gedi.logic.probabilities import check_distributions, check_tensor

_SAMPLE = 16  # answers for whole columns that are held against single ones


class Estimate(NamedTuple):
    """A probability and an interval that holds it with a stated certainty, (groups,) each."""

    value: Tensor
    low: Tensor
    high: Tensor


@torch.no_grad()
def estimate(
    rule: Callable[..., Any],
    domains: Sequence[Domain],
    log_p: Tensor,
    n: int = 10_000,
    *,
    delta: float = 0.01,
    generator: torch.Generator | None = None,
) -> Estimate:
    """``P(rule)`` of each group from n random assignments: for rules too large to compile. It has no gradient.

    Args:
        rule: as in :meth:`gedi.logic.Constraint.from_predicate`; it is called with values, or with columns of them.
        domains: the values of each variable.
        log_p: log-probabilities, (groups, variables, values), padded where domains differ.
        n: assignments drawn for each group.
        delta: how often, at most, the interval may miss the truth, group by group (Clopper and Pearson's, exact).
        generator: the stream of the draws.

    Example:
        >>> p = torch.full((1, 40, 2), 0.5).log()                                # 2 ** 40 assignments
        >>> g = torch.Generator().manual_seed(0)
        >>> found = estimate(lambda *x: sum(x) % 3 == 0, [range(2)] * 40, p, generator=g)
        >>> bool(found.low < 1 / 3) and bool(found.high > 1 / 3), float(found.high - found.low) < 0.03
        (True, True)
    """
    domains = checked_domains(domains)
    sizes = [len(domain) for domain in domains]
    check_count(n, "n")
    if not callable(rule):
        raise UserError(f"a rule must be a function of the values of its variables, got {shown(rule)}")
    if not isinstance(delta, float) or not 0 < delta < 1:
        raise UserError(f"delta must be between 0 and 1, got {shown(delta)}")
    check_tensor(log_p, "log_p")
    if log_p.dim() != 3 or log_p.shape[1:] != (len(sizes), max(sizes)):
        raise UserError(
            f"log_p must be (groups, {len(sizes)} variables, {max(sizes)} values), got {tuple(log_p.shape)}"
        )
    parts = [log_p[:, i, :size] for i, size in enumerate(sizes)]
    check_distributions(torch.cat(parts, dim=1), sizes, [f"x{i + 1}" for i in range(len(sizes))], "log_p")
    columns = [array_of(domain) for domain in domains]
    hits = []
    for group in range(len(log_p)):
        drawn = [torch.multinomial(part[group].exp(), n, True, generator=generator).cpu().numpy() for part in parts]
        hits.append(_hits(rule, [column[row] for column, row in zip(columns, drawn, strict=True)]))
    k = np.array(hits, dtype=np.float64)
    low = np.where(k > 0, beta.ppf(delta / 2, k, n - k + 1), 0.0)
    high = np.where(k < n, beta.ppf(1 - delta / 2, k + 1, n - k), 1.0)
    return Estimate(*(torch.from_numpy(x).to(log_p) for x in (k / n, low, high)))


def _hits(rule: Callable[..., Any], columns: Sequence[np.ndarray]) -> int:
    """Of how many rows the rule says that it holds."""
    rows = list(zip(*columns, strict=True))
    try:
        answers = np.asarray(rule(*columns))
        whole = answers.shape == (len(rows),) and answers.dtype == np.bool_
        if whole and all(_ask(rule, rows[i]) == answers[i] for i in range(min(len(rows), _SAMPLE))):
            return int(answers.sum())
    except Exception:  # a rule that cannot take columns is asked one by one, where its own error will show
        pass
    return sum(_ask(rule, row) for row in rows)


def _ask(rule: Callable[..., Any], values: Sequence[Any]) -> bool:
    try:
        return bool(rule(*values))
    except ArithmeticError:
        return False  # as in a compiled rule
    except Exception as error:
        raise UserError(f"the rule must say True or False of plain values, but failed: {said(error)}") from error
