"""Methods: a config becomes a model and the stages that train it."""

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gedi.config import Config, StageConfig, Weights, merge
from gedi.data import is_sharded, spread
from gedi.errors import UserError, unknown
from gedi.logic import Constraint
from gedi.nn import MLP, Classifier, ConvEncoder, Model, Passthrough, Projector, Prototypes, ResNet8
from gedi.random import Streams
from gedi.sampling import Box, Initial, Langevin, Normal, Teleport
from gedi.training import (
    ClusterTerm,
    Naming,
    Negatives,
    Optimiser,
    Stage,
    TrainerSettings,
    Walk,
    Weight,
    agreement_term,
    balance_term,
    barlow_term,
    constraint_term,
    contrastive_term,
    denoising_term,
    finer_term,
    generative_term,
    negative_free_term,
    penalty_term,
    perfect_cluster_loss,
    supervised_term,
)
from gedi.training.guard import GuardSettings
from gedi.training.stage import Augment, Term
from gedi.types import Points
from gedi.views import CropAndColour, Warp

#: Terms that shape the clusters; their sum tells good restarts from bad.
_CLUSTERING = ("cluster_noise", "cluster_walk", "agreement", "agreement_walk", "balance", "constraint", "supervised")
_NO_CLUSTERS: dict[str, Any] = dict.fromkeys((*_CLUSTERING, "negative_free", "finer", "barlow", "contrastive"), 0.0)
_NO_DENSITY: dict[str, Any] = {"generative": 0.0, "denoising": 0.0, "penalty": 0.0}
_NO_RULE: dict[str, Any] = {"rule": None, "align": (), "prior": "uniform"}
_NO_NF: dict[str, Any] = {"stage2": {"weights": {"negative_free": 0.0}}}

#: What each method changes in any preset.
CHANGES: dict[str, dict[str, Any]] = {
    "gedi": {},
    # The energy by its own samples and nothing else, in both stages; where the preset refuses moves, see _SGLD.
    "jem": {
        "n_init": 1,
        "model": {"finer": 0, "second_encoder": False},
        "cluster": {"merge": ()},
        "stage1": {"weights": {**_NO_CLUSTERS, "denoising": 0.0}},
        "stage2": {"weights": {**_NO_CLUSTERS, "denoising": 0.0}},
    },
    # Embeddings whose dimensions agree between views and do not repeat each other; no clusters.
    "barlow": {
        "n_init": 1,
        "model": {"finer": 0, "second_encoder": False},
        "constraint": _NO_RULE,
        "cluster": {"merge": ()},
        "stage1": {"iterations": 0},
        "stage2": {"weights": {**_NO_CLUSTERS, **_NO_DENSITY, "barlow": 1.0}},
    },
    # The noise view and Sinkhorn alone.
    "swav": {
        "model": {"finer": 0, "second_encoder": False},
        "constraint": _NO_RULE,
        "cluster": {"merge": ()},
        "stage1": {"iterations": 0},
        "stage2": {"weights": {**_NO_DENSITY, **_NO_CLUSTERS, "cluster_noise": 1.0}},
    },
    "no-nf": _NO_NF,
    # Nothing to freeze before stage 2, so the walks follow the energy as it learns.
    "no-nf-no-train-1": merge(_NO_NF, {"stage1": {"iterations": 0}, "walk": {"energy": "live"}}),
    "no-nf-2-enc": merge(_NO_NF, {"model": {"second_encoder": True}}),
    # Everything but the knowledge; not even the shares of symbols that it implies.
    "no-constraint": {"constraint": _NO_RULE, "stage2": {"weights": {"constraint": 0.0}}},
    # The knowledge and nothing else: what DeepProbLog trains, a softmax classifier by its rule.
    "logic-alone": {
        "n_init": 1,
        "model": {"head": "linear", "finer": 0},
        "cluster": {"merge": ()},
        "constraint": {"align": (), "start": 0.0, "ramp": 0.0},
        "stage1": {"iterations": 0},
        "stage2": {"weights": {**_NO_CLUSTERS, **_NO_DENSITY, "constraint": 1.0}},
    },
    # The upper bound: the same network, images and augmentation, with the labels.
    "supervised": {
        "n_init": 1,
        "constraint": _NO_RULE,
        "stage1": {"iterations": 0},
        "stage2": {"weights": {**_NO_CLUSTERS, **_NO_DENSITY, "supervised": 1.0}},
    },
}
_REFRESH_OF_LIVE_WALKS = 100
#: JEM's chains: nothing refuses a move, some begin anew.
_SGLD: dict[str, Any] = {"metropolis": False, "teleports": 0, "reinit": 0.05}
_ENOUGH = 10_000  # points to tell the mean and spread of all by
_ENOUGH_READ = 2000  # the same of points in shards, each of which is read for it


