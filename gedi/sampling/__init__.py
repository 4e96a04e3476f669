"""Samples from an energy: Langevin chains and the buffer that keeps them."""

from gedi.sampling.box import Box
from gedi.sampling.buffer import ReplayBuffer
from gedi.sampling.fresh import fresh_samples
from gedi.sampling.initial import Initial, Normal
from gedi.sampling.langevin import Chain, Langevin, Teleport

__all__ = ["Box", "Chain", "Initial", "Langevin", "Normal", "ReplayBuffer", "Teleport", "fresh_samples"]
