"""Objectives: plain functions on plain tensors, each a scalar to minimise."""

from gedi.losses.agreement import agreement, balance
from gedi.losses.barlow import barlow_twins
from gedi.losses.cluster import log_sinkhorn, swapped_prediction
from gedi.losses.contrastive import contrastive
from gedi.losses.denoising import denoising
from gedi.losses.generative import energy_penalty, generative
from gedi.losses.negative_free import negative_free

__all__ = [
    "agreement",
    "balance",
    "barlow_twins",
    "contrastive",
    "denoising",
    "energy_penalty",
    "generative",
    "log_sinkhorn",
    "negative_free",
    "swapped_prediction",
]
