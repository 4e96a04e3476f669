"""How good learnt symbols are as concepts: named right, all of them used, as sure as they are right."""

import torch
from torch import Tensor

from gedi.errors import UserError

_BINS = 15


def concept_metrics(labels: Tensor, p: Tensor) -> dict[str, float]:
    """Figures of symbols that have names, so that a wrong name is an error.

    Args:
        labels: (n,) the number of each point's symbol.
        p: (n, symbols) probabilities.

    Returns:
        ``concept_accuracy``; ``concept_f1``, the mean over the symbols that occur; ``concept_collapse``, the share of
        the symbols that occur which nothing is called by; ``concept_ece``, the expected calibration error of each
        symbol's probability (15 bins of equal width), averaged over the symbols; ``concept_entropy``, the mean entropy
        of a point's probabilities, as a share of the largest.

    Example:
        >>> p = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
        >>> found = concept_metrics(torch.tensor([0, 0, 0, 1]), p)
        >>> found["concept_accuracy"], found["concept_collapse"]           # nothing is called 1
        (0.75, 0.5)
    """
    if p.dim() != 2 or labels.shape != (len(p),) or len(p) == 0:
        raise UserError(f"p must be (n, symbols) and labels (n,), got {tuple(p.shape)} and {tuple(labels.shape)}")
    if int(labels.min()) < 0 or int(labels.max()) >= p.shape[1]:
        raise UserError(f"labels must number the {p.shape[1]} symbols, got {int(labels.min())} to {int(labels.max())}")
    p, labels = p.double().cpu(), labels.long().cpu()
    named = p.argmax(dim=1)
    occurring = torch.unique(labels).tolist()
    entropy = torch.special.entr(p).sum(dim=1).mean() / torch.log(torch.tensor(float(p.shape[1])))
    return {
        "concept_accuracy": float((named == labels).double().mean()),
        "concept_f1": sum(_f1(named == k, labels == k) for k in occurring) / len(occurring),
        "concept_collapse": sum(not bool((named == k).any()) for k in occurring) / len(occurring),
        "concept_ece": sum(calibration_error(p[:, k], labels == k) for k in range(p.shape[1])) / p.shape[1],
        "concept_entropy": float(entropy),
    }


def calibration_error(p: Tensor, happened: Tensor, bins: int = _BINS) -> float:
    """The mean distance between what is said, p (n,), and how often it happens, over bins of equal width.

    Example:
        >>> calibration_error(torch.tensor([0.75] * 10), torch.arange(10) < 5)      # said 0.75, happened 0.5
        0.25
    """
    place = (p.double() * bins).long().clamp(0, bins - 1)
    said = torch.zeros(bins, dtype=torch.float64).index_add(0, place, p.double())
    seen = torch.zeros(bins, dtype=torch.float64).index_add(0, place, happened.double())
    return float((said - seen).abs().sum()) / len(p)


def _f1(said: Tensor, true: Tensor) -> float:
    both = int((said & true).sum())
    return 2 * both / max(int(said.sum()) + int(true.sum()), 1)
