"""Methods: a config becomes a model and the stages that train it."""

from typing import Any

from torch import Tensor

from gedi.config import Config, StageConfig, Weights, merge
from gedi.errors import UserError, unknown
from gedi.nn import MLP, Model, Projector, Prototypes
from gedi.random import Streams
from gedi.sampling import Box, Initial, Langevin, Normal, Teleport
from gedi.training import (
    ClusterTerm,
    Negatives,
    Optimiser,
    Stage,
    TrainerSettings,
    Walk,
    denoising_term,
    generative_term,
    negative_free_term,
    penalty_term,
    perfect_cluster_loss,
)
from gedi.training.stage import Term

_NO_CLUSTERS: dict[str, Any] = {"cluster_noise": 0.0, "cluster_walk": 0.0, "negative_free": 0.0}
_NO_NF: dict[str, Any] = {"stage2": {"weights": {"negative_free": 0.0}}}

#: What each method changes in any preset.
CHANGES: dict[str, dict[str, Any]] = {
    "gedi": {},
    # The density alone: both stages train only it.
    "jem": {"n_init": 1, "stage1": {"weights": _NO_CLUSTERS}, "stage2": {"weights": _NO_CLUSTERS}},
    # The noise view and Sinkhorn alone.
    "swav": {
        "stage1": {"iterations": 0},
        "stage2": {
            "weights": {
                "generative": 0.0,
                "denoising": 0.0,
                "penalty": 0.0,
                "negative_free": 0.0,
                "cluster_walk": 0.0,
            }
        },
    },
    "no-nf": _NO_NF,
    # Nothing to freeze before stage 2, so the walks follow the energy as it learns.
    "no-nf-no-train-1": merge(_NO_NF, {"stage1": {"iterations": 0}, "walk": {"energy": "live"}}),
    "no-nf-2-enc": merge(_NO_NF, {"model": {"second_encoder": True}}),
}
_REFRESH_OF_LIVE_WALKS = 100


def with_method(config: Config) -> Config:
    """The config with its method's changes applied."""
    if config.method not in CHANGES:
        raise unknown("method", config.method, CHANGES)
    changes = CHANGES[config.method]
    if changes.get("walk", {}).get("energy") == "live" and config.walk.refresh == 0:
        changes = merge(changes, {"walk": {"refresh": _REFRESH_OF_LIVE_WALKS}})
    return Config.model_validate(merge(config.model_dump(), changes))


def has_clusters(config: Config) -> bool:
    """Whether the method trains a cluster head at all."""
    weights = config.stage2.weights
    return config.stage2.iterations > 0 and weights.cluster_noise + weights.cluster_walk > 0


def has_density(config: Config) -> bool:
    """Whether the method trains an energy at all."""
    return any(
        stage.iterations > 0 and stage.weights.generative + stage.weights.denoising > 0
        for stage in (config.stage1, config.stage2)
    )


def build_model(config: Config, inputs: int, clusters: int, streams: Streams) -> Model:
    """The network of a config, drawn from the run's streams."""
    m = config.model

    def encoder(stream: str) -> MLP:
        return MLP(
            inputs,
            m.hidden,
            m.latent,
            activation=m.activation,
            first=m.first,
            sharpness=m.sharpness,
            extent=m.extent,
            generator=streams[stream],
        )

    return Model(
        encoder("encoder"),
        Projector(m.latent, m.projector, m.embedding, streams["head"]),
        Prototypes(m.embedding, clusters, m.temperature, streams["head"]),
        latent_dim=m.latent,
        generative_encoder=encoder("generative_encoder") if m.second_encoder else None,
        generator=streams["direction"],
    )


def initial_distribution(config: Config, train: Tensor, box: Box) -> Initial:
    """Where the config's chains begin."""
    return box if config.sampling.initial == "uniform" else Normal.around(train)


def build_stages(config: Config, box: Box, initial: Initial) -> list[Stage]:
    """The stages of a config; those without iterations are left out."""
    named = (("stage1", config.stage1), ("stage2", config.stage2))
    return [_stage(name, stage, config, box, initial) for name, stage in named if stage.iterations > 0]


def trainer_settings(config: Config, clusters: int) -> TrainerSettings:
    """How the loop restarts and logs."""
    weights = config.stage2.weights
    terms = sum(weight > 0 for weight in (weights.cluster_noise, weights.cluster_walk))
    perfect = perfect_cluster_loss(clusters, config.model.embedding, config.model.temperature)
    return TrainerSettings(
        n_init=config.n_init,
        # Without walks a low loss proves nothing: every split far from the data's edge has it.
        good_enough=terms * perfect + config.good_enough if weights.cluster_walk > 0 else None,
        buffer=config.sampling.buffer,
        log_every=config.log_every,
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
    if w.energy == "stage1" and w.refresh:
        raise UserError(
            f"walk.refresh re-walks on an energy that changes: with walk.energy=stage1 it must be 0, "
            f"got {w.refresh}; use walk.energy=live"
        )
    return Walk(w.energy, w.steps, w.radius, w.direction, w.corrector, w.inertia, w.refresh)


def _stage(name: str, stage: StageConfig, config: Config, box: Box, initial: Initial) -> Stage:
    weights, sampling = stage.weights, config.sampling
    sampled = weights.generative > 0 or weights.penalty > 0
    sampler = langevin(config, box)
    return Stage(
        name=name,
        iterations=stage.iterations,
        batch_size=stage.batch_size,
        terms=_terms(weights, stage, config),
        optimiser=Optimiser(stage.learning_rate, stage.betas, stage.warmup, stage.final),
        view_noise=config.cluster.view_noise if weights.cluster_noise + weights.negative_free > 0 else None,
        walk=walk_settings(config) if weights.cluster_walk > 0 else None,
        negatives=Negatives(
            sampling.chains,
            sampler,
            initial,
            Teleport(box, sampler.temperature),
            sampling.teleports,
            sampling.reinit,
        )
        if sampled
        else None,
        denoising=stage.denoising if weights.denoising > 0 else None,
        average=stage.average,
        clusters_from=tuple(name for name in ("cluster_noise", "cluster_walk") if getattr(weights, name) > 0),
    )


def _terms(weights: Weights, stage: StageConfig, config: Config) -> dict[str, tuple[float, Term]]:
    c = config.cluster

    def cluster(view: str) -> ClusterTerm:
        return ClusterTerm(view, config.model.temperature, c.epsilon_start, c.epsilon, c.anneal, c.iterations)

    every: dict[str, Term] = {
        "generative": generative_term,
        "denoising": denoising_term(stage.denoising),
        "penalty": penalty_term,
        "negative_free": negative_free_term(c.ridge),
        "cluster_noise": cluster("noise"),
        "cluster_walk": cluster("walk"),
    }
    terms = {name: (weight, every[name]) for name, weight in weights.model_dump().items() if weight > 0}
    if not terms:
        raise UserError("a stage needs at least one term of positive weight: see stage1.weights, stage2.weights")
    return terms
