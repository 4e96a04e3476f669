"""How sure a naming is: what else fits the groups all but as well."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

_CYCLED = 12  # symbols up to which three names are exchanged in a ring too
_NEAR = 6.0  # nats: namings as near as this are looked around as well
_AROUND = 20  # of them, in each of as many rounds:
_ROUNDS = 2
_LISTED = 100  # ties


def neighbours(order: Tensor) -> Tensor:
    """The namings with two names exchanged, and of few symbols also those with three exchanged in a ring.

    Example:
        >>> len(neighbours(torch.arange(4)))                # 6 exchanges, 4 x 2 rings
        14
    """
    c, device = len(order), order.device
    pairs = torch.triu_indices(c, c, 1, device=device).t()
    changed = [order.repeat(len(pairs), 1).scatter_(1, pairs, order[pairs.flip(1)])]
    if 3 <= c <= _CYCLED:
        rings = torch.combinations(torch.arange(c, device=device), 3)
        changed += [order.repeat(len(rings), 1).scatter_(1, rings, order[rings.roll(turn, 1)]) for turn in (1, 2)]
    return torch.cat(changed)


def keeping(orders: Tensor, order: Tensor, named: Sequence[int]) -> Tensor:
    """Which orders, (n, c), call some symbols as another one does, (n,)."""
    places = torch.tensor(list(named), dtype=torch.long, device=orders.device)
    return (orders[:, places] == order[places]).all(dim=1)


def doubts(
    best: Tensor, others: Tensor, loss: Callable[[Tensor], Tensor], groups: int, named: Sequence[int] = ()
) -> tuple[Tensor, tuple[Tensor, ...]]:
    r"""The probability of each name among the namings looked at, and those that fit all but as well.

    .. math:: \text{confidence}_d = \sum_{\pi : \pi_d = \text{best}_d} w_\pi \Big/ \sum_\pi w_\pi, \qquad
              w_\pi = e^{-n (\ell(\pi) - \ell(\text{best}))}

    over the neighbours of the best naming, of those within a few nats of it, and ``others``; all n groups count as
    independent evidence.

    Args:
        best: the naming that was taken, (c,).
        others: further ones worth looking at, (namings, c).
        loss: mean ``-log P(C)`` of each naming.
        groups: n.
        named: symbols whose names are known: namings that call them otherwise than the best one are not looked at.
    """
    reference = loss(best[None])
    known = best[None]
    behind = best.new_zeros(1, dtype=reference.dtype)

    def look_at(more: Tensor) -> None:
        nonlocal known, behind
        fresh = torch.unique(more[keeping(more, best, named)], dim=0)
        fresh = fresh[~torch.isin(_print_of(fresh), _print_of(known))]
        if len(fresh):
            # the naming that was taken counts as one of the best even where a better one is not to be had
            behind = torch.cat([behind, groups * (loss(fresh) - reference).clamp_min(0.0)])
            known = torch.cat([known, fresh])

    look_at(torch.cat([others, neighbours(best)]))
    around = 1  # the best itself, which comes first
    for _ in range(_ROUNDS):
        by_fit = behind.argsort(stable=True)
        near = known[by_fit[behind[by_fit] < _NEAR]][around : around + _AROUND]
        if len(near) == 0:
            break
        look_at(torch.cat([neighbours(order) for order in near]))
        around += len(near)
    weight = torch.exp(-behind)
    confidence = (weight[:, None] * (known == best)).sum(dim=0) / weight.sum()
    tied = (behind < 1.0) & (known != best).any(dim=1)
    nearest = behind[tied].argsort(stable=True)[:_LISTED]
    return confidence, tuple(known[tied][nearest])


def _print_of(orders: Tensor) -> Tensor:
    """A number for each naming, by which the same ones are told."""
    factors = torch.randint(2**62, (orders.shape[1],), generator=torch.Generator().manual_seed(0))
    return (orders * factors.to(orders.device)).sum(dim=1)  # wraps around, which does not matter
