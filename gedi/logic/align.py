"""Symbol alignment: the naming of clusters that fits the rule best.

Gradient descent cannot swap two names: between a wrong naming and the right one lie only worse ones. But once
the clusters have formed, which cluster is called what is a search over permutations, and the rule says how
good each is.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from gedi.errors import UserError
from gedi.logic.arguments import shown, whole
from gedi.logic.constraint import Constraint
from gedi.logic.doubts import doubts, keeping
from gedi.logic.emission import Known, fitted_tables, posterior_of
from gedi.logic.probabilities import check_distributions, check_tensor, check_weights
from gedi.precision import full_precision, no_autocast

_FLOOR = 1e-6  # no membership is taken as certain: one odd group must not veto a naming
_ROUNDING = 16  # roundings of log_p that a lower loss must exceed
_WRONG = (0.0, 0.3, 0.6)  # shares of memberships that may be wrong
_KICKS = 10  # further candidates, and as many fresh starts near the best naming, where memberships are doubtful
_ANYWHERE = 20  # starts at random, where groups are few: there a step costs little
_SOME = 300  # groups that tell them apart well enough
_MEMBERS = 20  # of each cluster on average, below which groups are few: they cannot tell how large a cluster is
_WRONG_OF_FEW = 0.1  # the share then
_SYMMETRIES = 200  # of the rule, that are looked at
_HELD = 2e7  # numbers of a table of losses at once


@dataclass(frozen=True)
class Alignment:
    """A naming of clusters.

    Attributes:
        permutation: symbol number d is cluster ``permutation[d]``; reorder columns (or prototypes) by it.
        before: mean ``-log P(C)`` of the given memberships under the given naming.
        after: the same of the permutation: ``-constraint.log_prob(log_p[:, :, permutation]).mean()``. Both are
            infinite where memberships are certain and a group of them breaks the rule under both namings.
        confidence: (c,) how sure each name is: its probability among this naming, those next to it (two names
            exchanged, or three), those the search came by, and those that the rule cannot tell from it. All groups
            count as independent evidence, and a share of the memberships as wrong.
        ties: namings that fit all but as well: less than a factor of e lies between them. The rule's own symmetries
            are among them where they are known.
    """

    permutation: Tensor
    before: float
    after: float
    confidence: Tensor
    ties: tuple[Tensor, ...] = ()

    @property
    def improves(self) -> bool:
        """Whether renaming lowers the constraint's loss; :func:`align` keeps the given naming within rounding."""
        return self.after < self.before


@torch.no_grad()
@no_autocast()
def align(
    constraint: Constraint,
    log_p: Tensor,
    *,
    restarts: int = 200,
    iterations: int = 40,
    generator: torch.Generator | None = None,
    answers: Tensor | None = None,
    named: Sequence[int] = (),
) -> Alignment:
    r"""The naming of clusters under which groups of soft memberships fit the constraint best. No labels.

    Fits "which symbol emits which cluster" to the rule's own latent model, by EM from many random tables at
    once: with :math:`m_{isk}` the membership of the s-th member of group i in cluster k,

    .. math::
        e_{isd} = \sum_k \phi_{dk} m_{isk}, \qquad
        \phi_{dk} \propto \phi_{dk} \sum_{is} \frac{P(y_{is} = d \mid C, e)}{e_{isd}} m_{isk}

    where the posterior is the gradient of ``log P(C)``, so any compiled constraint will do. The best tables
    are matched one to one (Hungarian) and the best matching is improved by swaps of two names while the loss
    drops. This search sees the memberships with every cluster counted alike and none certain, so that neither a
    large cluster nor one odd group decides; groups too few to tell how large a cluster is (fewer than 20 members for
    each) are seen as given, a tenth of their memberships in doubt. What it finds is judged, and reported, by the
    constraint's loss on the memberships as they were given; the given naming is kept unless that loss drops by more
    than rounding.

    Args:
        constraint: over variables that share one domain of c values.
        log_p: log memberships, (groups, variables, c); those of each member add up to 1.
        restarts: random tables to start from.
        iterations: sweeps of EM; on the way only the better ones go on.
        generator: the stream of the starts.
        answers: of a constraint with several queries, the observed one of each group, as ``log_prob`` takes it.
        named: symbols, by their numbers, that are called right as given (labels said so): other namings do not count.

    Example:
        >>> rule = Constraint.from_predicate(lambda a, b, c: a + b == c, [range(4)] * 3)
        >>> truth = torch.tensor(rule.solutions())                              # groups of symbols
        >>> names = torch.tensor([2, 0, 3, 1])                                  # symbol d is called names[d]
        >>> log_p = torch.nn.functional.one_hot(names[truth], 4).float().log()
        >>> align(rule, log_p, generator=torch.Generator().manual_seed(0)).permutation
        tensor([2, 0, 3, 1])
    """
    rule = Known(constraint, answers)
    c = _symbols(constraint, restarts, iterations, generator, answers)
    check_tensor(log_p, "log_p")
    if log_p.dim() != 3 or log_p.shape[1:] != (len(constraint.domains), c):
        raise UserError(
            f"log_p must be (groups, {len(constraint.domains)} variables, {c} values), got {tuple(log_p.shape)}"
        )
    if len(log_p) == 0:
        raise UserError("align needs at least one group, got none")
    check_distributions(log_p.flatten(1), constraint.sizes, constraint.variables, "log_p")
    if not all(whole(k) and 0 <= k < c for k in named):
        raise UserError(f"named must be numbers of symbols, 0 to {c - 1}, got {shown(list(named))}")
    best, fit, seen = _search(rule, log_p, restarts, iterations, generator)

    def loss(order: Tensor) -> float:
        return float(-rule.log_prob(log_p[:, :, order].double()).mean())

    given = torch.arange(c, device=log_p.device)
    if named:
        kept = torch.stack([given, best, *seen])
        kept = kept[keeping(kept, given, named)]
        fits = fit(kept)
        best, _ = _swap_while_better(
            kept[fits.argmin()], float(fits.min()), lambda o: fit(o).where(keeping(o, given, named), torch.inf)
        )
    before, after = loss(given), loss(best)
    rounding = _ROUNDING * torch.finfo(log_p.dtype).eps * max(1.0, before)
    # where the given naming is impossible no other is worse, and the search has seen more than infinity
    if not (math.isinf(before) or after < before - rounding):
        best, after = given, before
    symmetric = [best[torch.tensor(order, device=best.device)] for order in constraint.symmetries[:_SYMMETRIES]]
    return Alignment(best, before, after, *doubts(best, torch.stack([*seen, *symmetric]), fit, len(log_p), named))


