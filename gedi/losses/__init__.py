"""Objectives: plain functions on plain tensors, each a scalar to minimise."""

from gedi.losses.agreement import agreement, balance
from gedi.losses.barlow import barlow_twins
from gedi.losses.cluster import log_sinkhorn, swapped_prediction
from gedi.losses.contrastive import contrastive
from gedi.losses.cor_info_max import cor_info_max
from gedi.losses.cpc import cpc
from gedi.losses.deep_cluster import deep_cluster
from gedi.losses.denoising import denoising
from gedi.losses.generative import energy_penalty, generative
from gedi.losses.k_shot import k_shot
from gedi.losses.mec import mec
from gedi.losses.negative_free import negative_free
from gedi.losses.nt_xent import nt_xent
from gedi.losses.proto_cpc import proto_cpc
from gedi.losses.vicreg import vicreg
from gedi.losses.w_mse import w_mse

__all__ = [
    "agreement",
    "balance",
    "barlow_twins",
    "contrastive",
    "cor_info_max",
    "cpc",
    "deep_cluster",
    "denoising",
    "energy_penalty",
    "generative",
    "k_shot",
    "log_sinkhorn",
    "mec",
    "negative_free",
    "nt_xent",
    "proto_cpc",
    "swapped_prediction",
    "vicreg",
    "w_mse",
]
