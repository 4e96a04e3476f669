"""Is a point from the data or from elsewhere? Scores that are higher inside, and how well they part the two."""

from collections.abc import Mapping

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from gedi.errors import UserError
from gedi.score import energy_and_score
from gedi.types import EnergyFn


@torch.no_grad()
def ood_scores(energy: EnergyFn, x: Tensor, logits: Tensor | None = None, chunk: int = 500) -> dict[str, Tensor]:
    r"""Scores (n,) that are higher the more a point looks like the data.

    .. math:: -|\nabla_x \log p(x)|_2, \qquad \log p(x) + \log Z = -E(x), \qquad \max_y p(y|x)

    Args:
        energy: the model's ``E``.
        x: points, (n, *shape).
        logits: what the cluster head says of them, (n, c), if there is one.
        chunk: points at a time.

    Returns:
        ``score_norm`` (the paper's criterion), ``log_density`` and, with logits, ``max_probability``.

    Source: Grathwohl et al., "Your classifier is secretly an energy based model", 2020.

    Example:
        >>> gaussian = lambda x: x.square().sum(1) / 2
        >>> {name: float(s) for name, s in ood_scores(gaussian, torch.tensor([[3.0, 4.0]])).items()}
        {'score_norm': -5.0, 'log_density': -12.5}
    """
    if logits is not None and len(logits) != len(x):
        raise UserError(f"logits must be of the same points, got {len(logits)} for {len(x)} points; pass one row each")
    parts = [energy_and_score(energy, part) for part in torch.split(x, chunk)]
    scores = {
        "score_norm": torch.cat([-score.flatten(1).norm(dim=1) for _, score in parts]),
        "log_density": torch.cat([-e for e, _ in parts]),
    }
    if logits is not None:
        scores["max_probability"] = logits.softmax(dim=1).amax(dim=1)
    return scores


def auroc(inside: Tensor, outside: Tensor) -> float:
    """Probability that a point inside scores above one outside, ties counted half: 0.5 tells nothing.

    Example:
        >>> auroc(torch.tensor([2.0, 3.0]), torch.tensor([1.0, 2.5]))
        0.75
    """
    scores = torch.cat([inside, outside]).double().cpu()
    if not len(inside) or not len(outside) or not bool(scores.isfinite().all()):
        raise UserError(
            f"AUROC needs finite scores on both sides, got {len(inside)} inside and {len(outside)} outside, "
            f"{int((~scores.isfinite()).sum())} of them not finite; check that the energy did not diverge"
        )
    side = torch.cat([torch.ones(len(inside)), torch.zeros(len(outside))])
    return float(roc_auc_score(side.numpy(), scores.numpy()))


def ood_aurocs(scores_in: Mapping[str, Tensor], scores_out: Mapping[str, Tensor]) -> dict[str, float]:
    """AUROC of every score that both sides have.

    Example:
        >>> ood_aurocs({"log_density": torch.tensor([1.0])}, {"log_density": torch.tensor([0.0])})
        {'auroc_log_density': 1.0}
    """
    return {f"auroc_{name}": auroc(scores_in[name], scores_out[name]) for name in scores_in if name in scores_out}