def with_method(config: Config) -> Config:
    """The config with its method's changes applied."""
    if config.method not in CHANGES:
        raise unknown("method", config.method, CHANGES)
    changes = changes_of(config)
    changed = merge(config.model_dump(), changes)
    if changes:  # a stage that the method leaves without terms is no stage
        for stage in ("stage1", "stage2"):
            if not any(changed[stage]["weights"].values()):
                changed = merge(changed, {stage: {"iterations": 0}})
        if changed["stage1"]["iterations"] + changed["stage2"]["iterations"] == 0:
            raise UserError(
                f"method {config.method} leaves this preset nothing to train: a stage needs at least one term of "
                "positive weight, see stage1.weights, stage2.weights"
            )
    return Config.model_validate(changed)


def changes_of(config: Config) -> dict[str, Any]:
    """What a config's method sets in it, whatever it was before."""
    changes = CHANGES[config.method]
    if changes.get("walk", {}).get("energy") == "live" and config.walk.refresh == 0:
        return merge(changes, {"walk": {"refresh": _REFRESH_OF_LIVE_WALKS}})
    if config.method == "jem" and config.sampling.metropolis:
        return merge(changes, {"sampling": _SGLD})
    return changes


def has_clusters(config: Config) -> bool:
    """Whether the method trains a cluster head at all; else k-means speaks for it, see :mod:`gedi.assess`."""
    weights = config.stage2.weights
    return config.stage2.iterations > 0 and any(getattr(weights, name) > 0 for name in _CLUSTERING)


def has_density(config: Config) -> bool:
    """Whether the method trains an energy at all."""
    return any(
        stage.iterations > 0 and stage.weights.generative + stage.weights.denoising > 0
        for stage in (config.stage1, config.stage2)
    )


def build_model(
    config: Config, shape: Sequence[int], clusters: int, streams: Streams, encoder: nn.Module | None = None
) -> Model:
    """The network of a config for points of a shape, drawn from the run's streams; the encoder may be one's own."""
    m = config.model
    encoders = [
        _encoder(config, shape, streams[name]) if encoder is None else copy.deepcopy(encoder)
        for name in ("encoder", "generative_encoder")[: 1 + m.second_encoder]
    ]
    latent = _latent_dim(encoders[0], shape)
    if m.head == "linear":
        projector: nn.Module = Passthrough()
        prototypes: nn.Module = Classifier(latent, clusters, streams["head"])
    else:
        projector = Projector(latent, m.projector, m.embedding, streams["head"], normalise=m.normalise_latent)
        prototypes = Prototypes(m.embedding, clusters, m.temperature, streams["head"])
    if m.finer and m.head == "linear":
        raise UserError("finer clusters are prototypes: model.finer needs model.head=prototypes")
    if m.finer and m.finer <= clusters:
        raise UserError(f"model.finer must be more than the {clusters} clusters merged from them, got {m.finer}")
    return Model(
        encoders[0],
        projector,
        prototypes,
        latent_dim=latent,
        finer=Prototypes(m.embedding, m.finer, m.temperature, streams["finer"]) if m.finer else None,
        generative_encoder=encoders[1] if m.second_encoder else None,
        generator=streams["direction"],
    )


def _latent_dim(encoder: nn.Module, shape: Sequence[int]) -> int:
    """The length of an encoder's latents, asked of the encoder itself."""
    try:
        with torch.no_grad():
            latent = encoder(torch.zeros(2, *shape))
    except (RuntimeError, ValueError, TypeError, IndexError) as error:  # layers and own code refuse in many ways
        reason = str(error).partition("\n")[0]
        raise UserError(f"the encoder must take points of shape {tuple(shape)}: {reason}") from None
    if not isinstance(latent, Tensor) or latent.dim() != 2 or len(latent) != 2:
        given = tuple(latent.shape) if isinstance(latent, Tensor) else type(latent).__name__
        raise UserError(
            f"an encoder must give one vector a point, (n, h), got {given} for 2 points; end it with torch.nn.Flatten()"
        )
    return int(latent.shape[1])


