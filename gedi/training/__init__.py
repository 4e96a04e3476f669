"""Training: what a stage is, what one step does, and the loop around it."""

from gedi.training.loop import Leg, Trainer, TrainerSettings
from gedi.training.stage import Naming, Negatives, Optimiser, Stage, Walk, Weight
from gedi.training.terms import (
    ClusterTerm,
    agreement_term,
    balance_term,
    barlow_term,
    constraint_term,
    contrastive_term,
    denoising_term,
    finer_term,
    generative_term,
    negative_free_term,
    penalty_term,
    perfect_cluster_loss,
    supervised_term,
)

__all__ = [
    "ClusterTerm",
    "Leg",
    "Naming",
    "Negatives",
    "Optimiser",
    "Stage",
    "Trainer",
    "TrainerSettings",
    "Walk",
    "Weight",
    "agreement_term",
    "balance_term",
    "barlow_term",
    "constraint_term",
    "contrastive_term",
    "denoising_term",
    "finer_term",
    "generative_term",
    "negative_free_term",
    "penalty_term",
    "perfect_cluster_loss",
    "supervised_term",
]
