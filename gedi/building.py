"""Building: a config becomes a network and the stages that train it."""

import copy
import itertools
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from gedi.config import Config, StageConfig, WalkConfig
from gedi.data import is_sharded, spread
from gedi.densities.density import Density
from gedi.errors import UserError
from gedi.graph import WalkGraph
from gedi.logic import Constraint
from gedi.moves.move import Augment
from gedi.nn import MLP, Classifier, Codes, ConvEncoder, Cube, Model, Passthrough, Projector, Prototypes, ResNet8
from gedi.objectives.objective import Context, Few
from gedi.random import Streams
from gedi.sampling import Box, Initial, Langevin, Normal
from gedi.training import GuardSettings, Optimiser, Stage, TrainerSettings, View, Walk
from gedi.types import Points
from gedi.views import CropAndColour, Warp

_ENOUGH = 10_000  # points to tell the mean and spread of all by
_ENOUGH_READ = 2000  # the same of points in shards, each of which is read for it
_LEAST_SHARE = 0.002  # of a symbol, by the answers


def build_model(
    config: Config,
    shape: Sequence[int],
    clusters: int,
    streams: Streams,
    encoder: nn.Module | None = None,
    density: Density | None = None,
) -> Model:
    """The network of a config for points of a shape, drawn from the run's streams.

    The encoder may be one's own, and the density the config's as it is bound to a run.
    """
    m = config.model

    def make(stream: str) -> nn.Module:
        return _encoder(config, shape, streams[stream]) if encoder is None else copy.deepcopy(encoder)

    first = make("encoder")
    latent = _latent_dim(first, shape)
    if m.head == "linear":
        projector: nn.Module = Passthrough()
        prototypes: nn.Module = Classifier(latent, clusters, streams["head"])
    elif m.head == "codes":
        projector = Cube(latent, m.embedding, streams["head"])
        prototypes = Codes(m.embedding, clusters, streams["head"])
    else:
        projector = Projector(latent, m.projector, m.embedding, streams["head"], normalise=m.normalise_latent)
        prototypes = Prototypes(m.embedding, clusters, m.temperature, streams["head"])
    if m.finer and m.head != "prototypes":
        raise UserError("finer clusters are prototypes: model.finer needs model.head=prototypes")
    if m.finer and m.finer <= clusters:
        raise UserError(f"model.finer must be more than the {clusters} clusters merged from them, got {m.finer}")
    return Model(
        first,
        projector,
        prototypes,
        finer=Prototypes(m.embedding, m.finer, m.temperature, streams["finer"]) if m.finer else None,
        density=(density or config.density).module(latent, make, streams, shape),
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
    if m.of_rows and len(shape) != 1:
        raise UserError(
            f"model.encoder={m.encoder} takes rows of a table, got points of shape {tuple(shape)}; use conv"
        )
    if m.encoder == "identity":
        return nn.Identity()
    if m.encoder == "mlp":
        return MLP(
            shape[0],
            m.hidden,
            m.latent,
            activation=m.activation,
            first=m.first,
            sharpness=m.sharpness,
            extent=m.extent,
            raw=m.raw,
            generator=generator,
        )
    if len(shape) != 3:
        raise UserError(f"model.encoder={m.encoder} takes images, got points of shape {tuple(shape)}; use mlp")
    if m.encoder == "conv":
        return ConvEncoder(shape, m.width, m.latent, generator=generator)
    return ResNet8(shape[0], m.width, m.stem, generator=generator)


def initial_distribution(config: Config, train: Points, box: Box) -> Initial:
    """Where the config's chains begin."""
    if getattr(config.density, "initial", "uniform") == "uniform":
        return box
    return Normal.around(train[spread(len(train), _ENOUGH_READ)] if is_sharded(train) else train[:_ENOUGH])


def build_stages(config: Config, density: Density, context: Context, graph: WalkGraph | None = None) -> list[Stage]:
    """The stages of a config, bound to a run; those without iterations are left out. Walks may be on a graph."""
    return [
        _stage(name, stage, config, density, context, graph)
        for name, stage in config.stages.items()
        if stage.iterations > 0
    ]


def context_of(
    config: Config,
    clusters: int,
    constraint: Constraint | None,
    labelled: bool = False,
    shares: Tensor | None = None,
    answers: Tensor | None = None,
    few: Few | None = None,
) -> Context:
    """What terms and moves may have to know of a run; ``shares`` of the clusters where a proposal was made."""
    by_rule = constraint is not None and config.constraint.prior == "rule"
    log_shares = None if shares is None else shares.log()
    return Context(
        clusters,
        config.model.embedding,
        config.model.temperature,
        config.model.finer,
        implied_shares(constraint, answers).log() if constraint is not None and by_rule else log_shares,
        constraint,
        labelled,
        shares is not None,
        answers,
        few=few,
    )


def implied_shares(constraint: Constraint, answers: Tensor | None) -> Tensor:
    """How often each symbol comes if all that fits the rule, or what was observed of each group, is as likely.

    Example:
        >>> total = Constraint.from_function(lambda a, b: a + b, [range(3)] * 2)
        >>> implied_shares(total, total.numbered([0, 1])).tolist()              # 0 + 0, and 0 + 1 or 1 + 0
        [0.7485..., 0.2495..., 0.0019...]
    """
    if answers is None:
        return constraint.marginals().mean(dim=0)
    log_p = torch.zeros(len(answers), len(constraint.domains), max(constraint.sizes), dtype=torch.float64)
    with torch.enable_grad():
        log_p.requires_grad_()
        observed = constraint.log_prob(log_p, normalised=False, answers=answers)
        (posterior,) = torch.autograd.grad(observed.sum(), log_p)
    shares = posterior.mean(dim=(0, 1)).clamp_min(_LEAST_SHARE)  # a symbol that no answer needs may come all the same
    return shares / shares.sum()


def trainer_settings(config: Config, stages: Sequence[Stage]) -> TrainerSettings:
    """How the loop restarts, logs and is guarded."""
    loss_range = cluster_loss_range(stages)
    return TrainerSettings(
        n_init=config.n_init,
        good_enough=None if loss_range is None else loss_range[0] + config.good_enough,
        log_every=config.log_every,
        guard=GuardSettings(**config.guard.model_dump()),
    )


def cluster_loss_range(stages: Sequence[Stage]) -> tuple[float, float] | None:
    """The selection loss of a perfect clustering, and that of knowing nothing; None where it proves nothing.

    It is that of the last stage that shapes clusters.

    Without walks a low loss is no sign: every split far from the data's edge has it. Nor where a term does not know its
    own range.
    """
    last = next((stage for stage in reversed(stages) if stage.clusters_from), None)
    shaping = [] if last is None else [last.terms[name] for name in last.clusters_from]
    if not any("walk" in term.looks for term in shaping):
        return None
    ranges = [term.loss_range() for term in shaping]
    known = [one for one in ranges if one is not None]
    if len(known) < len(ranges):
        return None
    return sum(perfect for perfect, _ in known), sum(ignorant for _, ignorant in known)


def walk_settings(config: Config) -> Walk:
    """The config's manifold walk."""
    w = config.walk
    relax = Langevin(noise=w.relax_noise, step_size=w.relax_step_size, steps=w.relax) if w.relax else None
    return Walk(
        w.energy,
        w.steps,
        w.radius,
        w.direction,
        w.corrector,
        w.inertia,
        w.refresh,
        relax,
        w.composed,
        w.share,
        w.start,
    )


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
                light=a.light,
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
    name: str, stage: StageConfig, config: Config, density: Density, context: Context, graph: WalkGraph | None
) -> Stage:
    tried = {name: move for name, move in stage.moves.items() if move.moments}
    # what a rule or a table's graph says of the shares is better known
    finds_shares = context.log_shares is None and any(move.finds_shares for move in tried.values())
    context = context._replace(finds_shares=finds_shares)
    terms = {term: objective.bind(context) for term, objective in stage.terms.items() if objective.weight > 0}
    moves = {name: move.bind(context) for name, move in tried.items()}
    if not stage.in_force:
        raise UserError(f"{name} needs at least one term of positive weight: see {name}.terms, {name}.density")
    return Stage(
        name=name,
        iterations=stage.iterations,
        batch_size=stage.batch_size,
        optimiser=Optimiser(stage.learning_rate, stage.betas, stage.warmup, stage.final),
        density=density,
        density_weights={term: weight for term, weight in stage.density.items() if weight > 0},
        density_start=stage.density_start,
        terms=terms,
        moves=moves,
        view=View(config.augment.noise, _augment(config), config.augment.both, config.augment.start),
        walk=replace(walk_settings(config), graph=graph) if _walks(name, config, stage) else None,
        average=stage.average,
        fresh_optimiser=stage.fresh_optimiser,
    )


