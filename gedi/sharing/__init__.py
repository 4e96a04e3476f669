"""Models that leave the machine: folders with a card, a hub, and ONNX."""

from gedi.sharing.card import write_card
from gedi.sharing.folder import load_estimator, save_estimator
from gedi.sharing.hub import pull, push
from gedi.sharing.onnx_export import export_onnx

__all__ = ["export_onnx", "load_estimator", "pull", "push", "save_estimator", "write_card"]
