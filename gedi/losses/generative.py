"""Maximum likelihood of the energy model, by contrast with its own samples."""

from torch import Tensor

from gedi.precision import full_precision


@full_precision
def generative(energy_data: Tensor, energy_samples: Tensor) -> Tensor:
    r"""The generative term: the energy of data goes down, that of the model's samples goes up.

    .. math:: \frac1n \sum_i E(x_i) - \frac1m \sum_j E(\tilde x_j), \qquad \tilde x_j \sim p

    Its gradient in the parameters is that of the negative log-likelihood
    :math:`-\frac1n\sum_i \log p(x_i)` when the samples come from the model; its *value* is the energy
    gap, near 0 for a converged model, and not the likelihood.

    Args:
        energy_data: ``E(x)``, (n,).
        energy_samples: ``E`` of samples from the model, (m,), with no gradient through the samples.

    Source: the paper, eq. (energy_obj), with the sign that its section 2 implies.

    Example:
        >>> import torch
        >>> generative(torch.tensor([1.0, 3.0]), torch.tensor([4.0]))
        tensor(-2.)
    """
    return energy_data.mean() - energy_samples.mean()


@full_precision
def energy_penalty(energy_data: Tensor, energy_samples: Tensor) -> Tensor:
    r"""Keeps energies near zero: :math:`\overline{E(x)^2} + \overline{E(\tilde x)^2}`.

    The likelihood does not change when a constant is added to the energy, so nothing else holds its
    level; a literal (unadjusted) sampler needs this to keep the scale from growing.

    Example:
        >>> import torch
        >>> energy_penalty(torch.tensor([1.0, 3.0]), torch.tensor([2.0]))
        tensor(9.)
    """
    return energy_data.square().mean() + energy_samples.square().mean()