def _encoder(config: Config, shape: Sequence[int], generator: torch.Generator) -> nn.Module:
    m = config.model
    if m.encoder == "mlp":
        if len(shape) != 1:
            raise UserError(f"model.encoder=mlp takes rows of a table, got points of shape {tuple(shape)}; use conv")
        return MLP(
            shape[0],
            m.hidden,
            m.latent,
            activation=m.activation,
            first=m.first,
            sharpness=m.sharpness,
            extent=m.extent,
            generator=generator,
        )
    if len(shape) != 3:
        raise UserError(f"model.encoder={m.encoder} takes images, got points of shape {tuple(shape)}; use mlp")
    if m.encoder == "conv":
        return ConvEncoder(shape, m.width, m.latent, generator=generator)
    return ResNet8(shape[0], m.width, m.stem, generator=generator)


def initial_distribution(config: Config, train: Points, box: Box) -> Initial:
    """Where the config's chains begin."""
    if config.sampling.initial == "uniform":
        return box
    return Normal.around(train[spread(len(train), _ENOUGH_READ)] if is_sharded(train) else train[:_ENOUGH])


def build_stages(config: Config, box: Box, initial: Initial, constraint: Constraint | None = None) -> list[Stage]:
    """The stages of a config; those without iterations are left out."""
    named = (("stage1", config.stage1), ("stage2", config.stage2))
    return [_stage(name, stage, config, box, initial, constraint) for name, stage in named if stage.iterations > 0]


def cluster_loss_range(config: Config, clusters: int) -> tuple[float, float] | None:
    """The selection loss of a perfect clustering, and that of knowing nothing; None where it proves nothing.

    Without walks a low loss is no sign: every split far from the data's edge has it.
    """
    weights = config.stage2.weights
    if weights.cluster_walk == 0:
        return None
    terms = sum(weight > 0 for weight in (weights.cluster_noise, weights.cluster_walk))
    perfect = perfect_cluster_loss(clusters, config.model.embedding, config.model.temperature)
    return terms * perfect, terms * math.log(clusters)


def trainer_settings(config: Config, clusters: int) -> TrainerSettings:
    """How the loop restarts, logs and is guarded."""
    yardstick = cluster_loss_range(config, clusters)
    return TrainerSettings(
        n_init=config.n_init,
        good_enough=None if yardstick is None else yardstick[0] + config.good_enough,
        buffer=config.sampling.buffer,
        log_every=config.log_every,
        guard=GuardSettings(**config.guard.model_dump()),
    )


def langevin(config: Config, box: Box) -> Langevin:
    """The config's sampler."""
    s = config.sampling
    return Langevin(
        noise=s.noise,
        step_size=s.step_size,
        steps=s.steps,
        metropolis=s.metropolis,
        clip=s.clip,
        box=box if s.clamp else None,
    )


def walk_settings(config: Config) -> Walk:
    """The config's manifold walk."""
    w = config.walk
    relax = Langevin(noise=w.relax_noise, step_size=w.relax_step_size, steps=w.relax) if w.relax else None
    return Walk(w.energy, w.steps, w.radius, w.direction, w.corrector, w.inertia, w.refresh, relax, w.composed)


def _augment(config: Config) -> Augment | None:
    a = config.augment
    parts = [
        part
        for part in (
            CropAndColour(
                crop=a.crop,
                resized=a.resized,
                flip=a.flip,
                jitter=a.jitter,
                strength=a.strength,
                grayscale=a.grayscale,
                mean=config.data.mean,
                std=config.data.std,
            ),
            Warp(a.rotation, a.shear, a.scale, a.shift, a.elastic, background=-config.data.mean / config.data.std),
        )
        if not part.is_identity
    ]

    def both(x: Tensor, generator: torch.Generator) -> Tensor:
        for part in parts:
            x = part(x, generator)
        return x

    return both if parts else None


