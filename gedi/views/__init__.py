"""Views: other looks at the same data that should get the same symbol."""

from gedi.views.manifold import manifold_walk
from gedi.views.noise import gaussian_noise

__all__ = ["gaussian_noise", "manifold_walk"]
