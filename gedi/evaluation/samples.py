"""Two ways to fail as a sampler, told apart: samples off the data, and data never sampled."""

import torch
from torch import Tensor

from gedi.errors import UserError

_CHUNK = 1000


@torch.no_grad()
def precision_recall(real_features: Tensor, fake_features: Tensor, k: int = 3) -> dict[str, float]:
    """Share of samples on the data's manifold, and share of the data on the samples' manifold.

    The manifold of a set is the union of balls around its points, each reaching to the ``k``-th nearest other
    point of the set. Precision falls with bad samples, recall with missing modes.

    Args:
        real_features: features of data, (n, d).
        fake_features: features of samples, (m, d).
        k: which neighbour sets the radius.

    Source: Kynkäänniemi et al., "Improved precision and recall metric for assessing generative models", 2019.

    Example:
        >>> line = torch.arange(10.0)[:, None]
        >>> precision_recall(line, line[:5] + 0.1, k=1)
        {'precision': 1.0, 'recall': 0.6}
    """
    for name, features in (("real", real_features), ("fake", fake_features)):
        if len(features) <= k or k < 1:
            raise UserError(
                f"precision and recall need more than k={k} {name} points and k >= 1, got {len(features)}; "
                "draw more or lower k"
            )
    centre = real_features.mean(dim=0)  # near the origin, squared distances lose fewer digits
    real, fake = real_features - centre, fake_features - centre
    real_radius, fake_radius = _radii(real, k), _radii(fake, k)
    on_real = torch.zeros(len(fake), dtype=torch.bool, device=fake.device)
    covered = 0
    for part, radius in zip(torch.split(real, _CHUNK), torch.split(real_radius, _CHUNK), strict=True):
        distance = torch.cdist(part, fake)  # (chunk, m)
        on_real |= (distance <= radius[:, None]).any(dim=0)
        covered += int((distance <= fake_radius).any(dim=1).sum())
    return {"precision": float(on_real.double().mean()), "recall": covered / len(real)}


def _radii(x: Tensor, k: int) -> Tensor:
    """Distance of every point to its ``k``-th nearest other point, (n,)."""
    radii = []
    for start in range(0, len(x), _CHUNK):
        distance = torch.cdist(x[start : start + _CHUNK], x)
        distance.diagonal(offset=start).fill_(torch.inf)  # a point is not its own neighbour
        radii.append(distance.kthvalue(k, dim=1).values)
    return torch.cat(radii)
