"""Every figure of a trained model, from the rooms that compute them."""

from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from gedi.config import Config
from gedi.data import Dataset
from gedi.evaluation import (
    cluster_entropy,
    clustering_metrics,
    density_metrics,
    effective_rank,
    mmd_test,
    nearest_neighbour_test,
    score_against_normal,
)
from gedi.logic import Constraint
from gedi.methods import has_clusters, has_density, walk_settings
from gedi.nn import Model
from gedi.random import Streams
from gedi.sampling import Box, fresh_samples
from gedi.training.step import walk_from
from gedi.types import EnergyFn, Outputs

SAMPLES = 1000
SHOWN = 600  # test images kept beside the model


def assess(
    model: Model,
    config: Config,
    data: Dataset,
    box: Box,
    streams: Streams,
    constraint: Constraint | None = None,
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Figures on the test set, and the points behind them for the pictures.

    A method without a cluster head says the same of every point; what its latents would give to k-means
    stands beside it as ``nmi_kmeans``.
    """
    model = model.eval()
    out = _outputs(model, data.test)
    clustered = has_clusters(config)
    predicted = out.logits.argmax(dim=1) if clustered else torch.zeros(len(data.test), dtype=torch.long)
    points = {"predicted": predicted}
    if data.test.dim() == 4 and data.test_labels is not None:
        # some of them for the pictures, so that a report needs no data files
        points |= {"images": data.test[:SHOWN].clone(), "shown": predicted[:SHOWN].clone()}
        points["shown_labels"] = data.test_labels[:SHOWN].clone()
    metrics: dict[str, Any] = {}
    if data.test_labels is not None:
        labels = data.test_labels.numpy()
        metrics |= clustering_metrics(labels, predicted.cpu().numpy())
        if data.groups:  # the rule names the symbols, so a wrong name is an error
            metrics["accuracy_matched"] = metrics["accuracy"]
            metrics["accuracy"] = float((predicted.cpu() == data.test_labels).float().mean())
        if not clustered:
            metrics["nmi_kmeans"] = _kmeans_nmi(out.latent, labels)
    else:
        metrics["clusters_used"] = len(torch.unique(predicted))
    if clustered:
        metrics["cluster_entropy"] = cluster_entropy(out.logits)
        metrics["effective_rank"] = effective_rank(out.embedding)
    if constraint is not None:
        metrics |= constraint_metrics(model, constraint, data)
    if has_density(config) and data.test.dim() == 2:
        density, samples = assess_density(model.energy, config, data, box, streams)
        metrics |= density
        points["samples"] = samples
    return metrics, points


def _outputs(model: Model, x: Tensor) -> Outputs:
    """What the network says of many points, a part at a time."""
    with torch.no_grad():
        return Outputs(*map(torch.cat, zip(*(model(part) for part in torch.split(x, 1000)), strict=True)))


def constraint_metrics(model: Model, constraint: Constraint, data: Dataset) -> dict[str, float]:
    """How well the training groups, and groups held out, satisfy the rule. A collapse satisfies it too."""
    figures = {}
    parts = {"": data.grouped.flatten(0, 1)}
    if data.validation is not None:
        parts["validation_"] = data.validation
    for part, points in parts.items():
        logits = _outputs(model, points).logits
        log_p = logits.log_softmax(dim=1).double().view(-1, data.group_size, logits.shape[1])
        named = [
            [domain[k] for domain, k in zip(constraint.domains, group, strict=True)]
            for group in log_p.argmax(dim=2).tolist()
        ]
        figures[f"{part}constraint_loss"] = float(-constraint.log_prob(log_p).mean())
        figures[f"{part}constraint_satisfied"] = float(constraint.is_satisfied(named).float().mean())
    return figures


def assess_density(
    energy: EnergyFn, config: Config, data: Dataset, box: Box, streams: Streams
) -> tuple[dict[str, float], Tensor]:
    """What would catch a fake: samples against data, the truth's density, where walks end."""
    generator = streams["assess"]
    samples = fresh_samples(energy, min(SAMPLES, len(data.test)), box, generator)
    mmd = mmd_test(samples, data.test, generator)
    with torch.no_grad():
        metrics = {
            "energy_gap": float(energy(samples).mean() - energy(data.test).mean()),
            "sample_mmd2": mmd["mmd2"],
            "sample_mmd2_null95": mmd["null_95"],
            "sample_1nn": nearest_neighbour_test(samples, data.test),
        }
    if data.truth is not None:
        metrics |= density_metrics(energy, data.truth, data.test, box.low, box.high, generator)
        if data.truth.rings:
            noisy = data.test + 0.5 * data.truth.noise * torch.randn(data.test.shape, generator=generator)
            metrics["normal_cosine"] = score_against_normal(energy, noisy)
    if data.test_labels is not None:
        ends = walk_from(walk_settings(config), energy, data.test, generator)
        metrics["walk_crossing"] = float((_true_cluster(data, ends) != data.test_labels).float().mean())
    return metrics, samples


def _true_cluster(data: Dataset, x: Tensor) -> Tensor:
    if data.truth is not None:
        return data.truth.nearest_cluster(x)
    assert data.train_labels is not None
    return data.train_labels[torch.cdist(x, data.train).argmin(dim=1)]


def _kmeans_nmi(latent: Tensor, labels: np.ndarray) -> float:
    clusters = len(np.unique(labels))
    found = KMeans(clusters, n_init=10, random_state=0).fit_predict(latent.cpu().numpy())
    return clustering_metrics(labels, found)["nmi"]
