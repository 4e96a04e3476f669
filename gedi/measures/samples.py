"""Samples of the density against test points: what would catch a fake; no labels."""

from typing import ClassVar

import torch

from gedi.evaluation import energy_distance_test, mmd_test, nearest_neighbour_shares, nearest_neighbour_test
from gedi.measures.measure import Measure, Trained


class Samples(Measure):
    """Two-sample tests, and how far points spread evenly over the box are."""

    kind: ClassVar[str] = "samples"
    order: ClassVar[int] = 60
    about: ClassVar[dict[str, str]] = {
        "energy_gap": "energy of the model's samples less that of test data; near 0 when they are alike",
        "sample_mmd2": "samples against test data, maximum mean discrepancy",
        "sample_mmd2_null95": "what that figure stays under in 95 % of cases when both sets are alike",
        "sample_1nn": "share of points whose nearest neighbour is of their own kind; 0.5: not to be told apart",
        "told_apart": "the same share of samples or of test data, whichever is greater",
        "sample_distance": "energy distance of samples and test data, over the distances of their points; 0: alike",
        "sample_distance_null99": "what that figure stays under in 99 % of cases when both sets are alike",
        "even_distance": "sample_distance for points spread evenly over the box: what no density at all would reach",
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
        distance = energy_distance_test(samples, test, trained.streams["distance"])
        even = trained.box.sample(len(samples), trained.streams["even"])
        return found | {
            "sample_mmd2": mmd["mmd2"],
            "sample_mmd2_null95": mmd["null_95"],
            "sample_1nn": nearest_neighbour_test(samples, test),
            "told_apart": max(nearest_neighbour_shares(samples, test)),
            "sample_distance": distance["distance"],
            "sample_distance_null99": distance["null_99"],
            "even_distance": energy_distance_test(even, test, trained.streams["even"], 1)["distance"],
        }