def _walks(name: str, config: Config, stage: StageConfig) -> bool:
    """Whether a stage walks, for a look of its own or within the augmented view."""
    composed = config.walk.composed and "view" in stage.looks
    if composed and "walk" in stage.looks:
        raise UserError(
            f"a composed walk is part of the augmented view: {name}.terms must not look at the walk besides"
        )
    walks = composed or "walk" in stage.looks
    if walks:
        _check_walk(config.walk, config.density)
    if walks and config.walk.energy != "radial" and config.density.kind == "none":
        raise UserError("walks follow a density, and there is none: see density.kind, or walk.energy=radial")
    if composed and config.walk.energy != "radial" and not _trains_density(config):
        raise UserError(
            "walks follow a density, and no stage trains it: give stage1 iterations, or leave the walks out of the "
            "clusters by walk.composed=false"
        )
    if composed and config.walk.energy in ("stage1", "noise") and not _trains_density(config, before=name):
        raise UserError(
            f"no stage before {name} trains the density that walks follow as it was when {name} began: "
            "walk.energy=live follows it as it learns"
        )
    return walks


def _trains_density(config: Config, before: str | None = None) -> bool:
    """Whether any stage does, of those before one."""
    names = itertools.takewhile(lambda name: name != before, config.stages)
    stages = [config.stages[name] for name in names if config.stages[name].iterations]
    return config.density.exact or any(weight > 0 for stage in stages for weight in stage.density.values())


