"""Images with an energy beside the clusters: Langevin chains, an encoder of its own, no walks."""

from typing import Any

from gedi.presets.images import LAPTOP
from gedi.settings import merge

# It gives an energy in one pass and chains that persist; what the clusters gain by a density they gain by the default
# recipes. Why each part: docs/decisions/0011-images.md.
_ENERGY: dict[str, Any] = {
    "density": {
        "kind": "energy",
        "own_encoder": True,  # on one encoder the density and the clusters spoil each other
        "chains": 32,
        "steps": 10,
        "step_size": 1.0,
        "noise": 0.01,
        "metropolis": False,
        "teleports": 0,
        "reinit": 0.05,
        "buffer": 1000,  # so few that each chain is moved often
        "margin": 0.2,
        "data_noise": 0.03,
    },
    "walk": {
        "steps": 10,
        "radius": 0.5,
        "direction": "constant",
        "corrector": 0.0,
        "composed": False,
        "refresh": 200,
    },
    "stage1": {
        "iterations": 800,
        "batch_size": 32,
        "learning_rate": 1e-3,
        "betas": (0.0, 0.999),
        "final": 0.1,
        "average": 0.995,
        "density": {"denoising": None, "generative": 1.0, "penalty": 0.003},
    },
    "stage2": {"iterations": 2000, "average": 0.0},
}

_SHORTER: dict[str, dict[str, Any]] = {
    "digits": {"stage1": {"iterations": 400}, "stage2": {"iterations": 800}},
    **{name: {"stage2": {"iterations": 1500}} for name in ("cifar10", "cifar100", "svhn")},
}

ENERGY_PRESETS: dict[str, dict[str, Any]] = {
    f"{name}-energy": merge(merge(settings, _ENERGY), _SHORTER.get(name, {})) for name, settings in LAPTOP.items()
}
