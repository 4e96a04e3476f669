"""The terms of the objective, as functions of what a step computed."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi import losses
from gedi.logic import Constraint
from gedi.losses.contrastive import Similarity
from gedi.training.stage import StepOutputs


def generative_term(out: StepOutputs) -> Tensor:
    """Energy of data against energy of samples."""
    assert out.energy_data is not None
    assert out.energy_negatives is not None
    return losses.generative(out.energy_data, out.energy_negatives)


def penalty_term(out: StepOutputs) -> Tensor:
    """Squared energies."""
    assert out.energy_data is not None
    assert out.energy_negatives is not None
    return losses.energy_penalty(out.energy_data, out.energy_negatives)


@dataclass(frozen=True)
class denoising_term:
    """Score matching at one width of noise."""

    sigma: float

    def __call__(self, out: StepOutputs) -> Tensor:
        """The mean squared error of the score."""
        assert out.noised_score is not None
        assert out.noise is not None
        return losses.denoising(out.noised_score, out.noise, self.sigma)


@dataclass(frozen=True)
class negative_free_term:
    """Spread of the embeddings and agreement of the latents with the noise view."""

    ridge: float
    view: str = "noise"

    def __call__(self, out: StepOutputs) -> Tensor:
        """The negative-free term of data and view."""
        assert out.data is not None
        return losses.negative_free(out.data.embedding, out.data.latent, out.views[self.view].latent, self.ridge)


@dataclass(frozen=True)
class ClusterTerm:
    """Swapped prediction between the data and one view.

    Sinkhorn's epsilon goes from ``epsilon_start`` to ``epsilon`` geometrically over the first ``anneal`` of
    the stage: soft targets while the clusters form, hard ones when they have.
    """

    view: str
    temperature: float
    epsilon_start: float
    epsilon: float
    anneal: float
    iterations: int
    log_prior: Tensor | None = None

    def __call__(self, out: StepOutputs) -> Tensor:
        """The cluster term of data and view."""
        assert out.data is not None
        return losses.swapped_prediction(
            out.data.logits,
            out.views[self.view].logits,
            temperature=self.temperature,
            epsilon=self.epsilon_at(out.progress),
            iterations=self.iterations,
            log_prior=None if self.log_prior is None else self.log_prior.to(out.data.logits),
        )

    def epsilon_at(self, progress: float) -> float:
        """Sinkhorn's epsilon at a share of the stage."""
        way = min(1.0, progress / self.anneal) if self.anneal > 0 else 1.0
        epsilon: float = self.epsilon_start * (self.epsilon / self.epsilon_start) ** way
        return epsilon


@dataclass(frozen=True)
class agreement_term:
    """Data and a view are sure of the same symbol."""

    view: str

    def __call__(self, out: StepOutputs) -> Tensor:
        """The symmetric cross-entropy."""
        assert out.data is not None
        return losses.agreement(out.data.logits, out.views[self.view].logits)


@dataclass(frozen=True)
class finer_term:
    """Agreement and balance of the finer clusters, which shape the embedding that symbols are merged in."""

    balance: float

    def __call__(self, out: StepOutputs) -> Tensor:
        """The two terms, the second weighted."""
        assert out.data is not None
        data, view = out.data.finer, out.views["noise"].finer
        assert data is not None
        assert view is not None
        return losses.agreement(data, view) + self.balance * losses.balance(torch.cat([data, view]))


@dataclass(frozen=True)
class barlow_term:
    """Embeddings of data and augmented view agree, dimension by dimension, and dimensions do not repeat each other."""

    off_diagonal: float

    def __call__(self, out: StepOutputs) -> Tensor:
        """The Barlow Twins loss."""
        assert out.data is not None
        return losses.barlow_twins(out.data.embedding, out.views["noise"].embedding, self.off_diagonal)


@dataclass(frozen=True)
class contrastive_term:
    """Embeddings of data and augmented view find one another in the batch."""

    temperature: float
    similarity: Similarity

    def __call__(self, out: StepOutputs) -> Tensor:
        """InfoNCE."""
        assert out.data is not None
        return losses.contrastive(out.data.embedding, out.views["noise"].embedding, self.temperature, self.similarity)


@dataclass(frozen=True)
class balance_term:
    """The symbols have their shares, over data and augmented view together."""

    log_prior: Tensor | None

    def __call__(self, out: StepOutputs) -> Tensor:
        """The cross-entropy of the shares."""
        logits = _both(out)
        return losses.balance(logits, None if self.log_prior is None else self.log_prior.to(logits))


@dataclass(frozen=True)
class constraint_term:
    """``-mean log P(C)`` over the groups of the batch, each seen as data and as augmented view."""

    constraint: Constraint

    def __post_init__(self) -> None:
        self.constraint.one_query("training")

    def __call__(self, out: StepOutputs) -> Tensor:
        """The semantic loss."""
        assert out.data is not None
        variables = len(self.constraint.domains)
        log_p = _both(out, out.grouped).log_softmax(dim=1)
        groups = log_p.view(-1, variables, log_p.shape[1])
        return -self.constraint.log_prob(groups, normalised=False).mean()  # a log_softmax needs no check at each step


def supervised_term(out: StepOutputs) -> Tensor:
    """Cross-entropy with the labels: the upper bound that the others are held against, never part of a method."""
    assert out.labels is not None
    assert out.data is not None
    logits = _both(out)
    return F.cross_entropy(logits, out.labels.repeat(len(logits) // len(out.labels)))


def _both(out: StepOutputs, rows: int | None = None) -> Tensor:
    """Logits of the data and of the augmented view, one below the other."""
    assert out.data is not None
    return torch.cat([out.data.logits[:rows], out.views["noise"].logits[:rows]])


def perfect_cluster_loss(clusters: int, dimension: int, temperature: float) -> float:
    r"""The cluster term of a perfect clustering: what a restart can reach at best.

    With c balanced clusters that no view ever leaves, the best prototypes form a simplex: cosine 1 to one's
    own and :math:`-1/(c-1)` to the others (where the dimension allows it), so

    .. math:: -\log \frac{e^{1/\tau}}{e^{1/\tau} + (c-1)\, e^{-1/((c-1)\tau)}}

    A run that comes down to this has found clusters that no walk crosses, whatever the data: an absolute
    yardstick that needs no labels.

    Example:
        >>> round(perfect_cluster_loss(2, 8, 0.5), 4)
        0.0181
    """
    if clusters < 2:
        return 0.0
    other: float = -1 / (clusters - 1) if clusters <= dimension + 1 else 0.0
    rest = math.log(clusters - 1) + other / temperature
    return math.log1p(math.exp(rest - 1 / temperature))
