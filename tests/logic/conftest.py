"""Brute force for every kind of constraint, and a cache folder of each test's own."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

Rows = Sequence[Sequence[int]]


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEDI_CACHE", str(tmp_path / "cache"))


def summed(rows: Rows, log_p: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """log P(C) of each group and P(y_i = k | C), by adding up every satisfying assignment, in float64.

    Args:
        rows: satisfying assignments as value numbers.
        log_p: (groups, variables, values).
    """
    p = log_p.detach().double().numpy()
    rows = np.asarray(rows, dtype=np.int64)
    weight = sum(p[:, i, rows[:, i]] for i in range(rows.shape[1]))  # (groups, solutions)
    top = weight.max(axis=1, keepdims=True)
    top = np.where(np.isinf(top), 0.0, top)
    share = np.exp(weight - top)
    total = share.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        value = np.log(total)[:, 0] + top[:, 0]
    posterior = np.zeros_like(p)
    share = share / np.where(total == 0, 1.0, total)
    for i in range(rows.shape[1]):
        np.add.at(posterior[:, i].T, rows[:, i], share.T)
    return torch.from_numpy(value), torch.from_numpy(posterior)


@pytest.fixture(scope="session")
def brute() -> Callable[[Rows, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """``brute(rows, log_p)`` -> values and posteriors."""
    return summed


@pytest.fixture(scope="session")
def agrees() -> Callable[..., None]:
    """``agrees(constraint, rows)``: the constraint is exactly these assignments, in every way one can ask."""

    def check(constraint, rows: Rows, groups: int = 3) -> None:
        rows = sorted(tuple(int(k) for k in row) for row in rows)
        sizes = constraint.sizes
        g = torch.Generator().manual_seed(len(rows))
        log_p = 2 * torch.randn(groups, len(sizes), max(sizes), generator=g, dtype=torch.float64)
        log_p.requires_grad_()
        value, posterior = summed(rows, log_p)
        ours = constraint.log_prob(log_p, normalised=False)
        (grad,) = torch.autograd.grad(ours.sum(), log_p)
        torch.testing.assert_close(ours, value, rtol=0, atol=1e-10)
        torch.testing.assert_close(grad, posterior, rtol=0, atol=1e-10)
        assert constraint.n_solutions == len(rows)
        number = [{value: k for k, value in enumerate(domain)} for domain in constraint.domains]
        found = constraint.solutions()
        assert sorted(tuple(n[v] for n, v in zip(number, s, strict=True)) for s in found) == rows
        every = list(itertools.product(*(range(size) for size in sizes)))
        named = [[d[k] for d, k in zip(constraint.domains, row, strict=True)] for row in every]
        assert constraint.is_satisfied(named).tolist() == [row in set(rows) for row in every]

    return check
