"""Networks: encoders, heads, and the model that joins them."""

from gedi.nn.codes import Codes, Cube
from gedi.nn.conv import ConvEncoder
from gedi.nn.heads import Classifier, Passthrough, Projector, Prototypes
from gedi.nn.mlp import MLP
from gedi.nn.model import Energy, EnergyHead, Model
from gedi.nn.resnet8 import ResNet8

__all__ = [
    "MLP",
    "Classifier",
    "Codes",
    "ConvEncoder",
    "Cube",
    "Energy",
    "EnergyHead",
    "Model",
    "Passthrough",
    "Projector",
    "Prototypes",
    "ResNet8",
]
