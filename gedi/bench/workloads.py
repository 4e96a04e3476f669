"""Trainings that have begun, so that one more step of them can be timed.

Random points stand in for data sets: the cost is the same and no files are needed.
"""

from dataclasses import dataclass

import torch

from gedi.config import Config, override, parse
from gedi.data import Dataset, Pixels, StoredImages
from gedi.densities.energy import EnergyDensity
from gedi.fitting import Prepared, prepare
from gedi.presets import preset
from gedi.training import Leg

_NEVER_ENDS = 1_000_000  # iterations: the stage is never left, and nothing is logged


@dataclass(frozen=True)
class Workload:
    """A training in one of its stages: allocations are made, and walks that are made once a stage too."""

    prepared: Prepared
    leg: Leg

    def step(self) -> None:
        """One more training step."""
        self.prepared.trainer.step(self.leg)


def energy_settings(config: Config) -> EnergyDensity:
    """The settings of a config's density, which must be an energy."""
    assert isinstance(config.density, EnergyDensity)
    return config.density


def toy(stage: str, *settings: str) -> Workload:
    """The recipe for points in the plane, on circles.

    Example:
        >>> toy("stage1", "data.n_train=200").leg.stage.name
        'stage1'
    """
    return _begun("circles", stage, settings)


def table(dimensions: int, *settings: str) -> Workload:
    """The same recipe, stage 2, on a table of random numbers with a given number of columns."""
    points = torch.randn(1000, dimensions, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(len(points)) % 2
    data = Dataset("random", points, points[:100], labels, labels[:100])
    return _begun("toy", "stage2", settings, data)


def images(width: int, *settings: str) -> Workload:
    """The preset ``cifar10-paper``, stage 2, with ``width`` as its F.

    20 Langevin moves and 10 walk moves of 64 images, then data, two views, walk and samples forward and backward.
    """
    g = torch.Generator().manual_seed(0)
    stored = StoredImages(
        torch.randint(0, 256, (512, 3, 32, 32), generator=g, dtype=torch.uint8), Pixels(mean=0.48, std=0.25)
    )
    labels = torch.arange(len(stored)) % 10
    narrow = (f"model.width={width}", f"model.projector={2 * width}", f"model.embedding={width}", "density.buffer=512")
    return _begun("cifar10-paper", "stage2", (*narrow, *settings), Dataset("random", stored, stored, labels, labels))


def addition(*settings: str) -> Workload:
    """The preset ``addition-100``: 60 triplets of images in two views, and the rule of their sum; without its walks."""
    x = torch.rand(300, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(len(x)) % 10
    data = Dataset("random", x, x[:20], labels, labels[:20], group_size=3, groups=100)
    return _begun("addition-100", "stage2", ("walk.composed=false", *settings), data)


def _begun(name: str, stage: str, settings: tuple[str, ...], data: Dataset | None = None) -> Workload:
    given = preset(name)
    earlier = ["stage1.iterations=0"] if stage == "stage2" and "stage1" in given else []
    changes = ["n_init=1", f"log_every={_NEVER_ENDS}", f"{stage}.iterations={_NEVER_ENDS}", *earlier, *settings]
    prepared = prepare(parse(override(given, changes)), data=data)
    trainer = prepared.trainer
    trainer.fit(stop_after=1)
    return Workload(prepared, trainer.course.leg)
