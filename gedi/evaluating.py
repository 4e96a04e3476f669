"""The costlier figures of a finished run: features by probe and k-NN, samples by FID, outliers by AUROC."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from gedi.checkpoints import Unusable
from gedi.config import Config
from gedi.data import (
    CATALOGUE,
    Dataset,
    Pixels,
    Shards,
    StoredImages,
    chunks,
    is_sharded,
    load_digits,
    load_images,
    spread,
    unit_range,
)
from gedi.densities.density import Place
from gedi.directory import RunDirectory
from gedi.errors import UserError, unknown
from gedi.evaluation import (
    FeatureNetwork,
    effective_rank,
    features_of,
    fid,
    inception_from_file,
    installed_inception,
    knn_accuracy,
    linear_probe,
    ood_aurocs,
    ood_scores,
    precision_recall,
)
from gedi.fitted import Fitted
from gedi.measures.measure import seen_of
from gedi.methods import has_clusters, has_density, with_method
from gedi.names import PARTS, Recipe
from gedi.nn import Model, ResNet8
from gedi.processes import Processes
from gedi.random import Streams
from gedi.sampling import Box
from gedi.training.tree import own_tree

Record = dict[str, Any]
_READ = 10_000  # images of each part of a set in shards, where no limit is given
_KEPT = 2000  # energies of each data set, for the histogram


def evaluate_run(
    directory: RunDirectory,
    *,
    parts: Sequence[str] | None = None,
    data_dir: str | Path | None = None,
    against: Sequence[str] = (),
    recipe: Recipe = "lbfgs",
    samples: int = 500,
    inception: str | Path | None = None,
    limit: int | None = None,
) -> Record:
    """Measure a finished run on images; ``evaluation.json`` beside its results keeps every figure measured so far.

    Args:
        directory: the run.
        parts: some of :data:`gedi.names.PARTS`; None measures all that there is something to measure by.
        data_dir: where data sets are looked for first.
        against: names of data sets that the run should find strange; ``noise`` is uniform noise.
        recipe: of the linear probe: ``lbfgs``, or ``sgd`` as in the paper.
        samples: how many images FID compares.
        inception: a file with Inception's weights, for FID as published.
        limit: the most training and test images to take, drawn at random; None takes all, or 10,000 of shards.
    """
    _check(parts, against, recipe, samples, inception, limit)  # before the hours that the parts may take
    config = with_method(directory.config())
    if config.model.of_rows:
        raise UserError(f"gedi evaluate takes runs on images, but this run's data is {config.data.name}")
    fitted = directory.fitted()
    model, box = fitted.model, fitted.box
    data = directory.data(data_dir)
    if not isinstance(data.test, StoredImages):
        raise UserError(f"gedi evaluate takes runs on images, but this run's data is {config.data.name}")
    if limit is None and is_sharded(data.test):
        limit = _READ
    streams = Streams(config.seed).child("evaluate")
    labelled = data.train_labels is not None and data.test_labels is not None
    with directory.held():
        found = directory.evaluation()
        for part in parts or (PARTS if labelled else PARTS[1:]):
            if part == "probe":
                found["probe"] = _probe(model, data, recipe, limit, streams["probe"])
            elif part == "fid" and has_density(config):
                found["fid"] = _samples(model, config, data, box, directory, samples, inception, streams["fid"])
            elif part == "ood":
                found |= _strangers(fitted, data, against, data_dir, limit, streams["ood"], directory)
            directory.write("evaluation.json", json.dumps(found, indent=2) + "\n")  # a later part may fail
    return found


def _check(
    parts: Sequence[str] | None,
    against: Sequence[str],
    recipe: str,
    samples: int,
    inception: str | Path | None,
    limit: int | None,
) -> None:
    for part in parts or ():
        if part not in PARTS:
            raise unknown("part of an evaluation", part, PARTS)
    for name in against:
        if name not in (*CATALOGUE, "digits", "noise"):
            raise unknown("data set", name, [*CATALOGUE, "digits", "noise"])
    if recipe not in get_args(Recipe):
        raise unknown("probe", recipe, get_args(Recipe))
    if samples < 2:
        raise UserError(f"samples must be at least 2 for FID to compare, got {samples}")
    if limit is not None and limit < 1:
        raise UserError(f"limit must be at least 1 image of each set, got {limit}")
    if inception is not None and not Path(inception).is_file():
        raise UserError(f"inception must name a file of weights, but {str(inception)!r} is not there")


def _probe(model: Model, data: Dataset, recipe: Recipe, limit: int | None, generator: torch.Generator) -> Record:
    """How well frozen latents tell the classes apart, by a linear classifier and by neighbours."""
    if data.train_labels is None or data.test_labels is None:
        raise UserError("a probe needs labels, and these images have none")
    chosen = [_some(len(part), limit, generator) for part in (data.train, data.test)]  # files may be sorted by class
    train, test = (
        torch.cat([seen_of(model, part[few]).latent for few in torch.split(some, 1000)])
        for part, some in zip((data.train, data.test), chosen, strict=True)
    )
    labels = data.train_labels[chosen[0]], data.test_labels[chosen[1]]
    return {
        "recipe": recipe,
        "accuracy": linear_probe(train, labels[0], test, labels[1], recipe=recipe, generator=generator),
        "knn": knn_accuracy(train, labels[0], test, labels[1]),
        "effective_rank_of_latents": effective_rank(test),
        "train_images": len(train),
        "test_images": len(test),
    }


def _samples(
    model: Model,
    config: Config,
    data: Dataset,
    box: Box,
    directory: RunDirectory,
    n: int,
    inception: str | Path | None,
    generator: torch.Generator,
) -> Record:
    """Samples against test images: from chains that begin anew, and from those of the training."""
    assert isinstance(data.test, StoredImages)
    network = _feature_network(inception)
    pixels = data.test.pixels
    some = spread(len(data.test), max(n, 2)) if is_sharded(data.test) else slice(max(n, 2))  # shards may be sorted
    real = _as_pictures(data.test[some], pixels)
    kinds = {"fresh": config.density.bind(Place(box, box)).sample(model, n, generator)}
    state = directory.load_checkpoint(partial(_check_kept, config, data.test.shape[1:]))
    kept = None if state is None else _kept(config, state)
    if kept is not None:
        kinds["buffer"] = kept[:n]
    figures: Record = {"network": network.name, "standard": network.standard, "samples": n}
    for kind, fake in kinds.items():
        pictures = _as_pictures(fake, pixels)
        figures[kind] = fid(real, pictures, network)
        if len(pictures) > 3:
            figures[kind] |= precision_recall(features_of(real, network), features_of(pictures, network))
    return figures


def _kept(config: Config, state: Record) -> Tensor | None:
    """Samples that training left in a checkpoint; None where the density keeps none."""
    if "chains" in state:  # as gedi 0.1 wrote it
        chains: Tensor = state["chains"]
        return chains
    kept = config.density.kept(own_tree(state["state"]["density"], Processes()))
    return None if kept is None else kept.rows


def _check_kept(config: Config, shape: Sequence[int], state: Record) -> None:
    try:
        kept = _kept(config, state)
        fits = kept is None or kept.shape[1:] == torch.Size(shape)
    except (LookupError, TypeError, AttributeError):  # a file may hold anything
        fits = False
    if not fits:
        raise Unusable("holds no chains of this run's images")


def _feature_network(inception: str | Path | None) -> FeatureNetwork:
    """Inception where there is one; else a network that anyone can draw again, and whose name says what it is."""
    if inception is not None:
        return inception_from_file(inception)
    random = ResNet8(3, 64, generator=torch.Generator().manual_seed(0))
    return installed_inception() or FeatureNetwork("random resnet8", random)


def _as_pictures(points: Tensor, pixels: Pixels) -> Tensor:
    """Points as colour images in [0, 1]."""
    x = (points * pixels.std + pixels.mean).clamp(0, 1)
    return x.expand(-1, 3, -1, -1) if x.shape[1] == 1 else x


def _strangers(
    fitted: Fitted,
    data: Dataset,
    names: Sequence[str],
    data_dir: str | Path | None,
    limit: int | None,
    generator: torch.Generator,
    directory: RunDirectory,
) -> Record:
    """How well the run tells its own test images from those of other data sets; some energies are kept for pictures."""
    before = directory.evaluation()
    assert isinstance(data.test, StoredImages)
    own = data.test[_some(len(data.test), limit, generator)]
    inside = _scores(fitted, own)
    found: Record = {}
    energies = {data.name: inside}
    for name in names:
        other, source = _other_images(name, data.test, data_dir, limit, generator)
        energies[name] = _scores(fitted, other)
        found[name] = {**ood_aurocs(inside, energies[name]), "source": source, "images": [len(own), len(other)]}
    result: Record = {"ood": before.get("ood", {}) | found}
    if "log_density" in inside:
        kept = directory.energies() | {name: -s["log_density"][:_KEPT].clone() for name, s in energies.items()}
        checksum = directory.write_tensors("model/energies.safetensors", kept)
        result["checksums"] = before.get("checksums", {}) | {"energies": checksum}
    return result


def _other_images(
    name: str, test: StoredImages, data_dir: str | Path | None, limit: int | None, generator: torch.Generator
) -> tuple[Tensor, str]:
    """Points made of another data set's test images as this run's are, and where they come from."""
    if name == "noise":
        noise = torch.rand(min(limit or len(test), len(test)), *test.stored.shape[1:], generator=generator)
        return test.pixels(noise), "uniform noise"
    images = load_digits() if name == "digits" else load_images(name, data_dir)
    some = images.test[_some(len(images.test), limit, generator)]
    return test.pixels(_like(some, test.stored)), images.source


def _some(n: int, limit: int | None, generator: torch.Generator) -> Tensor:
    """Indices of at most ``limit`` of n things, at random, in order."""
    return torch.randperm(n, generator=generator)[: limit or n].sort().values


def _scores(fitted: Fitted, x: Tensor) -> dict[str, Tensor]:
    """Every score the run has: a density's only if it trained one, a cluster's only if it has clusters."""
    logits = seen_of(fitted.model, x).logits if has_clusters(fitted.config) else None
    if has_density(fitted.config):
        return ood_scores(fitted.energy, x, logits)
    return {} if logits is None else {"max_probability": logits.softmax(dim=1).amax(dim=1)}


def _like(images: Tensor, example: Tensor | Shards) -> Tensor:
    """Images with the channels and the size of an example: grey by the mean of the colours, resized."""
    x = unit_range(images)
    channels, size = example.shape[1], tuple(example.shape[-2:])
    if x.shape[1] != channels:
        x = x.mean(dim=1, keepdim=True) if channels == 1 else x.expand(-1, channels, -1, -1)
    if tuple(x.shape[-2:]) != size:
        x = torch.cat(
            [F.interpolate(p, size, mode="bilinear", align_corners=False, antialias=True) for p in chunks(x, 1000)]
        )
    return x
