"""Every figure of a trained model that a run reports, and the points behind them for its pictures."""

from typing import Any

from torch import Tensor

from gedi.data import is_sharded, spread
from gedi.measures.measure import CHAINS, SAMPLES, Measure, Trained, chosen
from gedi.parts import kinds

SHOWN = 600  # test images kept beside the model


def measures() -> list[Measure]:
    """All there are, in their order."""
    return sorted((kind() for kind in kinds("gedi.measures", Measure).values()), key=lambda measure: measure.order)


def explanations() -> dict[str, str]:
    """What each figure says, by its name."""
    return {name: said for measure in measures() for name, said in measure.about.items()}


def measured(trained: Trained) -> dict[str, Any]:
    """Every figure that there is something to measure by."""
    found: dict[str, Any] = {}
    for measure in measures():
        if measure.applies(trained):
            found |= measure(trained)
    return found


def kept_points(trained: Trained) -> dict[str, Tensor]:
    """Clusters of the test points, samples, and some of the points themselves: a report needs no data files."""
    test, labels, predicted = trained.data.test, trained.data.test_labels, trained.predicted
    points = {"predicted": predicted}
    shown: Tensor | slice | None = None
    if trained.images:
        # the first ones; of shards, which may be sorted, some from everywhere
        shown = spread(len(test), SHOWN) if is_sharded(test) else slice(SHOWN)
        points["images"] = test[shown].clone()
    elif test.shape[1] == 2:
        shown = chosen(test, SAMPLES, trained.streams["shown"])
        points["test"] = test[shown].clone()
    elif not is_sharded(test):
        shown = chosen(test, SAMPLES, trained.streams["shown"])
        points["rows"] = test[shown].clone()
    if shown is not None:
        points["shown"] = predicted[shown].clone()
        if labels is not None:
            points["shown_labels"] = labels[shown].clone()
    if trained.has_graph:
        points["gaps"] = trained.spectrum.gaps.clone()
    if trained.has_density:
        points["samples"] = trained.samples
        if trained.images and trained.chains is not None:
            points["chains"] = trained.chains[:CHAINS].clone()
    return points
