"""The Fréchet distance of two sets of images, in the features of a network that the result names."""

import re
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torchmetrics.image.fid import FrechetInceptionDistance

from gedi.errors import UserError


@dataclass(frozen=True)
class FeatureNetwork:
    """A network whose features images are compared in: images (n, c, h, w) in [0, 1] -> (n, d).

    Any module will do, ``FeatureNetwork("latents of run 3", encoder)``; the Inception network of published
    figures comes from :func:`~gedi.evaluation.inception_from_file`. Resizing is the module's business.

    Attributes:
        name: what the result is called after.
        module: the network; it is used in evaluation mode.
        standard: whether this is, verified, the network of published FID figures.

    Example:
        >>> FeatureNetwork("Latents of run 3", nn.Flatten()).key
        'fid_latents_of_run_3'
    """

    name: str
    module: nn.Module
    standard: bool = False

    @property
    def key(self) -> str:
        """``fid`` for the standard network alone; any other carries its name, so nobody mistakes the two."""
        return "fid" if self.standard else f"fid_{re.sub('[^a-z0-9]+', '_', self.name.lower()).strip('_')}"


class _AsGiven(nn.Module):
    """Features that were computed before."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.num_features = num_features

    def forward(self, features: Tensor) -> Tensor:
        return features


@torch.no_grad()
def frechet_distance(features_a: Tensor, features_b: Tensor) -> float:
    r"""Squared Wasserstein distance of the Gaussians that have the mean and covariance of two sets of features.

    .. math:: |\mu_a - \mu_b|^2 + \mathrm{tr}\,(\Sigma_a + \Sigma_b - 2 (\Sigma_a \Sigma_b)^{1/2})

    In double precision, by torchmetrics.

    Args:
        features_a: (n, d).
        features_b: (m, d).

    Source: Heusel et al., "GANs trained by a two time-scale update rule", 2017.

    Example:
        >>> x = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
        >>> round(frechet_distance(x, x + torch.tensor([3.0, 4.0])), 4)
        25.0
    """
    if features_a.dim() != 2 or features_b.dim() != 2 or features_a.shape[1] != features_b.shape[1]:
        raise UserError(
            f"features must be (n, d) of one width, got {tuple(features_a.shape)} and {tuple(features_b.shape)}; "
            "take both from the same network, flattened"
        )
    if min(len(features_a), len(features_b)) < 2:
        raise UserError(
            f"a covariance needs at least 2 points on each side, got {len(features_a)} and {len(features_b)}; "
            "give more images"
        )
    metric = FrechetInceptionDistance(feature=_AsGiven(features_a.shape[1])).to(features_a.device)
    centre = features_a.double().mean(dim=0)  # torchmetrics sums squares: a far origin would cost digits
    metric.update(features_a.double() - centre, real=True)
    metric.update(features_b.double() - centre, real=False)
    return max(float(metric.compute()), 0.0)  # rounding can leave a hair below zero


@torch.no_grad()
def features_of(images: Tensor, network: FeatureNetwork, batch: int = 200) -> Tensor:
    """Features (n, d) of images (n, c, h, w) in [0, 1], a batch at a time."""
    module, training = network.module, network.module.training
    module.eval()
    try:
        features = torch.cat([module(part) for part in torch.split(images, batch)])
    finally:
        module.train(training)
    if features.dim() != 2:
        raise UserError(
            f"a feature network must give (n, d), got {tuple(features.shape)} from {network.name!r}; "
            "pool or flatten its output"
        )
    return features


def fid(real: Tensor, fake: Tensor, network: FeatureNetwork, batch: int = 200) -> dict[str, float]:
    """:func:`frechet_distance` between the features of real and of generated images.

    Args:
        real: images (n, c, h, w) in [0, 1].
        fake: images (m, c, h, w) in [0, 1].
        network: whose features; its :attr:`~FeatureNetwork.key` names the result.
        batch: images at a time.

    Returns:
        The distance, and, where either side has no more images than features, ``<key>_samples``, the smaller
        number of images: the covariance is then singular and the figure biased upward.

    Example:
        >>> x = torch.rand(50, 1, 2, 2, generator=torch.Generator().manual_seed(0))
        >>> fid(x, x, FeatureNetwork("pixels", nn.Flatten())).keys()
        dict_keys(['fid_pixels'])
    """
    for name, images in (("real", real), ("fake", fake)):
        if len(images) < 2:
            raise UserError(f"FID needs at least 2 {name} images, got {len(images)}; give more")
        if not images.is_floating_point() or images.min() < 0 or images.max() > 1:
            raise UserError(
                f"{name} images must be floats in [0, 1], got {images.dtype} from {float(images.min()):.3g} to "
                f"{float(images.max()):.3g}; rescale or clamp them first"
            )
    features = [features_of(images, network, batch) for images in (real, fake)]
    result = {network.key: frechet_distance(*features)}
    smaller = min(len(real), len(fake))
    if smaller <= features[0].shape[1]:
        result[f"{network.key}_samples"] = smaller
    return result
