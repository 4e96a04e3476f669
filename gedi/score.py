"""The score ``grad_x log p(x) = -grad_x E(x)``: the one kernel that samplers and walks share."""

import torch
from torch import Tensor

from gedi.precision import no_autocast
from gedi.types import EnergyFn


def energy_and_score(energy: EnergyFn, x: Tensor) -> tuple[Tensor, Tensor]:
    """Energy (n,) and score (n, *shape) at ``x``, in one pass each way.

    An energy that knows its own gradient in closed form says so with a method ``with_score``;
    any other function goes through autograd. Under ``torch.no_grad`` neither keeps a graph and
    neither touches a parameter's gradient; otherwise the score itself can be differentiated
    (score matching needs that).

    Example:
        >>> gaussian = lambda x: x.square().sum(1) / 2
        >>> energy_and_score(gaussian, torch.tensor([[3.0, 4.0]]))[1]
        tensor([[-3., -4.]], grad_fn=<NegBackward0>)
    """
    closed_form = getattr(energy, "with_score", None)
    if closed_form is not None:
        e, s = closed_form(x)
        return e, s
    keep_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        e = energy(x)
        if not e.requires_grad:  # a constant energy: flat everywhere
            return e, torch.zeros_like(x)
        with no_autocast():  # the way back has the precision of the way there
            (gradient,) = torch.autograd.grad(e.sum(), x, create_graph=keep_graph, allow_unused=True)
        if gradient is None:
            return e, torch.zeros_like(x)
    return (e, -gradient) if keep_graph else (e.detach(), -gradient)


def posterior_mean(energy: EnergyFn, x: Tensor, width: float) -> Tensor:
    """The mean of what points may have been before noise of a width was added to them, (n, *shape).

    An energy that knows it says so with a method ``denoised``. Of any other it is Tweedie's ``x + width^2 score(x)``,
    which is right as far as the energy is that of the noised data.

    Example:
        >>> blurred = lambda x: x.square().sum(1) / 4       # points N(0, 1) with noise of width 1: N(0, 2)
        >>> posterior_mean(blurred, torch.tensor([[2.0, 4.0]]), 1.0)
        tensor([[1., 2.]])
    """
    known = getattr(energy, "denoised", None)
    with torch.no_grad():
        return x + width**2 * energy_and_score(energy, x)[1] if known is None else known(x, width)


def score(energy: EnergyFn, x: Tensor) -> Tensor:
    """The score alone, without a graph."""
    with torch.no_grad():
        return energy_and_score(energy, x)[1]


def normal(energy: EnergyFn, x: Tensor) -> Tensor:
    """The score as walks ask for it, which only want to know where the density rises: (n, *shape).

    An energy that can tell this for less than its gradient costs says so with a method ``normal``.

    Example:
        >>> gaussian = lambda x: x.square().sum(1) / 2
        >>> normal(gaussian, torch.tensor([[3.0, 4.0]]))
        tensor([[-3., -4.]])
    """
    known = getattr(energy, "normal", None)
    return score(energy, x) if known is None else known(x)
