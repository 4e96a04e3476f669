"""Walks of the training points: made when they are due, and kept."""

from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

from gedi.data import chunks
from gedi.densities.density import Density
from gedi.nn import Model
from gedi.processes import Processes
from gedi.random import Streams
from gedi.training.sharding import gathered
from gedi.training.stage import Stage, Walk, radial_energy
from gedi.training.step import JointPass
from gedi.types import EnergyFn, Points

_WALKED = 20_000  # points walked at a time: more would only take memory


class Walks:
    """Where walks from the training points end.

    Args:
        train: the points, (n, *shape).
        density: whose energy is walked on.
        module: the network, as it may be spread over processes.
        processes: which this one is of; each walks its share.
        fabric: for the device.
    """

    def __init__(
        self, train: Points, density: Density, module: JointPass, processes: Processes, fabric: Fabric
    ) -> None:
        self.train, self.density = train, density
        self.module, self.processes, self.fabric = module, processes, fabric
        self.frozen: Model | None = None  # whose energy is walked on; None walks on the live one
        self.ends: Tensor | None = None  # (n, *shape)

    def begin(self, stage: Stage) -> None:
        """A new stage: nothing is walked yet, and the energy of this moment may be kept."""
        if stage.walk is not None and stage.walk.frozen:
            with gathered(self.module):
                self._settle(stage.walk)
        self.frozen = self._freeze() if stage.walk is not None and stage.walk.frozen else None
        self.ends = None

    def forget(self, stage: Stage) -> None:
        """Walks by an energy that is no more are made again."""
        if stage.walk is not None and stage.walk.refresh:
            self.ends = None

    def of(
        self, stage: Stage, iteration: int, own: Tensor, x: Tensor, streams: Streams, *, visits_once: bool = False
    ) -> Tensor | None:
        """The ends for the points ``x`` with numbers ``own``; None where the stage does not walk.

        Args:
            stage: says how to walk.
            iteration: of the stage.
            own: numbers of the points.
            x: the points.
            streams: of this process.
            visits_once: whether no point comes twice in the stage.
        """
        walk = stage.walk
        if walk is None:
            return None
        first = walk.first(stage.iterations)
        if iteration < first:
            return x
        if iteration == first and not walk.frozen:
            self._settle(walk)
        if walk.graph is not None:
            ends = self.train[walk.graph.walk(own.cpu(), walk.steps, streams["walk"]).to(own.device)]
            return ends if walk.composed or stage.view is None else stage.view(ends, streams["walk"])
        # of many points each comes once at most, and most never: then each is walked when its turn comes
        if walk.every_step or visits_once:
            return self._walked(stage, x, streams["walk"])
        if self.ends is None or (walk.refresh and iteration % walk.refresh == 0):
            share = self.train[self.processes.rank :: self.processes.size]
            ends = torch.cat([self._walked(stage, part, streams["walk"]) for part in chunks(share, _WALKED)])
            self.ends = self.processes.whole(ends, len(self.train))
        return self.ends[own]

    def state_dict(self) -> dict[str, Any]:
        """The energy walked on and the ends."""
        return {"frozen": None if self.frozen is None else self.frozen.state_dict(), "ends": self.ends}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with them."""
        self.frozen = None
        if state["frozen"] is not None:
            self.frozen = self._freeze()
            self.frozen.load_state_dict(state["frozen"])
        self.ends = None if state["ends"] is None else self.fabric.to_device(state["ends"])

    def _settle(self, walk: Walk) -> None:
        """The width is chosen by the density as it is when walks begin, which may learn until then."""
        if walk.radius is None:
            self.density.settle(self.module.model, self.train)

    def _freeze(self) -> Model:
        with gathered(self.module):
            return self.density.frozen(self.module.model)

    def _walked(self, stage: Stage, x: Tensor, generator: torch.Generator) -> Tensor:
        """The ends for points, some of which may stay where they are."""
        assert stage.walk is not None
        if stage.walk.share == 1:
            return stage.walk(self._energy(stage), x, generator)
        order = torch.randperm(len(x), generator=generator, device=generator.device).to(x.device)
        chosen, ends = order[: round(stage.walk.share * len(x))], x.clone()
        if len(chosen):
            ends[chosen] = stage.walk(self._energy(stage), x[chosen], generator)
        return ends

    def _energy(self, stage: Stage) -> EnergyFn:
        assert stage.walk is not None
        if stage.walk.energy == "radial":
            return radial_energy
        return self.density.energy(self.module.model if self.frozen is None else self.frozen)
