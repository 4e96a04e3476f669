"""How much noise walks take, where the density chooses it, and how far they get by it; no labels."""

from typing import ClassVar

import torch

from gedi.data import scales_of
from gedi.measures.measure import Measure, Trained

_WALKED = 500  # test points, that tell how far walks go


class WalkWidth(Measure):
    """The choice of :meth:`gedi.densities.density.Density.settle`, and what came of it."""

    kind: ClassVar[str] = "width"
    order: ClassVar[int] = 110
    about: ClassVar[dict[str, str]] = {
        "walk_width": "width of the noise in walks of noise and denoising, as the density chose it; no labels",
        "walk_steps": "steps of a walk, as it was set",
        "walk_reach": "how far a walk gets in them, in distances to the nearest neighbour, root mean square; no labels",
    }

    def applies(self, trained: Trained) -> bool:
        """A density that chooses it, asked to."""
        return trained.has_density and trained.density.chooses_width and trained.config.walk.radius is None

    @torch.no_grad()
    def __call__(self, trained: Trained) -> dict[str, float]:
        """The width as it is kept with the weights; the way by walks from test points."""
        x = trained.data.test[trained.some[:_WALKED]]
        ends = trained.walk(trained.energy, x, trained.streams["measured walks"])
        way = float((ends - x).square().mean().sqrt()) / scales_of(trained.data.train).near
        width = float(getattr(trained.energy, "walk_width"))  # noqa: B009
        return {"walk_width": width, "walk_steps": trained.config.walk.steps, "walk_reach": way}
