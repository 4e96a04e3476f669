"""Networks: encoders, heads, and the model that joins them."""

from gedi.nn.conv import ConvEncoder
from gedi.nn.heads import Classifier, Passthrough, Projector, Prototypes
from gedi.nn.mlp import MLP
from gedi.nn.model import Energy, EnergyHead, Model
from gedi.nn.resnet8 import ResNet8

__all__ = [
    "MLP",
    "Classifier",
    "ConvEncoder",
    "Energy",
    "EnergyHead",
    "Model",
    "Passthrough",
    "Projector",
    "Prototypes",
    "ResNet8",
]
