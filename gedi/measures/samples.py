"""Samples of the density against test points: what would catch a fake; no labels."""

from typing import ClassVar

import torch

from gedi.evaluation import mmd_test, nearest_neighbour_test
from gedi.measures.measure import Measure, Trained


class Samples(Measure):
    """Two-sample tests, and what they would say of points spread evenly over the box."""

    kind: ClassVar[str] = "samples"
    order: ClassVar[int] = 60
    about: ClassVar[dict[str, str]] = {
        "energy_gap": "energy of the model's samples less that of test data; near 0 when they are alike",
        "sample_mmd2": "samples against test data, maximum mean discrepancy",
        "sample_mmd2_null95": "what that figure stays under in 95 % of cases when both sets are alike",
        "sample_1nn": "share of points whose nearest neighbour is of their own kind; 0.5: not to be told apart",
        "even_1nn": "sample_1nn for points spread evenly over the box: what the test would say of no density at all",
    }

    def applies(self, trained: Trained) -> bool:
        """A density on rows of a table."""
        return trained.has_density and not trained.images

    def __call__(self, trained: Trained) -> dict[str, float]:
        """See :mod:`gedi.evaluation.twosample`."""
        samples, test, energy = trained.samples, trained.data.test[trained.some], trained.energy
        with torch.no_grad():
            found = {"energy_gap": float(energy(samples).mean() - energy(test).mean())}
        if len(test) < 2:  # one point has no neighbour of its own kind
            return found
        mmd = mmd_test(samples, test, trained.streams["assess"])
        even = trained.box.sample(len(samples), trained.streams["even"])
        return found | {
            "sample_mmd2": mmd["mmd2"],
            "sample_mmd2_null95": mmd["null_95"],
            "sample_1nn": nearest_neighbour_test(samples, test),
            "even_1nn": nearest_neighbour_test(even, test),
        }
