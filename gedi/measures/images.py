"""Energies of images that the density gives, against those of test images."""

from typing import ClassVar

import torch

from gedi.measures.measure import Measure, Trained


class ImageEnergies(Measure):
    """Of chains of training, and of chains that began anew."""

    kind: ClassVar[str] = "images"
    order: ClassVar[int] = 50
    about: ClassVar[dict[str, str]] = {
        "energy_gap": "energy of the model's samples less that of a thousand test points; near 0 when they are alike",
        "fresh_energy_gap": "the same for chains that began at noise",
    }

    def applies(self, trained: Trained) -> bool:
        """A density on images."""
        return trained.images and trained.has_density

    @torch.no_grad()
    def __call__(self, trained: Trained) -> dict[str, float]:
        """Differences of mean energies."""
        fresh, energy = trained.samples, trained.energy
        test = energy(trained.data.test[trained.some]).mean()
        found = {"fresh_energy_gap": float(energy(fresh).mean() - test)}
        if trained.chains is not None:
            found["energy_gap"] = float(energy(trained.chains).mean() - test)
        return found
