"""The density against the one that the points were drawn from, where that is known."""

from typing import ClassVar

import torch

from gedi.evaluation import density_metrics, score_against_normal
from gedi.measures.measure import Measure, Trained


class Truth(Measure):
    """Divergence, correlation and score, on and around the data."""

    kind: ClassVar[str] = "truth"
    order: ClassVar[int] = 70
    about: ClassVar[dict[str, str]] = {
        "kl": "nats from the true density to the model's",
        "kl_uniform": "the same for a uniform density on the box",
        "density_correlation": "rank correlation of model and true log density, on and around the data",
        "score_cosine": "cosine between model score and true score",
        "far_mass": "share of the model's mass where the truth has next to none",
        "normal_cosine": "|cosine| between score and the rings' normal",
    }

    def applies(self, trained: Trained) -> bool:
        """A density, and the truth."""
        return trained.has_density and not trained.images and trained.data.truth is not None

    def __call__(self, trained: Trained) -> dict[str, float]:
        """See :func:`gedi.evaluation.density_metrics`."""
        truth, test, generator = trained.data.truth, trained.data.test[trained.some], trained.streams["assess"]
        assert truth is not None
        found = density_metrics(trained.energy, truth, test, trained.box.low, trained.box.high, generator)
        if truth.rings:
            noisy = test + 0.5 * truth.noise * torch.randn(test.shape, generator=generator)
            found["normal_cosine"] = score_against_normal(trained.energy, noisy)
        return found
