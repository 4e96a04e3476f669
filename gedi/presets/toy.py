"""The toy recipe and the paper's literal settings for it."""

from typing import Any, get_args

from gedi.names import Shape
from gedi.settings import merge

# Points in the plane, scaled so that a data set's extent is a few units.
TOY: dict[str, Any] = {
    "n_init": 4,
    "data": {"name": "moons"},
    "density": {"kind": "energy"},
    "stage1": {
        "iterations": 1500,
        "learning_rate": 1e-2,
        "betas": (0.0, 0.9),
        "average": 0.998,
        "density": {"generative": 0.3, "denoising": 1.0},
    },
    # The density's weights are a tenth of stage 1's, in its ratio: enough to keep it alive beside the clusters.
    "stage2": {
        "iterations": 900,
        "learning_rate": 3e-3,
        "betas": (0.9, 0.999),
        "density": {"generative": 0.03, "denoising": 0.1},
        "terms": {
            "negative_free": {"weight": 2.5e-6},
            "swapped": {"weight": 1.0},
            "swapped_walk": {"kind": "swapped", "look": "walk", "weight": 1.0},
        },
    },
}


def paper_terms(batch_size: int) -> dict[str, Any]:
    """The paper's weights of stage 2."""
    return {
        "negative_free": {"weight": 1 / batch_size},
        "swapped": {"weight": 1000.0},
        "swapped_walk": {"kind": "swapped", "look": "walk", "weight": 500.0},
    }


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
    "density": {
        "kind": "energy",
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
    "parts": {"swapped": {"epsilon_start": 0.05, "epsilon": 0.05}},
    "stage1": {
        "iterations": 7000,
        "batch_size": 400,
        "learning_rate": 1e-3,
        "betas": (0.0, 0.9),
        "warmup": 0,
        "final": 1.0,
        "average": 0.0,
        "density": {"generative": 1.0},
    },
    "stage2": {
        "iterations": 7000,
        "batch_size": 400,
        "learning_rate": 1e-3,
        "betas": (0.9, 0.999),
        "warmup": 0,
        "final": 1.0,
        "density": {"generative": 1.0},
        "terms": paper_terms(400),
    },
}

TOY_PRESETS: dict[str, dict[str, Any]] = {
    "toy": TOY,
    **{name: merge(TOY, {"data": {"name": name}}) for name in get_args(Shape)},
    **{f"{name}-paper": merge(PAPER, {"data": {"name": name}}) for name in ("moons", "circles")},
}
