"""Networks: encoders, heads, and the model that joins them."""

from gedi.nn.heads import Projector, Prototypes
from gedi.nn.mlp import MLP
from gedi.nn.model import Energy, Model

__all__ = ["MLP", "Energy", "Model", "Projector", "Prototypes"]
