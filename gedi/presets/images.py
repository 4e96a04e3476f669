"""Images: the paper's data sets and MNIST, at the paper's settings and at a laptop's."""

from typing import Any

from gedi.config import merge

# ---------------------------------------------------------------------------------------------------------------------
# The laptop recipe for digits and clothes: docs/decisions/0011-images.md
_NO_TOY_TERMS = {"generative": 0.0, "denoising": 0.0, "negative_free": 0.0, "cluster_noise": 0.0, "cluster_walk": 0.0}
MNIST: dict[str, Any] = {
    "n_init": 1,
    "log_every": 20,
    "data": {"name": "mnist", "mean": 0.5, "std": 0.5},
    "model": {
        "encoder": "conv",
        "width": 16,
        "latent": 64,
        "projector": 128,
        "normalise_latent": True,
        "embedding": 64,
        "clusters": 10,
        "finer": 50,
        "temperature": 0.1,
        "second_encoder": True,
    },
    "sampling": {
        "chains": 32,
        "steps": 10,
        "step_size": 1.0,
        "noise": 0.01,
        "metropolis": False,
        "teleports": 0,
        "reinit": 0.05,
        "buffer": 1000,
        "margin": 0.2,
        "data_noise": 0.03,
    },
    "walk": {"energy": "stage1", "refresh": 1, "steps": 10, "radius": 0.5, "direction": "constant", "corrector": 0.0},
    "augment": {"rotation": 15.0, "shear": 0.3, "scale": 0.2, "shift": 2.0, "both": True},
    "cluster": {"view_noise": 0.2, "epsilon_start": 0.05, "epsilon": 0.05, "start": 0.4, "merge": (0.4,)},
    "stage1": {
        "iterations": 600,
        "batch_size": 32,
        "learning_rate": 1e-3,
        "betas": (0.0, 0.999),
        "final": 0.1,
        "average": 0.995,
        "weights": {**_NO_TOY_TERMS, "generative": 1.0, "penalty": 0.003},
    },
    "stage2": {
        "iterations": 1600,
        "batch_size": 128,
        "learning_rate": 2e-3,
        "betas": (0.9, 0.999),
        "final": 0.0,
        "weights": {**_NO_TOY_TERMS, "agreement": 1.0, "balance": 4.0, "finer": 1.0},
    },
}

IMAGE_PRESETS: dict[str, dict[str, Any]] = {
    "mnist": MNIST,
    "fashion-mnist": merge(MNIST, {"data": {"name": "fashion-mnist"}}),
}
