"""Wide rows on fewer axes: those along which they vary most, and how far off these axes a row lies."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gedi.data.shards import spread

MOST, FEWEST = 64, 4  # axes that are kept of rows wider than twice the most
_ENOUGH = 20_000  # rows to tell the axes by
_LEAST = 1e-12
_MORE = 2  # times as many axes as stand out: those of small clusters lie among the first that do not
_CLEAR = 1.05  # times the largest singular value of noise, which varies a little


@dataclass(frozen=True)
class Projection:
    r"""Principal components, and one more column: the length of what they leave out.

    .. math:: z = \frac{1}{s} \big(x A,\; \lVert x - x A A^\top \rVert - b \big)

    Noise that is spread over a thousand columns drowns distances; a few axes hold little of it. The further column
    keeps rows strange that lie off the axes.

    Attributes:
        axes: A, orthonormal, (d, k).
        beyond: b, the mean length of what is left out.
        size: s, so that the mean square is 1 on average.

    Example:
        >>> x = torch.randn(500, 3, generator=torch.Generator().manual_seed(0)) @ torch.eye(3, 200)
        >>> flat = Projection.of(x, 3)
        >>> flat(x).shape, bool((flat.back(flat(x)) - x).abs().max() < 1e-4)
        (torch.Size([500, 4]), True)
    """

    axes: Tensor
    beyond: float
    size: float

    @classmethod
    def of(cls, x: Tensor, components: int | None = None) -> "Projection":
        """The axes of rows (n, d) that are centred; without a number, those that stand out from noise."""
        some = x[spread(len(x), _ENOUGH)].double()
        squares, vectors = torch.linalg.eigh(some.t() @ some)
        if components is None:
            components = _MORE * above_noise(squares.flip(0).clamp_min(0).sqrt(), len(some))
            components = min(MOST, max(FEWEST, components))
        axes = vectors[:, -components:].flip(1).float().contiguous()
        plain = cls(axes, 0.0, 1.0)
        z = plain(x)
        beyond = float(z[:, -1].mean())
        z[:, -1] -= beyond
        return cls(axes, beyond, float(z.square().mean().sqrt().clamp_min(_LEAST)))

    def __call__(self, x: Tensor) -> Tensor:
        """Rows (n, d) -> (n, k + 1)."""
        on = x @ self.axes
        off = (x - on @ self.axes.t()).norm(dim=1, keepdim=True)
        return torch.cat([on, off - self.beyond], dim=1) / self.size

    def back(self, z: Tensor) -> Tensor:
        """Rows (n, d) on the axes."""
        return (z[:, :-1] * self.size) @ self.axes.t()


def above_noise(singular: Tensor, n: int) -> int:
    r"""How many singular values of n rows are more than the largest that noise of their median would have.

    Noise has them up to :math:`1 + \sqrt\beta`, with the ratio :math:`\beta` of the sides (Marchenko & Pastur 1967).

    Source: Gavish & Donoho 2014 for the median; their threshold serves to restore a matrix and lies higher, where small
    clusters are lost.

    Example:
        >>> noise = torch.randn(300, 200, generator=torch.Generator().manual_seed(0))
        >>> signal = torch.zeros(300, 200)
        >>> signal[:, :3] = 5 * noise[:, 3:6].flip(0)
        >>> [above_noise(torch.linalg.svdvals(x), 300) for x in (noise, noise + signal)]
        [0, 3]
    """
    d = len(singular)
    seen = singular[: min(n, d)]
    ratio = min(n, d) / max(n, d)
    restoring = math.sqrt(2 * (ratio + 1) + 8 * ratio / (ratio + 1 + math.sqrt(ratio**2 + 14 * ratio + 1)))
    of_median = 0.56 * ratio**3 - 0.95 * ratio**2 + 1.82 * ratio + 1.43  # the same, of the median
    largest = (1 + math.sqrt(ratio)) * of_median / restoring * seen.median()
    return int((seen > _CLEAR * largest).sum())


def projected(asked: int | str | None, x: Tensor) -> Projection | None:
    """What brings rows (n, d), centred and scaled, to fewer axes; None: they stay as they are.

    Args:
        asked: how many axes; ``auto``: those that stand out, of rows wider than twice the most there may be.
        x: the rows.
    """
    if asked == "auto":
        return Projection.of(x) if x.shape[1] > 2 * MOST else None
    return None if asked is None else Projection.of(x, min(int(asked), x.shape[1]))
