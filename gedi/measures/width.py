"""How much noise walks take, where the density chooses it; no labels."""

from typing import ClassVar

from gedi.measures.measure import Measure, Trained


class WalkWidth(Measure):
    """The choice of :meth:`gedi.densities.density.Density.settle`."""

    kind: ClassVar[str] = "width"
    order: ClassVar[int] = 110
    about: ClassVar[dict[str, str]] = {
        "walk_width": "width of the noise in walks of noise and denoising, as the density chose it; no labels",
    }

    def applies(self, trained: Trained) -> bool:
        """A density that chooses it, asked to."""
        return trained.has_density and trained.density.chooses_width and trained.config.walk.radius is None

    def __call__(self, trained: Trained) -> dict[str, float]:
        """As it is kept with the weights."""
        return {"walk_width": float(getattr(trained.energy, "walk_width"))}  # noqa: B009
