"""Sinkhorn and each loss, forward and backward, against the textbook form."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

import gedi.losses as ours
from gedi.bench import family, textbook
from gedi.bench.findings import Finding, speedup
from gedi.bench.timing import Effort, in_turns

Loss = Callable[..., Tensor]
#: n points, c clusters, d dimensions: the toy recipe, and the paper's CIFAR-10.
SIZES = ((128, 2, 8), (64, 10, 128))


def losses(effort: Effort) -> Iterator[Finding]:
    """Every loss at two sizes."""
    for size in SIZES:
        at = "n = {}, c = {}, d = {}".format(*size)
        scores = inputs(*size)["logits"] / 10
        pair = {"ours": partial(_assignments, scores), "textbook": partial(textbook.sinkhorn, scores)}
        yield speedup(in_turns(pair, effort), f"Sinkhorn, {at}", ("probability space", "textbook"), "ours")
        for name, (mine, theirs, arguments) in cases(*size).items():
            turns = in_turns({"ours": _passes(mine, arguments), "textbook": _passes(theirs, arguments)}, effort)
            yield speedup(turns, f"{name}, {at}", ("by its formula", "textbook"), "ours")


def inputs(n: int, clusters: int, dimensions: int, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """Random inputs of every loss, by name."""
    g = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64).to(dtype)

    logits, embedding, points = normal(2, n, clusters), normal(2, n, dimensions), normal(2, 2 * n, 2)
    return {
        "logits": logits[0],
        "other": logits[1],
        "embedding": torch.nn.functional.normalize(embedding[0], dim=1),
        "view": torch.nn.functional.normalize(embedding[1], dim=1),
        "latent": embedding[0],
        "latent_view": embedding[1],
        "energy": normal(n),
        "energy_samples": normal(n),
        "score": points[0],
        "noise": points[1],
    }


def cases(
    n: int, clusters: int, dimensions: int, dtype: torch.dtype = torch.float32
) -> dict[str, tuple[Loss, Loss, list[Tensor]]]:
    """Name -> our form, the textbook form, what both are given."""
    given = inputs(n, clusters, dimensions, dtype)

    def case(mine: Loss, theirs: Loss, *names: str) -> tuple[Loss, Loss, list[Tensor]]:
        return mine, theirs, [given[name] for name in names]

    return {
        "swapped prediction": case(ours.swapped_prediction, textbook.swapped_prediction, "logits", "other"),
        "negative-free": case(ours.negative_free, textbook.negative_free, "embedding", "latent", "latent_view"),
        "denoising": case(_at_width(ours.denoising), _at_width(textbook.denoising), "score", "noise"),
        "generative": case(ours.generative, textbook.generative, "energy", "energy_samples"),
        "energy penalty": case(ours.energy_penalty, textbook.energy_penalty, "energy", "energy_samples"),
        "agreement": case(ours.agreement, textbook.agreement, "logits", "other"),
        "balance": case(ours.balance, textbook.balance, "logits"),
        "Barlow Twins": case(ours.barlow_twins, textbook.barlow_twins, "embedding", "view"),
        "contrastive": case(ours.contrastive, textbook.contrastive, "embedding", "view"),
        "NT-Xent": case(ours.nt_xent, family.nt_xent, "embedding", "view"),
        "CPC": case(ours.cpc, family.cpc, "embedding", "view"),
        "ProtoCPC": case(ours.proto_cpc, family.proto_cpc, "logits", "other"),
        "K-shot": case(ours.k_shot, family.k_shot, "embedding", "view", "latent_view"),
        "DeepCluster": case(_assigned(ours.deep_cluster), _assigned(family.deep_cluster), "logits"),
        "VICReg": case(ours.vicreg, family.vicreg, "latent", "latent_view"),
        "W-MSE": case(ours.w_mse, family.w_mse, "latent", "latent_view"),
        "MEC": case(ours.mec, family.mec, "embedding", "view"),
        "CorInfoMax": case(ours.cor_info_max, family.cor_info_max, "embedding", "view"),
    }


def _assignments(scores: Tensor) -> Tensor:
    return ours.log_sinkhorn(scores).exp()


def _assigned(loss: Loss) -> Loss:
    return lambda logits: loss(logits, torch.arange(len(logits)) % logits.shape[1])


def _at_width(loss: Loss) -> Loss:
    return lambda score, noise: loss(score, noise, 0.05)


def _passes(loss: Loss, arguments: list[Tensor]) -> Callable[[], None]:
    leaves = [argument.clone().requires_grad_() for argument in arguments]

    def forward_and_backward() -> None:
        for leaf in leaves:
            leaf.grad = None
        loss(*leaves).backward()  # type: ignore[no-untyped-call]

    return forward_and_backward