def _stage(
    name: str, stage: StageConfig, config: Config, box: Box, initial: Initial, constraint: Constraint | None
) -> Stage:
    weights, sampling = stage.weights, config.sampling
    sampled = weights.generative > 0 or weights.penalty > 0
    sampler = langevin(config, box)
    return Stage(
        name=name,
        iterations=stage.iterations,
        batch_size=stage.batch_size,
        terms=_terms(weights, stage, config, constraint),
        optimiser=Optimiser(stage.learning_rate, stage.betas, stage.warmup, stage.final),
        view_noise=config.cluster.view_noise if _looks_at_view(weights) else None,
        augment=_augment(config),
        augment_both=config.augment.both,
        fresh_optimiser=stage.fresh_optimiser,
        naming=Naming(constraint, config.constraint.align, config.constraint.restarts, config.constraint.decode)
        if constraint is not None and weights.constraint > 0 and config.constraint.align
        else None,
        merging=config.cluster.merge if weights.finer > 0 else (),
        walk=walk_settings(config) if walks(config, weights) else None,
        negatives=Negatives(
            sampling.chains,
            sampler,
            initial,
            Teleport(box, sampler.temperature),
            sampling.teleports,
            sampling.reinit,
            sampling.data_noise,
        )
        if sampled
        else None,
        denoising=stage.denoising if weights.denoising > 0 else None,
        average=stage.average,
        clusters_from=tuple(name for name in _CLUSTERING if getattr(weights, name) > 0),
    )


def walks(config: Config, weights: Weights) -> bool:
    """Whether a stage of these weights looks at the ends of walks."""
    composed = config.walk.composed and _looks_at_view(weights)
    if composed and weights.cluster_walk + weights.agreement_walk > 0:
        raise UserError(
            "a composed walk is part of the augmented view: weights of cluster_walk, agreement_walk must be 0"
        )
    return composed or weights.cluster_walk + weights.agreement_walk > 0


def _looks_at_view(weights: Weights) -> bool:
    names = ("cluster_noise", "negative_free", "agreement", "balance", "finer", "constraint", "supervised")
    return any(getattr(weights, name) > 0 for name in (*names, "barlow", "contrastive"))


def _terms(
    weights: Weights, stage: StageConfig, config: Config, constraint: Constraint | None
) -> dict[str, tuple[Weight, Term]]:
    c, rule = config.cluster, config.constraint
    if config.model.head == "linear" and config.constraint.align:
        raise UserError("symbols are aligned by their prototypes: constraint.align needs model.head=prototypes")
    if weights.constraint > 0 and constraint is None:
        raise UserError("a weight on the constraint needs a constraint: see constraint.rule")
    log_prior = constraint.marginals().mean(dim=0).log() if constraint and rule.prior == "rule" else None

    def cluster(view: str) -> ClusterTerm:
        return ClusterTerm(
            view, config.model.temperature, c.epsilon_start, c.epsilon, c.anneal, c.iterations, log_prior
        )

    made: dict[str, Callable[[], Term]] = {
        "generative": lambda: generative_term,
        "denoising": lambda: denoising_term(stage.denoising),
        "penalty": lambda: penalty_term,
        "negative_free": lambda: negative_free_term(c.ridge),
        "cluster_noise": lambda: cluster("noise"),
        "cluster_walk": lambda: cluster("walk"),
        "agreement": lambda: agreement_term("noise"),
        "agreement_walk": lambda: agreement_term("walk"),
        "balance": lambda: balance_term(log_prior),
        "finer": lambda: finer_term(c.finer_balance),
        "barlow": lambda: barlow_term(c.off_diagonal),
        "contrastive": lambda: contrastive_term(c.contrast_temperature, c.similarity),
        "constraint": lambda: constraint_term(constraint),  # type: ignore[arg-type]
        "supervised": lambda: supervised_term,
    }
    if weights.finer > 0 and config.model.finer == 0:
        raise UserError("a weight on the finer clusters needs some: see model.finer")
    courses = {"constraint": (rule.start, rule.ramp)}
    courses |= dict.fromkeys(("agreement", "agreement_walk", "balance"), (c.start, 0.0))
    terms = {
        name: (Weight(value, *courses.get(name, (0.0, 0.0))), made[name]())
        for name, value in weights.model_dump().items()
        if value > 0
    }
    if not terms:
        raise UserError("a stage needs at least one term of positive weight: see stage1.weights, stage2.weights")
    return terms
