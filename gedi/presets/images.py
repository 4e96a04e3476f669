"""Images: the paper's data sets and MNIST, at the paper's settings and at a laptop's."""

from typing import Any

from gedi.presets.toy import PAPER, paper_terms
from gedi.settings import merge

# Chosen on seeds below 200; the tables use others. Why each part: docs/decisions/0011-images.md, 0020 and 0022.
MNIST: dict[str, Any] = {
    "n_init": 1,
    "log_every": 20,
    "data": {"name": "mnist", "mean": 0.5, "std": 0.5},  # in [-1, 1]
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
    },
    # the clusters hear of it: walks of noise and denoising inside the augmentation of one view
    "density": {"kind": "denoiser"},
    "walk": {"direction": "denoise", "radius": None, "steps": 2, "composed": True, "refresh": 1},
    "augment": {"rotation": 15.0, "shear": 0.3, "scale": 0.2, "shift": 2.0, "both": True, "noise": 0.2},
    "parts": {
        "swapped": {"epsilon_start": 0.05, "epsilon": 0.05},
        "agreement": {"start": 0.3},  # finer clusters come first
        "balance": {"start": 0.3},
    },
    "stage1": {
        "iterations": 1000,
        "batch_size": 128,
        "learning_rate": 2e-3,
        "betas": (0.9, 0.999),
        "final": 0.01,
        "density": {"denoising": 1.0},
    },
    "stage2": {
        "iterations": 4000,
        "batch_size": 128,
        "learning_rate": 2e-3,
        "betas": (0.9, 0.999),
        "final": 0.0,
        "average": 0.995,
        "terms": {"agreement": {"weight": 1.0}, "balance": {"weight": 4.0}, "finer": {"weight": 1.0}},
        "moves": {"merge": {"moments": (0.3, 0.5, 0.7)}},
    },
}

# 8 x 8 pixels: the same deformations, smaller; 1,297 images.
DIGITS: dict[str, Any] = merge(
    MNIST,
    {
        "data": {"name": "digits"},
        "augment": {"rotation": 10.0, "shear": 0.2, "scale": 0.1, "shift": 0.7},
        "stage2": {"iterations": 800, "average": 0.0},
    },
)

# The paper's encoder, narrower and at half the side, and the augmentations of the field.
CIFAR10: dict[str, Any] = merge(
    MNIST,
    {
        "data": {"name": "cifar10"},
        "model": {"encoder": "resnet8", "width": 32, "stem": 2},
        "density": {"reach": 0.3},  # photographs are far from each other in pixels: half of the way leaves a blur
        "augment": {
            "rotation": 0.0,
            "shear": 0.0,
            "scale": 0.0,
            "shift": 0.0,
            "resized": 0.3,
            "flip": True,
            "jitter": 0.8,
            "grayscale": 0.2,
            "noise": 0.05,
        },
        "stage2": {"iterations": 1500},
    },
)


def _paper(
    name: str,
    *,
    mean: float,
    std: float,
    iterations: int = 70_000,
    width: int = 128,
    clusters: int = 10,
    flip: bool = True,
    noise: float = 0.03,
    **data: int,
) -> dict[str, Any]:
    """A column of the paper's table of hyperparameters, to the letter."""
    stage = {
        "iterations": iterations,
        "batch_size": 64,
        "learning_rate": 1e-4,
        "betas": (0.9, 0.999),
        "warmup": 0,
        "final": 1.0,
        "average": 0.0,
    }
    return {
        "n_init": 1,
        "guard": PAPER["guard"],
        "data": {"name": name, "mean": mean, "std": std, **data},
        "model": {
            "encoder": "resnet8",
            "width": width,
            "projector": 2 * width,
            "embedding": width,
            "clusters": clusters,
            "temperature": 0.1,
        },
        "density": {
            "kind": "energy",
            "chains": 64,
            "steps": 20,
            "step_size": 1.0,
            "noise": 0.01,
            "metropolis": False,
            "teleports": 0,
            "reinit": 0.05,
            "buffer": 10_000,
            "margin": 0.0,
            "clamp": False,
            "data_noise": 0.03,
        },
        "walk": PAPER["walk"],
        "augment": {"crop": 4, "jitter": 0.1, "grayscale": 0.1, "flip": flip, "both": True, "noise": noise},
        "parts": PAPER["parts"],
        "stage1": {**stage, "density": {"generative": 1.0}},
        "stage2": {**stage, "density": {"generative": 1.0}, "terms": paper_terms(64)},
    }


#: The recipes for a laptop, by the names of their data.
LAPTOP: dict[str, dict[str, Any]] = {
    "mnist": MNIST,
    "fashion-mnist": merge(
        MNIST,
        {
            "data": {"name": "fashion-mnist"},
            "augment": {"rotation": 5.0, "flip": True, "light": 0.7},  # else coats are told by how dark they are
        },
    ),
    "digits": DIGITS,
    "cifar10": CIFAR10,
    "cifar100": merge(CIFAR10, {"data": {"name": "cifar100"}, "model": {"clusters": 100, "finer": 300}}),
    "svhn": merge(CIFAR10, {"data": {"name": "svhn"}, "augment": {"flip": False}}),  # digits do not mirror
}
IMAGE_PRESETS: dict[str, dict[str, Any]] = {
    **LAPTOP,
    "svhn-paper": _paper("svhn", mean=0.45, std=0.19, iterations=100_000, flip=False),
    "cifar10-paper": _paper("cifar10", mean=0.48, std=0.25),
    "cifar100-paper": _paper("cifar100", mean=0.48, std=0.27, width=256, clusters=100),
    # Not in the paper by themselves: its other columns, with the noise and the scale of its column "Addition".
    "mnist-paper": _paper("mnist", mean=0.1, std=0.28, flip=False, noise=0.3, pad=2, channels=3),
    "fashion-mnist-paper": _paper("fashion-mnist", mean=0.1, std=0.28, noise=0.3, pad=2, channels=3),
}
