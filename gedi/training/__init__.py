"""Training: what a stage is, what one step does, and the loop around it."""

from gedi.training.course import Course, Leg
from gedi.training.guard import GuardSettings
from gedi.training.loop import Trainer, TrainerSettings
from gedi.training.stage import Optimiser, Stage, View, Walk

__all__ = ["Course", "GuardSettings", "Leg", "Optimiser", "Stage", "Trainer", "TrainerSettings", "View", "Walk"]
