"""The recipe for tables of any width: a cut of the points' graph is proposed, and refined by walks along it."""

from typing import Any

TABLE: dict[str, Any] = {
    "n_init": 1,
    "data": {"name": "moons", "columns": "auto"},  # your own: data.name=file, data.path=...
    # hidden: the first layer's waves, with the raw columns beside them, then two layers
    "model": {
        "hidden": (128, 128, 128),
        "latent": 32,
        "raw": True,
        "sharpness": 0.5,  # over the distance of near points, as all lengths here
        "projector": 32,
        "embedding": 32,
        "normalise_latent": True,
        "temperature": 0.1,
    },
    "density": {"kind": "kernel"},
    "walk": {"energy": "graph"},
    "augment": {"noise": 0.5, "both": True},
    "parts": {"swapped": {"epsilon_start": 0.1, "epsilon": 0.05}},  # of method swav: below the temperature
    "stage1": {
        "iterations": 800,
        "batch_size": 256,
        "learning_rate": 3e-3,
        "betas": (0.9, 0.999),
        "terms": {
            "agreement": {"look": "walk", "weight": 1.0},
            "balance": {"weight": 4.0},
            "proposed": {"weight": 1.0, "until": 0.4},
        },
    },
}

TABLE_PRESETS: dict[str, dict[str, Any]] = {"table": TABLE}