def _check_walk(walk: WalkConfig, density: Density) -> None:
    """Refuse a walk whose parts do not fit one another."""
    denoises = walk.direction == "denoise"
    if denoises and walk.energy == "radial":
        raise UserError("there is no noise to take off by walk.energy=radial: the control of denoising is noise")
    if walk.direction == "latent" and (walk.energy == "radial" or not density.has_latent):
        raise UserError(
            "walk.direction=latent needs a density with a latent: density.kind=flow, autoregressive or vae, and walks "
            "that follow it"
        )
    if walk.direction == "latent" and walk.radius is not None and walk.radius > 1:
        raise UserError(f"of a latent at most all is new at a step: walk.radius must be at most 1, got {walk.radius}")
    if denoises and walk.relax:
        raise UserError(f"a walk that denoises is back at the data as it is: walk.relax={walk.relax} must be 0")
    if walk.energy == "graph" and walk.share < 1:
        raise UserError(f"on the graph of the points all of them walk: walk.share={walk.share} must be 1")
    if walk.radius is None and not (denoises and density.chooses_width):
        raise UserError(
            "walk.radius=null leaves it to the density, which walk.direction=denoise and density.kind=denoiser can; "
            f"walk.direction={walk.direction} on density.kind={density.kind} needs a number, such as walk.radius=0.3"
        )