@full_precision
def _search(
    rule: Known, log_p: Tensor, restarts: int, iterations: int, generator: torch.Generator | None
) -> tuple[Tensor, Callable[[Tensor], Tensor], list[Tensor]]:
    """The order of clusters with the least loss, none of them certain; that loss; and other orders that were seen."""
    m = log_p.exp().double()
    c, device = m.shape[2], log_p.device
    few = m.shape[0] * m.shape[1] < _MEMBERS * c
    if not few:  # every cluster counts as much as another, whatever its size: else a large one takes several names
        m = m / m.mean(dim=(0, 1)).clamp_min(1e-12)
    m = (m / m.sum(dim=2, keepdim=True)).clamp_min(_FLOOR)
    at_once = max(1, int(_HELD / (len(m) * rule.constraint.circuit.nodes)))

    def loss(orders: Tensor, share: float, groups: int | None = None) -> Tensor:  # (r, c) -> (r,)
        doubted = ((1 - share) * m[:groups] + share / m.shape[2]).log()
        parts = [
            doubted[:, :, some].permute(2, 0, 1, 3) for some in torch.split(orders, at_once)
        ]  # (r, groups, variables, c)
        known = rule if groups is None else rule.of(torch.arange(len(doubted), device=m.device))
        return torch.cat([-known.log_prob(part).mean(dim=1) for part in parts])

    tables = fitted_tables(rule, m, restarts, iterations, generator)
    candidates = {tuple(linear_sum_assignment(-table.cpu().numpy())[1].tolist()) for table in tables}
    orders = torch.tensor([*sorted(candidates), tuple(range(c))], device=device)
    # as if some share of the memberships said nothing: the share under which any naming is likeliest is taken. Few
    # groups cannot tell it
    share = _WRONG_OF_FEW if few else min(_WRONG, key=lambda share: float(loss(orders, share).min()))
    losses = loss(orders, share)
    best, value = _swap_while_better(orders[losses.argmin()], float(losses.min()), lambda o: loss(o, share))
    seen = [best]
    if share > 0:  # many small hills: go on from elsewhere, by some of the groups
        climbed = _from_elsewhere(orders, best, lambda o: loss(o, share, _SOME), _ANYWHERE if few else 0)
        other, found = _swap_while_better(climbed[-1], float(loss(climbed[-1][None], share)), lambda o: loss(o, share))
        seen += [*climbed, other]
        best, value = (other, found) if found < value else (best, value)
    return (best if value < float(losses[-1]) else orders[-1]), lambda o: loss(o, share), seen


