"""Symbols merged from finer clusters: a global step that gradients cannot make."""

import math
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from sklearn.cluster import SpectralClustering
from torch import Tensor

from gedi import losses
from gedi.errors import UserError
from gedi.moves.move import Augment, Move, Proposal
from gedi.nn import Model
from gedi.objectives.objective import Context
from gedi.precision import full_precision
from gedi.settings import Amount
from gedi.types import Points

_POINTS = 3000  # enough for the confusions of some fifty clusters; more only cost time
_LOOKS = 4  # augmented looks at each point
_TRACE = 1e-12


class Merge(Move):
    """Merges the clusters from finer ones, at the given moments, and finds out how many points each of them has."""

    shares: Literal["found", "equal"] = "found"  # of the clusters, for the terms that share the points out
    balance: Amount = 4.0  # weight of the balance in the loss that decides

    kind: ClassVar[str] = "merge"

    @property
    def finds_shares(self) -> bool:
        """It does, unless equal ones are asked for."""
        return self.shares == "found"

    def bind(self, context: Context) -> "Merge":
        """Refused where there is nothing to merge from."""
        if context.finer == 0:
            raise UserError("clusters are merged from finer ones, and the model has none: see model.finer")
        return super().bind(context)

    def propose(
        self, model: Model, points: Points, grouped: int, look: Augment, generator: torch.Generator
    ) -> Proposal:
        """See :func:`merge_prototypes`."""
        some = points[some_of(len(points), generator)]
        return merge_prototypes(model, some, look, generator, self.balance, self.finds_shares)


@torch.no_grad()
@full_precision
def merge_prototypes(
    model: Model,
    points: Tensor,
    augment: Augment,
    generator: torch.Generator,
    balance: float = 4.0,
    finds_shares: bool = True,
) -> Proposal:
    r"""Prototypes whose clusters are the groups of finer clusters that views confuse with one another.

    .. math:: C_{jk} = \sum_i \sum_{a \neq b} p(j | x_i^a)\, p(k | x_i^b), \qquad
              u_y \propto \sum_i \sum_{j \in y} p(j | x_i)\, w_i

    Two finer clusters that one point falls into, seen through two augmentations a and b, are parts of one thing.
    Few well separated groups of such clusters are found by normalised cuts of C, all clusters at once; descent on
    a few prototypes gets stuck where two things share one prototype and another is split. The old prototypes stay
    unless the cluster loss (agreement of two looks and the balance of clusters) drops. Balance is to the shares that
    clusters have, see :func:`found_shares`; so that fewer or less even clusters are no easier, the loss is counted from
    what perfect clusters of equal shares have more than perfect ones of theirs.

    Args:
        model: with ``finer`` prototypes.
        points: (n, *shape), n in the thousands.
        augment: one augmented look at points.
        generator: the stream of looks.
        balance: weight of the balance term in the loss that decides.
        finds_shares: whether clusters may have other than equal shares; they come with the proposal.

    Source: the cut is that of Shi & Malik 2000 (spectral clustering by scikit-learn).
    """
    was_training, finer, weight = model.training, model.finer, model.prototypes.weight
    temperature = model.prototypes.temperature
    assert finer is not None
    assert isinstance(weight, Tensor)
    assert isinstance(temperature, float)
    model.eval()
    looks = [_embed(model, augment(points, generator)) for _ in range(_LOOKS)]  # each (n, d)
    model.train(was_training)

    memberships = [finer(look).softmax(dim=1) for look in looks]
    together = torch.stack(memberships).sum(dim=0)  # (n, finer clusters)
    confused = together.t() @ together - sum(p.t() @ p for p in memberships)
    mass = confused.sum(dim=1).clamp_min(torch.finfo(confused.dtype).tiny).sqrt()
    # a trace of affinity everywhere: the cut of a graph in pieces is not defined
    affinity = (confused / mass / mass[:, None]).double().clamp_min(_TRACE).cpu().numpy()
    seed = int(torch.randint(2**31, (), generator=generator, device=generator.device))
    clusters = len(weight)
    cut = SpectralClustering(clusters, affinity="precomputed", n_init=50, random_state=seed)
    group = torch.from_numpy(cut.fit_predict((affinity + affinity.T) / 2)).long().to(weight.device)

    mean_look = F.normalize(torch.stack(looks).sum(dim=0), dim=1)
    merged = F.normalize((together @ F.one_hot(group, clusters).to(together)).t() @ mean_look, dim=1)  # (c, d)

    def loss(prototypes: Tensor) -> float:
        unit = F.normalize(prototypes, dim=1)
        logits = [look @ unit.t() / temperature for look in looks[:2]]
        agreed, both = losses.agreement(*logits), torch.cat(logits)
        shares = found_shares(both.softmax(dim=1).mean(dim=0), len(affinity))
        if not finds_shares or bool((shares == 1 / clusters).all()):
            return float(agreed + balance * losses.balance(both))
        uneven = math.log(clusters) - torch.special.entr(shares).sum()
        return float(agreed + balance * losses.balance(both, shares.log()) + (1 + balance) * uneven)

    masses = torch.zeros(clusters).to(together).index_add(0, group, together.sum(dim=0))
    shares = found_shares(masses / masses.sum(), len(affinity)).log() if finds_shares else None
    return Proposal("cluster", merged, None, loss(weight), loss(merged), shares)


def found_shares(masses: Tensor, finer: int) -> Tensor:
    r"""The clusters' shares, from how much of the finer clusters' mass fell to each: (c,).

    .. math:: \pi_y = \frac1c + \max\Big(0, 1 - \frac{1}{f^2 v}\Big) \Big(m_y - \frac1c\Big), \qquad
              v = \frac1c \sum_y \Big(m_y - \frac1c\Big)^2

    Points are counted in whole finer clusters, so that a mass m is known to about one of them, 1/f. Masses that differ
    by no more are equal ones; the more they differ, the nearer the shares come to them.

    Source: shrinkage as by James and Stein, "Estimation with quadratic loss", 1961.

    Example:
        >>> found_shares(torch.tensor([0.26, 0.24, 0.24, 0.26]), finer=20)  # no more than chance
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
        >>> found_shares(torch.tensor([0.7, 0.1, 0.1, 0.1]), finer=20)
        tensor([0.6833, 0.1056, 0.1056, 0.1056])
    """
    away = masses - 1 / len(masses)
    spread = away.square().mean()
    kept = (1 - 1 / (finer**2 * spread)).clamp_min(0) if spread > 0 else spread
    shares: Tensor = 1 / len(masses) + kept * away
    return shares.clamp_min(1 / (2 * finer * len(masses)))  # a share of none could never come back


def some_of(n: int, generator: torch.Generator) -> Tensor:
    """Indices of as many points as merging looks at."""
    return torch.randperm(n, generator=generator, device=generator.device)[:_POINTS]


def _embed(model: Model, x: Tensor) -> Tensor:
    return torch.cat([model.heads([model.encoder(part)])[0].embedding for part in torch.split(x, 500)])
