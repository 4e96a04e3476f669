"""The toy recipe and the paper's literal settings for it."""

from typing import Any, get_args

from gedi.config import Shape, merge

# The paper's appendix, to the letter. Its text says 7k iterations; it gives no radius for the toy data, so the
# radius of its image table stands in. Sampling at step 1 and noise 0.01 is temperature 5e-5.
PAPER: dict[str, Any] = {
    "n_init": 1,
    "guard": {"attempts": 0},  # what diverges is shown to diverge
    "model": {
        "hidden": (100, 100),
        "latent": 2,
        "activation": "leaky_relu",
        "first": "leaky_relu",
        "sharpness": None,
        "projector": 4,
        "embedding": 2,
        "temperature": 0.1,
    },
    "sampling": {
        "chains": 400,
        "steps": 1,
        "step_size": 1.0,
        "noise": 0.01,
        "metropolis": False,
        "teleports": 0,
        "reinit": 0.05,
        "clamp": False,
    },
    "walk": {
        "energy": "live",
        "steps": 10,
        "radius": 0.03,
        "direction": "constant",
        "corrector": 0.0,
        "refresh": 1,
    },
    "cluster": {"view_noise": 0.03, "epsilon_start": 0.05, "epsilon": 0.05},
    "stage1": {
        "iterations": 7000,
        "batch_size": 400,
        "learning_rate": 1e-3,
        "betas": (0.0, 0.9),
        "warmup": 0,
        "final": 1.0,
        "average": 0.0,
        "weights": {"generative": 1.0, "denoising": 0.0},
    },
    "stage2": {
        "iterations": 7000,
        "batch_size": 400,
        "learning_rate": 1e-3,
        "betas": (0.9, 0.999),
        "warmup": 0,
        "final": 1.0,
        "weights": {
            "generative": 1.0,
            "denoising": 0.0,
            "negative_free": 1 / 400,
            "cluster_noise": 1000.0,
            "cluster_walk": 500.0,
        },
    },
}

TOY_PRESETS: dict[str, dict[str, Any]] = {
    "toy": {},  # the defaults of the config are the recipe
    **{name: {"data": {"name": name}} for name in get_args(Shape)},
    **{f"{name}-paper": merge(PAPER, {"data": {"name": name}}) for name in ("moons", "circles")},
}
