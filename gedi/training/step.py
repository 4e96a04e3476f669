"""The one pass of a training step: what goes in, and every term that comes out."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from gedi.densities.density import Carried, Draw
from gedi.nn import Model
from gedi.objectives.objective import Seen
from gedi.processes import Processes
from gedi.random import Streams
from gedi.training.stage import Stage

#: Effective number of clusters in use; see :mod:`gedi.training.guard`.
CLUSTERS = "clusters in use"
_CLUSTERS_FORM = 0.25  # no look at the clusters before this share of the stage


class Batch(NamedTuple):
    """The inputs of one step; with several processes, one's own part of them, but the labels are all of them.

    Attributes:
        anchor: the data as the looks are held against them.
        looks: other looks at the same data, those that a term needs.
        draw: what the density wants to see.
        progress: share of the stage that is over.
        grouped: how many rows, from the first on, come in groups.
        labels: only the supervised upper bound looks.
        proposed: the cluster proposed for each row, of all processes like the labels.
        answers: what was observed of each group, of all processes too.
        few: labels of the last rows, where some points have one.
    """

    anchor: Tensor
    looks: dict[str, Tensor]
    draw: Draw
    progress: float
    grouped: int = 0
    labels: Tensor | None = None
    proposed: Tensor | None = None
    answers: Tensor | None = None
    few: Tensor | None = None


class Result(NamedTuple):
    """What one pass gives: the value of each term, figures for the guard, and what objectives carry on."""

    terms: dict[str, Tensor]
    figures: dict[str, Tensor]
    carried: dict[str, Carried]


class JointPass(nn.Module):
    """Every forward pass of a step and the terms made of it, in one call.

    A wrapper for several processes then sees all of the step, and only the terms leave it. Each process encodes its
    own part of the batch; heads and terms see the latents of all, so that batch norm, Sinkhorn and covariances are
    those of the whole batch.
    """

    def __init__(self, model: Model, processes: Processes | None = None) -> None:
        super().__init__()
        self.model = model
        self.processes = processes or Processes()

    def forward(self, batch: Batch, stage: Callable[[], tuple[Stage, dict[str, Carried]]], watching: bool) -> Any:
        """The terms of a stage; a function hands it over, since Fabric takes apart what it is given otherwise.

        Args:
            batch: the inputs.
            stage: gives the stage, and what its objectives carry.
            watching: whether the guard looks at this step.
        """
        now, carried = stage()
        clustered = [batch.anchor, *batch.looks.values()] if now.terms else []
        latents = self._encoded(batch, [*clustered, *batch.draw.encoded])
        terms, figures = now.density.values(
            self.model,
            batch.draw,
            latents[len(clustered) :],
            now.density_at(batch.progress),
            lambda function, parts: self._everywhere(batch, function, parts),
            watching,
        )
        outputs = self.model.heads(latents[: len(clustered)])
        if outputs:
            seen = Seen(
                outputs[0],
                dict(zip(batch.looks, outputs[1:], strict=True)),
                batch.progress,
                batch.grouped * self.processes.size,
                batch.labels,
                batch.proposed,
                batch.answers,
                batch.few,
            )
            terms |= {name: term(seen, carried.get(name)) for name, term in now.terms.items()}
            with torch.no_grad():
                carried = {name: term.after(seen, carried.get(name)) for name, term in now.terms.items()}
                if watching and batch.progress >= _CLUSTERS_FORM and now.shares_out(batch.progress):
                    shares = seen.data.logits.softmax(dim=1).mean(dim=0)
                    figures = {**figures, CLUSTERS: torch.special.entr(shares).sum().exp()}
        return Result(terms, figures, carried)

    def _encoded(self, batch: Batch, parts: list[Tensor]) -> list[Tensor]:
        """The latents of every part in one pass; a tensor that stands for several parts goes through once."""
        once = list({id(part): part for part in parts}.values())
        latents = dict(zip(map(id, once), self._everywhere(batch, self.model.encoder, once), strict=True))
        return [latents[id(part)] for part in parts]

    def _everywhere(self, batch: Batch, function: Callable[[Tensor], Tensor], parts: list[Tensor]) -> list[Tensor]:
        """A function of several batches, at the cost of one call, with the rows of every process: groups first."""
        if not parts:
            return []
        together = function(parts[0] if len(parts) == 1 else torch.cat(parts))
        return self.processes.joined(together, [len(part) for part in parts], front=batch.grouped)


def make_batch(
    stage: Stage,
    model: Model,
    x: Tensor,
    walked: Tensor | None,
    carried: Carried,
    streams: Streams,
    progress: float,
    grouped: int = 0,
    labels: Tensor | None = None,
    proposed: Tensor | None = None,
    answers: Tensor | None = None,
    few: Tensor | None = None,
) -> tuple[Batch, Carried]:
    """Everything the pass needs, and what the density carries on."""
    looks: dict[str, Tensor] = {}
    anchor = x
    composed = stage.walk is not None and stage.walk.composed
    if "view" in stage.looks:
        assert stage.view is not None
        view = stage.view.at(progress)
        looks["view"] = view(walked if composed and walked is not None else x, streams["view"])
        if view.both:
            anchor = view(x, streams["view"])
    if walked is not None and not composed:
        looks["walk"] = walked
    for name in sorted(look for look in stage.looks if look not in ("view", "walk")):  # further views, on their own
        assert stage.view is not None
        looks[name] = stage.view(x, streams["view"])
    weights = stage.density_at(progress)
    if stage.density.sees_augmented and weights and stage.view is not None:
        x = stage.view.without_noise(x, streams["augmented"])
    draw, carried = stage.density.draw(model, x, anchor, weights, carried, streams)
    return Batch(anchor, looks, draw, progress, grouped, labels, proposed, answers, few), carried
