"""Training: what a stage is, what one step does, and the loop around it."""

from gedi.training.loop import Leg, Trainer, TrainerSettings
from gedi.training.stage import Negatives, Optimiser, Stage, Walk
from gedi.training.terms import (
    ClusterTerm,
    denoising_term,
    generative_term,
    negative_free_term,
    penalty_term,
    perfect_cluster_loss,
)

__all__ = [
    "ClusterTerm",
    "Leg",
    "Negatives",
    "Optimiser",
    "Stage",
    "Trainer",
    "TrainerSettings",
    "Walk",
    "denoising_term",
    "generative_term",
    "negative_free_term",
    "penalty_term",
    "perfect_cluster_loss",
]