@torch.no_grad()
@full_precision
def decode(
    constraint: Constraint,
    memberships: Tensor,
    *,
    restarts: int = 100,
    iterations: int = 60,
    generator: torch.Generator | None = None,
    answers: Tensor | None = None,
) -> Tensor:
    """What each member of each group must be, from any number of clusters and the constraint alone. No labels.

    The same fit as :func:`align`, but the clusters may be more than the symbols: finer clusters are purer, and
    the rule tells which of them belong together.

    Args:
        constraint: over variables that share one domain of c values.
        memberships: soft memberships, (groups, variables, clusters).
        restarts: random tables to start from.
        iterations: sweeps of EM.
        generator: the stream of the starts.
        answers: as in :func:`align`.

    Returns:
        The posterior of the best table, (groups, variables, c).

    Example:
        >>> rule = Constraint.from_predicate(lambda a, b, c: a + b == c, [range(4)] * 3)
        >>> truth = torch.tensor(rule.solutions()).repeat(8, 1)                 # groups of symbols
        >>> g = torch.Generator().manual_seed(0)
        >>> halves = 2 * truth + torch.randint(2, truth.shape, generator=g)     # two clusters each
        >>> found = decode(rule, torch.nn.functional.one_hot(halves, 8).float(), generator=g)
        >>> bool((found.argmax(dim=2) == truth).all())
        True
    """
    _symbols(constraint, restarts, iterations, generator, answers)
    check_tensor(memberships, "memberships")
    n = len(constraint.domains)
    if memberships.dim() != 3 or memberships.shape[1] != n or 0 in memberships.shape:
        raise UserError(f"memberships must be (groups, {n} variables, clusters), got {tuple(memberships.shape)}")
    check_weights(memberships, "memberships", least=0.0)
    m = memberships.double().clamp_min(_FLOOR)
    rule = Known(constraint, answers)
    table = fitted_tables(rule, m, restarts, iterations, generator)[0]
    return posterior_of(rule, torch.einsum("dk,isk->isd", table, m).log())[1].to(memberships.dtype)


def _symbols(
    constraint: Constraint,
    restarts: int,
    iterations: int,
    generator: torch.Generator | None,
    answers: Tensor | None = None,
) -> int:
    """How many symbols there are to name."""
    if not isinstance(constraint, Constraint):
        raise UserError(f"align needs a Constraint, got {type(constraint).__name__}")
    if answers is None:
        constraint.one_query("align")
    if len(set(constraint.sizes)) != 1:
        raise UserError("align renames one set of symbols: every variable must have the same number of values")
    if not (whole(restarts) and whole(iterations)) or restarts < 1 or iterations < 1:
        raise UserError(f"restarts and iterations must be at least 1, got {shown(restarts)} and {shown(iterations)}")
    if not (generator is None or isinstance(generator, torch.Generator)):
        raise UserError(f"generator must be a torch.Generator, got {type(generator).__name__}")
    return constraint.sizes[0]


def _swap_while_better(order: Tensor, value: float, loss: Callable[[Tensor], Tensor]) -> tuple[Tensor, float]:
    """Swap two names at a time while the loss drops."""
    c = len(order)
    pairs = torch.triu_indices(c, c, 1, device=order.device).t()
    while len(pairs):
        swapped = order.repeat(len(pairs), 1)
        swapped.scatter_(1, pairs, order[pairs.flip(1)])
        losses = loss(swapped)
        if not float(losses.min()) < value - 1e-9:
            break
        order, value = swapped[losses.argmin()], float(losses.min())
    return order, value


def _from_elsewhere(orders: Tensor, best: Tensor, loss: Callable[[Tensor], Tensor], anywhere: int = 0) -> list[Tensor]:
    """Namings that swaps lead to from some candidates, from the best one with a few names exchanged, and from anywhere.

    The best comes last.
    """
    kicks = torch.Generator().manual_seed(0)  # a stream of its own: how hard a search is must not change the run's
    value, c = float(loss(best[None])), len(best)
    starts, seen = list(orders[loss(orders).argsort()[:_KICKS]]), []
    for turn in range(2 * len(starts) + anywhere):
        start = starts[turn // 2] if turn % 2 == 0 and turn < 2 * len(starts) else best.clone()
        if turn >= 2 * len(starts):
            start = torch.randperm(c, generator=kicks).to(best.device)
        elif turn % 2:
            chosen = torch.randperm(c, generator=kicks)[: 3 + turn % 4].to(best.device)
            start[chosen] = best[chosen.roll(1)]
        order, found = _swap_while_better(start, float(loss(start[None])), loss)
        seen.append(order)
        if found < value - 1e-9:
            best, value = order, found
    return [*seen, best]
