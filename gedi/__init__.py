"""Learn symbols from raw data without labels: clustering, density and logic in one network."""

from gedi import logic, losses, nn, sampling, views

__version__ = "0.1.0"
__all__ = ["logic", "losses", "nn", "sampling", "views"]
