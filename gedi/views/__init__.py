"""Views: other looks at the same data that should get the same symbol."""

from gedi.views.denoise import denoise_walk, noise_as_long
from gedi.views.image import CropAndColour
from gedi.views.latent import latent_walk
from gedi.views.manifold import manifold_walk
from gedi.views.noise import gaussian_noise
from gedi.views.warp import Warp

__all__ = ["CropAndColour", "Warp", "denoise_walk", "gaussian_noise", "latent_walk", "manifold_walk", "noise_as_long"]
