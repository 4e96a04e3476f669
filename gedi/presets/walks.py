"""Images whose clusters hear of the density: walks of noise and denoising inside the augmentation."""

from typing import Any

from gedi.presets.images import DIGITS, MNIST
from gedi.settings import merge

#: The density and its walks, for any of the laptop's image presets; the cluster terms are those of the preset.
_WALKED: dict[str, Any] = {
    "density": {"kind": "denoiser"},
    "walk": {"direction": "denoise", "radius": None, "steps": 2, "composed": True, "refresh": 1},
    "stage1": {
        "iterations": 1000,
        "batch_size": 128,
        "learning_rate": 2e-3,
        "betas": (0.9, 0.999),
        "final": 0.01,
        "density": {"generative": None, "penalty": None, "denoising": 1.0},
    },
}

WALK_PRESETS: dict[str, dict[str, Any]] = {
    "digits-walk": merge(DIGITS, _WALKED),
    "mnist-walk": merge(MNIST, _WALKED),
}
