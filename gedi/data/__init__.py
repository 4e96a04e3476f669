"""Data sets: drawn from known densities, or read from files."""

from gedi.data.arrays import load_arrays
from gedi.data.dataset import Dataset
from gedi.data.toy import SHAPES, NoisyCurve, draw_toy

__all__ = ["SHAPES", "Dataset", "NoisyCurve", "draw_toy", "load_arrays"]
