"""The figures of a trained model that every run reports, from the rooms that compute them."""

from typing import Any

import torch
from torch import Tensor

from gedi.building import walk_settings
from gedi.config import Config
from gedi.data import Dataset, chunks, is_sharded, spread
from gedi.densities.density import Density
from gedi.evaluation import (
    batch_nmi,
    clustering_metrics,
    collapse_metrics,
    density_metrics,
    kmeans_clusters,
    mmd_test,
    nearest,
    nearest_neighbour_test,
    score_against_normal,
    walk_connections,
)
from gedi.logic import Constraint
from gedi.methods import has_clusters, has_density
from gedi.nn import Model
from gedi.random import Streams
from gedi.sampling import Box
from gedi.types import Clustered, Points

SAMPLES = 1000  # of a density, held against at most as many test points: of sets of one size chance is a half
SHOWN = 600  # test images kept beside the model
CHAINS = 64  # images of chains kept beside the model
READ = SAMPLES  # of a larger table: test rows that its density is held against, and that its pictures show
WALKED = 1000  # training points whose walks say whether clusters hang together
LABELLED = 20_000  # training points that say which true cluster is nearest
PLACES = 20  # on a walk's way that are looked at


def assess(
    model: Model,
    config: Config,
    density: Density,
    data: Dataset,
    box: Box,
    streams: Streams,
    constraint: Constraint | None = None,
    chains: Tensor | None = None,
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Figures on the whole test set, and the points behind them for the pictures.

    For a method without a cluster head k-means speaks.

    Args:
        model: trained.
        config: with its method's changes.
        density: bound to the run.
        data: its test part is judged.
        box: where samples live.
        streams: everything drawn follows from them.
        constraint: the rule, where there is one.
        chains: the persistent chains of training, where there are any.
    """
    model = model.eval()
    out = outputs_of(model, data.test)
    images, clustered = len(data.test.shape) == 4, has_clusters(config)
    metrics: dict[str, Any] = {}
    predicted = out.logits.argmax(dim=1) if clustered else _by_kmeans(out, config, data)
    points = {"predicted": predicted}
    if images:  # some of them for the pictures, so that a report needs no data files
        # the first ones; of shards, which may be sorted, some from everywhere
        shown = spread(len(data.test), SHOWN) if is_sharded(data.test) else slice(SHOWN)
        points |= {"images": data.test[shown].clone(), "shown": predicted[shown].clone()}
        if data.test_labels is not None:
            points["shown_labels"] = data.test_labels[shown].clone()
    elif data.test.shape[1] == 2:
        some = chosen(data.test, READ, streams["shown"])
        points |= {"test": data.test[some].clone(), "shown": predicted[some].clone()}
        if data.test_labels is not None:
            points["shown_labels"] = data.test_labels[some].clone()
    if data.test_labels is not None:
        labels = data.test_labels.numpy()
        metrics |= clustering_metrics(labels, predicted.cpu().numpy())
        if data.groups:  # the rule names the symbols, so a wrong name is an error
            metrics["accuracy_matched"] = metrics["accuracy"]
            metrics["accuracy"] = float((predicted.cpu() == data.test_labels).float().mean())
        if images:
            metrics |= batch_nmi(labels, predicted.cpu().numpy(), generator=streams["batch_nmi"])
    else:
        metrics["clusters_used"] = len(torch.unique(predicted))
    if clustered:
        metrics |= collapse_metrics(out.embedding, out.logits)
    if constraint is not None:
        metrics |= constraint_metrics(model, constraint, data)
    if has_density(config):
        judge = assess_samples if images else assess_density
        figures, samples = judge(model, density, config, data, box, streams, chains)
        metrics |= figures
        points |= samples
        if clustered and not images and config.walk.steps > 0:
            metrics |= assess_walks(model, density, config, data, streams["verdict"])
    return metrics, points


@torch.no_grad()
def outputs_of(model: Model, x: Points) -> Clustered:
    """What the cluster side says of many points, a part at a time; the density is not asked."""
    return Clustered(*map(torch.cat, zip(*(model.clustered(part)[:3] for part in chunks(x, 1000)), strict=True)))


def _by_kmeans(out: Clustered, config: Config, data: Dataset) -> Tensor:
    """Clusters for a method that has no head for them: of its embeddings if it trains any, else of its latents."""
    features = out.embedding if _embeds(config) else out.latent
    clusters = config.model.clusters or data.clusters
    assert clusters is not None
    few, seed = min(clusters, len(features)), config.seed % 2**32  # k-means takes no larger one
    return torch.as_tensor(kmeans_clusters(features.cpu().numpy(), few, seed)).long()


def _embeds(config: Config) -> bool:
    """Whether a term shapes the embedding itself."""
    return any(term.shapes == "embedding" for stage in config.stages.values() for term in stage.terms.values())


@torch.no_grad()
def assess_samples(
    model: Model, density: Density, config: Config, data: Dataset, box: Box, streams: Streams, chains: Tensor | None
) -> tuple[dict[str, float], dict[str, Tensor]]:
    """Images that the density gives: chains of training, and chains that begin anew."""
    energy = density.energy(model)
    fresh = density.sample(model, CHAINS, streams["assess"])
    test = torch.cat([energy(part) for part in chunks(data.test, 1000)])
    metrics = {"fresh_energy_gap": float(energy(fresh).mean() - test.mean())}
    samples = {"samples": fresh}
    if chains is not None:
        metrics["energy_gap"] = float(energy(chains).mean() - test.mean())
        samples["chains"] = chains[:CHAINS].clone()
    return metrics, samples


def constraint_metrics(model: Model, constraint: Constraint, data: Dataset) -> dict[str, float]:
    """How well the training groups, and groups held out, satisfy the rule. A collapse satisfies it too."""
    figures = {}
    parts: dict[str, Points] = {"": data.grouped.flatten(0, 1)}
    if data.validation is not None:
        parts["validation_"] = data.validation
    for part, points in parts.items():
        logits = outputs_of(model, points).logits
        log_p = logits.log_softmax(dim=1).double().view(-1, data.group_size, logits.shape[1])
        named = [
            [domain[k] for domain, k in zip(constraint.domains, group, strict=True)]
            for group in log_p.argmax(dim=2).tolist()
        ]
        figures[f"{part}constraint_loss"] = float(-constraint.log_prob(log_p, normalised=False).mean())
        figures[f"{part}constraint_satisfied"] = float(constraint.is_satisfied(named).float().mean())
    return figures


def assess_density(
    model: Model,
    density: Density,
    config: Config,
    data: Dataset,
    box: Box,
    streams: Streams,
    chains: Tensor | None = None,
) -> tuple[dict[str, float], dict[str, Tensor]]:
    """What would catch a fake: samples against data, the truth's density, where walks end."""
    generator, some = streams["assess"], chosen(data.test, READ, streams["judged"])
    test, energy = data.test[some], density.energy(model)
    samples = density.sample(model, min(SAMPLES, len(test)), generator)
    with torch.no_grad():
        metrics = {"energy_gap": float(energy(samples).mean() - energy(test).mean())}
    if len(test) > 1:  # one point has no neighbour of its own kind
        mmd = mmd_test(samples, test, generator)
        metrics |= {
            "sample_mmd2": mmd["mmd2"],
            "sample_mmd2_null95": mmd["null_95"],
            "sample_1nn": nearest_neighbour_test(samples, test),
            "even_1nn": nearest_neighbour_test(box.sample(len(samples), streams["even"]), test),
        }
    if data.truth is not None:
        metrics |= density_metrics(energy, data.truth, test, box.low, box.high, generator)
        if data.truth.rings:
            noisy = test + 0.5 * data.truth.noise * torch.randn(test.shape, generator=generator)
            metrics["normal_cosine"] = score_against_normal(energy, noisy)
    if data.test_labels is not None:
        ends = walk_settings(config)(energy, test, generator)
        true = _true_cluster(data, ends, streams["labelled"])
        metrics["walk_crossing"] = float((true != data.test_labels[some]).float().mean())
    return metrics, {"samples": samples}


@torch.no_grad()
def assess_walks(
    model: Model, density: Density, config: Config, data: Dataset, generator: torch.Generator
) -> dict[str, float]:
    """Whether walks on the final energy hold the clusters found together; no label is looked at."""
    walk = walk_settings(config)
    x = data.train[chosen(data.train, WALKED, generator)]
    paths = walk(density.energy(model), x, generator, every=max(1, walk.steps // PLACES))
    found, ends = (outputs_of(model, places).logits.argmax(dim=1) for places in (x, paths[-1]))
    return walk_connections(x, paths, found, ends)


def _true_cluster(data: Dataset, x: Tensor, generator: torch.Generator) -> Tensor:
    if data.truth is not None:
        return data.truth.nearest_cluster(x)
    assert data.train_labels is not None
    some = chosen(data.train, LABELLED, generator)
    return data.train_labels[some][nearest(x, data.train[some])]


def chosen(points: Points, most: int, generator: torch.Generator) -> Tensor:
    """Indices of all points, or of so many of them at random; of shards, whose reads cost, a few from everywhere."""
    if is_sharded(points):
        return spread(len(points), min(most, READ))
    if len(points) <= most:
        return torch.arange(len(points))
    return torch.randperm(len(points), generator=generator)[:most].sort().values
