"""Names for the clusters of a trained model, from groups of points and a rule: no training, no labels."""

import copy
from typing import Any, NamedTuple

import torch

from gedi.errors import UserError
from gedi.fitted import Fitted
from gedi.logic import Alignment, Constraint, align
from gedi.nn import Prototypes


class Named(NamedTuple):
    """A model whose clusters have names.

    Attributes:
        fitted: the same model, its clusters in the order of the symbols: ``predict`` gives the symbol's number.
        alignment: how the names were found: ``confidence`` of each, and ``ties``.
    """

    fitted: Fitted
    alignment: Alignment


def name_clusters(
    fitted: Fitted, points: Any, constraint: Constraint, *, answers: Any = None, restarts: int = 200, seed: int = 0
) -> Named:
    """Name the clusters of a model by groups of points that a rule is known of: :func:`gedi.logic.align`.

    Clusters need no rule and no groups, names need few groups: a model trained once, on points without any, can be
    named afterwards, and again as more groups come in.

    Args:
        fitted: what was learnt, with as many clusters as the rule has symbols.
        points: group after group, as many points in each as the rule has variables; as ``predict`` takes them.
        constraint: the rule.
        answers: what was observed of each group, where the rule has several queries; None where nothing was.
        restarts: of the search.
        seed: of the search.

    Example:
        >>> import gedi
        >>> from gedi.logic import sorted_
        >>> x = torch.cat([torch.randn(99, 2), torch.randn(99, 2) + 9])
        >>> short = {"stage1": {"iterations": 20}, "stage2": {"iterations": 60}, "walk": {"steps": 2}, "n_init": 1}
        >>> fitted = gedi.fit(x, short, clusters=2)
        >>> pairs = torch.stack([x[:99], x[99:]], dim=1).flatten(0, 1)            # the lower of two, and the higher
        >>> named = gedi.name_clusters(fitted, pairs, sorted_(2, range(2), strictly=True))
        >>> named.fitted.predict(x).shape, sorted(named.alignment.permutation.tolist())
        (torch.Size([198]), [0, 1])
    """
    if not isinstance(fitted, Fitted):
        raise UserError(f"name_clusters needs a trained model (gedi.Fitted), got {type(fitted).__name__}")
    if not isinstance(constraint, Constraint):
        raise UserError(f"constraint must be a gedi.logic.Constraint, got {type(constraint).__name__}")
    size = len(constraint.domains)
    if set(constraint.sizes) != {fitted.clusters}:
        raise UserError(
            f"every variable of the constraint must have the {fitted.clusters} symbols that the model tells apart, got "
            f"{constraint.sizes} values"
        )
    if not isinstance(fitted.model.prototypes, Prototypes):
        raise UserError("clusters are named by their prototypes: train with model.head=prototypes")
    log_p = fitted.probabilities(points).double().clamp_min(torch.finfo(torch.float64).tiny).log()
    if len(log_p) % size:
        raise UserError(f"points must come in whole groups of {size}, got {len(log_p)}")
    found = align(
        constraint,
        log_p.log_softmax(dim=1).view(-1, size, fitted.clusters),
        restarts=restarts,
        generator=torch.Generator().manual_seed(seed),
        answers=None if answers is None else constraint.numbered(answers),
    )
    model = copy.deepcopy(fitted.model)
    assert isinstance(model.prototypes, Prototypes)
    with torch.no_grad():
        model.prototypes.weight.copy_(model.prototypes.weight[found.permutation])
    named = copy.copy(fitted)
    named.model = model.eval()
    return Named(named, found)
