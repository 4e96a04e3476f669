"""No density: clusters and rules alone."""

from typing import ClassVar

from gedi.densities.density import Density


class NoDensity(Density):
    """Nothing is built, moved or kept."""

    kind: ClassVar[str] = "none"
