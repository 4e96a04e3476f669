"""Symbol alignment during training: the constraint names the clusters, and mends them on the way."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from sklearn.cluster import KMeans
from torch import Tensor

from gedi.errors import UserError
from gedi.logic import Constraint, align, decode
from gedi.moves.move import Augment, Move, Proposal
from gedi.nn import Model, Prototypes
from gedi.objectives.objective import Context
from gedi.precision import full_precision
from gedi.settings import Positive, Switch
from gedi.types import Points

_GROUPS = 300  # enough to tell the names; more only cost time
_LOOKS = 4  # augmented looks at each point
_FINER = 4  # clusters for each symbol, where names are decoded from finer ones


class Align(Move):
    """Names the clusters as the constraint says, at the given moments."""

    restarts: Positive = 200  # of the search
    decode: Switch = True  # prototypes may also be drawn anew, from finer clusters

    kind: ClassVar[str] = "align"

    def bind(self, context: Context) -> "Align":
        """Refused where nothing is known."""
        if context.constraint is None:
            raise UserError("alignment names clusters by a constraint, and there is none: see constraint.rule")
        return super().bind(context)

    def propose(
        self, model: Model, points: Points, grouped: int, look: Augment, generator: torch.Generator
    ) -> Proposal:
        """See :func:`align_prototypes`."""
        assert self._context.constraint is not None
        if not isinstance(model.prototypes, Prototypes):
            raise UserError("symbols are aligned by their prototypes: the move align needs model.head=prototypes")
        return align_prototypes(
            model,
            points[:grouped],
            self._context.constraint,
            look,
            generator,
            self.restarts,
            self.decode,
            self._context.answers,
        )


@torch.no_grad()
@full_precision
def align_prototypes(
    model: Model,
    points: Tensor,
    constraint: Constraint,
    augment: Augment,
    generator: torch.Generator,
    restarts: int = 200,
    decoded: bool = True,
    answers: Tensor | None = None,
) -> Proposal:
    """Prototypes under which groups of points satisfy a constraint best.

    Two proposals. The old prototypes, renamed (:func:`gedi.logic.align`): right when the clusters are good and
    only their names are wrong. And the mean embeddings of symbols decoded from four times as many clusters
    (:func:`gedi.logic.decode`): right while the clusters are still mixed, since finer ones are purer. The old
    ones stay unless the constraint's loss drops.
    """
    was_training = model.training
    size = len(constraint.domains)
    groups = len(points) // size
    if groups > _GROUPS:
        chosen = torch.randperm(groups, generator=generator, device=points.device)[:_GROUPS]
        points = points.view(groups, size, *points.shape[1:])[chosen].flatten(0, 1)
        groups = _GROUPS
        answers = None if answers is None else answers[chosen.to(answers.device)]
    answers = None if answers is None else answers.to(points.device)
    model.eval()
    embedding = model.clustered(points).embedding
    looks = 2 * embedding + sum(model.clustered(augment(points, generator)).embedding for _ in range(_LOOKS))
    model.train(was_training)
    looks = F.normalize(looks, dim=1)
    weight = model.prototypes.weight
    temperature = model.prototypes.temperature
    assert isinstance(weight, Tensor)
    assert isinstance(temperature, float)

    def grouped_log_p(prototypes: Tensor) -> Tensor:
        logits: Tensor = embedding @ F.normalize(prototypes, dim=1).t() / temperature
        return logits.log_softmax(dim=1).view(groups, size, -1)

    def loss(prototypes: Tensor) -> float:
        return float(-constraint.log_prob(grouped_log_p(prototypes), normalised=False, answers=answers).mean())

    renamed = align(constraint, grouped_log_p(weight), restarts=restarts, generator=generator, answers=answers)
    proposals: list[tuple[Tensor, Tensor | None]] = [(weight[renamed.permutation], renamed.permutation)]
    clusters = min(_FINER * len(weight), len(points) // 2)
    if decoded and clusters > len(weight):
        seed = int(torch.randint(2**31, (), generator=generator, device=generator.device))
        fine = KMeans(clusters, n_init=3, random_state=seed).fit(looks.cpu().numpy())
        centres = F.normalize(torch.from_numpy(fine.cluster_centers_).to(looks), dim=1)
        memberships = (looks @ centres.t() / temperature).softmax(dim=1).view(groups, size, -1)
        found = max(1, restarts // 2)
        symbols = decode(constraint, memberships, restarts=found, generator=generator, answers=answers)
        means = symbols.reshape(len(points), -1).t() @ looks  # (c, d)
        proposals.append((F.normalize(means, dim=1), None))
    before = loss(weight)
    scored = [(loss(prototypes), i) for i, (prototypes, _) in enumerate(proposals)]
    after, best = min(scored)
    return Proposal("constraint", *proposals[best], before, after)
