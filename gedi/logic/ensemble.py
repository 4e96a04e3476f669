"""Several runs together, and what a rule leaves open among names: confidence that knows what it cannot know."""

from collections.abc import Sequence

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from gedi.errors import UserError
from gedi.logic.probabilities import check_tensor, check_weights
from gedi.logic.shortcuts import Shortcuts


def ensemble(members: Sequence[Tensor], shortcuts: Shortcuts | None = None) -> Tensor:
    """The mean of what several runs say of the same points, (n, symbols), aligned to each other first.

    Without shortcuts the clusters of each run are matched to those of the first one to one: names mean nothing. With
    the shortcuts of the rule that named them, a run may only be renamed as the rule allows, and in the end every naming
    that the rule allows counts alike (:func:`names_left_open`): a symbol that it cannot tell from another gets no
    more than its share of their probability.

    Args:
        members: probabilities (n, symbols) of each run.
        shortcuts: of the rule, ``constraint.shortcuts()``.

    Example:
        >>> from gedi.logic import Constraint
        >>> rule = Constraint.from_predicate(lambda a, b: (a + b == 1) | (a == 2) & (b == 2), [range(3)] * 2)
        >>> certain = torch.eye(3)                                            # 0 and 1 may be swapped, 2 may not
        >>> ensemble([certain, certain], rule.shortcuts())
        tensor([[0.5000, 0.5000, 0.0000],
                [0.5000, 0.5000, 0.0000],
                [0.0000, 0.0000, 1.0000]])
    """
    if not members:
        raise UserError("an ensemble needs at least one member, got none")
    for p in members:
        check_tensor(p, "members")
        if p.dim() != 2 or p.shape != members[0].shape:
            raise UserError(f"members must be (n, symbols) of the same points, got {[tuple(x.shape) for x in members]}")
        check_weights(p, "members", least=0.0)
    first = members[0]
    mean = torch.stack([p[:, _renaming(first, p, shortcuts)] for p in members]).mean(dim=0)
    return mean if shortcuts is None else names_left_open(mean, shortcuts)


def names_left_open(p: Tensor, shortcuts: Shortcuts) -> Tensor:
    """The mean of probabilities (n, symbols) over every one-to-one renaming that the rule cannot tell apart."""
    return torch.stack([p[:, order] for order in _allowed(shortcuts, p.shape[1])]).mean(dim=0)


def _allowed(shortcuts: Shortcuts, symbols: int) -> list[list[int]]:
    """The identity and the swaps, as orders of columns."""
    if shortcuts.kinds or len(shortcuts.symbols) != symbols:
        raise UserError(f"shortcuts must be of one domain with {symbols} symbols, got {len(shortcuts.symbols)} symbols")
    if not shortcuts.exact or len(shortcuts.maps) < shortcuts.count:
        raise UserError(
            "every other naming must be listed, but the search was cut short; raise the limit of shortcuts()"
        )
    place = {symbol: k for k, symbol in enumerate(shortcuts.symbols)}
    return [[place[image] for image in m] for m in (shortcuts.symbols, *shortcuts.swaps)]


def _renaming(first: Tensor, p: Tensor, shortcuts: Shortcuts | None) -> list[int]:
    """The order of a run's columns that is nearest to the first run, among those allowed."""
    together = (first.double().t() @ p.double()).cpu()  # (symbols, symbols)
    if shortcuts is None:
        return linear_sum_assignment(-together.numpy())[1].tolist()  # type: ignore[no-any-return]
    orders = _allowed(shortcuts, p.shape[1])
    rows = torch.arange(p.shape[1])
    return max(orders, key=lambda order: float(together[rows, order].sum()))
