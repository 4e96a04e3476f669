"""All that training changes, in one object: copied, restored and saved without knowing what is in it."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from gedi.densities.density import Carried
from gedi.moves.move import Proposal
from gedi.nn import Model
from gedi.objectives.objective import Objective
from gedi.processes import Processes
from gedi.training.sharding import like, load_model, load_optimiser, local, scatter, whole
from gedi.training.step import JointPass
from gedi.training.tree import Tree, copied, joined_tree, own_tree, placed


class State:
    """The network, its optimiser, and what density and objectives carry, at one moment of a stage.

    Restarts branch off from a copy, the guard goes back to one, and a checkpoint holds one.

    Args:
        module: the network, as it may be spread over processes.
        optimizer: of its parameters.
        processes: which this one is of.
        device: where everything lives.

    Attributes:
        iteration: steps of the stage that are over.
        density: what the density carries.
        objectives: what each objective carries, by its name.
        average: the running average of the parameters, where the stage has one.
        tail: selection losses of the last tenth of the stage.
    """

    def __init__(
        self, module: JointPass, optimizer: torch.optim.Optimizer, processes: Processes, device: torch.device
    ) -> None:
        self.module, self.optimizer, self.processes, self.device = module, optimizer, processes, device
        self.iteration = 0
        self.density: Carried = None
        self.objectives: dict[str, Carried] = {}
        self.average: list[Tensor] = []
        self.tail: list[Tensor] = []

    @property
    def model(self) -> Model:
        """The network without what processes need around it."""
        return self.module.model

    def copy(self) -> Tree:
        """A copy that later training does not change. Every process must ask."""
        return copied({**self._changing(), "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()})

    def restore(self, tree: Tree) -> None:
        """Go back to a copy, which stays as it is."""
        scatter(self.module)  # a step that was broken off leaves the weights whole
        load_model(self.model, tree["model"])
        load_optimiser(self.optimizer, copied(tree["optimizer"]))
        for name in self._changing():
            setattr(self, name, placed(tree[name], self.device))
        parameters = list(self.model.parameters())
        self.average = [like(x, p) for x, p in zip(self.average, parameters, strict=False)]

    def _changing(self) -> Tree:
        """Everything but the network and the optimiser, which have states of their own."""
        apart = ("module", "optimizer", "processes", "device")
        return {name: value for name, value in vars(self).items() if name not in apart}

    def state_dict(self) -> Tree:
        """For a checkpoint: the same in every process."""
        return joined_tree(self.copy(), self.processes)

    def load_state_dict(self, tree: Tree) -> None:
        """From a checkpoint."""
        self.restore(own_tree(tree, self.processes))

    def begin(self, objectives: dict[str, Carried], *, averaged: bool) -> None:
        """A new stage: objectives carry what they begin with, an average starts where the parameters are."""
        self.objectives, self.tail = placed(objectives, self.device), []
        self.average = [p.detach().clone() for p in self.model.parameters()] if averaged else []

    def update_average(self, decay: float) -> None:
        """One more step enters the average; the first ones count for more."""
        if self.average:
            decay = min(decay, (self.iteration + 1) / (self.iteration + 10))
            torch._foreach_lerp_(self.average, [p.detach() for p in self.model.parameters()], 1 - decay)

    @torch.no_grad()
    def take_average(self) -> None:
        """The average takes the place of the parameters."""
        if self.average:
            for parameter, average in zip(self.model.parameters(), self.average, strict=True):
                parameter.copy_(average)
            self.average = []

    @torch.no_grad()
    def replace_prototypes(self, found: Proposal, terms: Mapping[str, Objective]) -> None:
        """New prototypes, and all that is kept beside them; what terms carry follows."""
        prototypes = self.model.prototypes.weight
        assert isinstance(prototypes, Tensor)
        new, order = found.prototypes, found.permutation
        for moment in self.optimizer.state.get(prototypes, {}).values():
            if moment.shape == prototypes.shape:
                old = whole(moment)
                moment.copy_(like(torch.zeros_like(old) if order is None else old[order], moment))
        for average, parameter in zip(self.average, self.model.parameters(), strict=False):
            if parameter is prototypes:
                average.copy_(like(new if order is None else whole(average)[order], average))
        prototypes.copy_(like(new, prototypes))
        for name, term in terms.items():
            self.objectives[name] = term.moved(self.objectives.get(name), order, found.log_shares)

    def sizes(self) -> dict[str, Tensor]:
        """The size of all that must stay finite, by what it is."""
        moments = [x for state in self.optimizer.state.values() for name, x in state.items() if name != "step"]
        sizes = {
            "weights": size([*self.model.state_dict().values(), *self.average]),
            "gradients' moments": size(moments),
            "what the density carries": size(_tensors(self.density)),
            "what objectives carry": size(_tensors(self.objectives)),
        }
        return {name: total.to(self.device) for name, total in sizes.items()}  # of nothing it is on the CPU

    def is_finite(self) -> bool:
        """Whether every number is, in every process."""
        return bool(self.processes.highest(torch.stack(list(self.sizes().values()))).isfinite().all())


def size(tensors: Iterable[Tensor]) -> Tensor:
    """The sum of norms: finite only if every number is.

    Example:
        >>> size([torch.tensor([3.0, 4.0]), torch.tensor([1.0])])
        tensor(6.)
    """
    floating = [local(x.detach()) for x in tensors if x.is_floating_point()]
    return torch.stack(torch._foreach_norm(floating)).sum() if floating else torch.zeros(())


def _tensors(tree: Tree) -> list[Tensor]:
    if isinstance(tree, dict):
        return [x for value in tree.values() for x in _tensors(value)]
    if isinstance(tree, list | tuple):
        return [x for value in tree for x in _tensors(value)]
    return [tree] if isinstance(tree, Tensor) else []
